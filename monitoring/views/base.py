"""What pages have in common: the right to read, the cluster of the address, the way up."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.mixins import PermissionRequiredMixin
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.generic import TemplateView, View

from monitoring import selectors
from monitoring.figures import cookies
from monitoring.models import Cluster
from monitoring.views import saving

MENU_PATH = (gettext_lazy("Computing Power Optimization Center"), gettext_lazy("NUMA affinity scheduling"))
"""Where the documents put these pages."""


class Crumb(NamedTuple):
    """One step of the way up; without an address it is only a name."""

    label: str | Promise
    url: str = ""


class Reader(PermissionRequiredMixin, View):
    """A page for everybody with a role."""

    permission_required = "monitoring.view_cluster"


class Page(Reader, TemplateView):
    """A page with a title, a way up, and tables that save themselves."""

    title: str | Promise = ""

    def get(  # type: ignore[override]  # a file is sent while it is made
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        if saving.ASKED in request.GET:
            return saving.answer(request, self.tables(), self.named())
        return super().get(request, *args, **kwargs)

    def tables(self) -> Mapping[str, saving.Table]:
        """Every table of the page, by the name that `{% saves %}` gives its files."""
        return {}

    def files(self, table: str) -> list[tuple[str, str]]:
        """Forms and addresses of a table's files. Raises KeyError where the page has no such table."""
        if table not in self.tables():
            raise KeyError(table)
        return saving.addresses(self.request.GET, table)

    def named(self) -> tuple[str, ...]:
        """What the page is of, for the names of files."""
        return ("numaweb",)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        clusters = selectors.clusters()
        return super().get_context_data(title=self.title, crumbs=self.crumbs(), clusters=clusters, **kwargs)

    def crumbs(self) -> list[Crumb]:
        return [*(Crumb(label) for label in MENU_PATH), Crumb(self.title)]


class ClusterView(Reader):
    """Whatever answers about the cluster that the address names."""

    cluster: Cluster

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.slug: str = kwargs["cluster"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not self.has_permission():
            return self.handle_no_permission()
        try:
            self.cluster = selectors.cluster(self.slug)
        except Cluster.DoesNotExist:
            raise Http404(_("There is no cluster %(name)s.") % {"name": self.slug}) from None
        return super().dispatch(request, *args, **kwargs)


class ClusterPage(ClusterView, Page):
    """A page about one cluster."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        if request.COOKIES.get(cookies.LAST_CLUSTER) != self.slug and response.status_code == HTTPStatus.OK:
            response.set_cookie(
                cookies.LAST_CLUSTER,
                self.slug,
                httponly=True,
                samesite="Lax",
                secure=settings.SESSION_COOKIE_SECURE,
            )
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        here = {"cluster": self.cluster, "sockets": self.sockets()}
        return super().get_context_data(**{**kwargs, **here})

    def named(self) -> tuple[str, ...]:
        return (self.cluster.slug,)

    def sockets(self) -> dict[str, str]:
        """Addresses of the live connection, by the name under which scripts look for them."""
        return {"overview": f"/ws/c/{self.cluster.slug}/overview/"}

    def address(self, name: str) -> str:
        """The address of another page of this cluster."""
        return reverse(name, kwargs={"cluster": self.cluster.slug})
