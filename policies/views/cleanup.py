"""Clean-up of failed pods: which would go, a typed confirmation, and how far it is. The page survives a reload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.filters import FailureFilter
from monitoring.selectors import failures
from monitoring.views.base import MENU_PATH, ClusterPage, Crumb
from monitoring.views.saving import Table
from policies import audit, selectors, tasks, words
from policies.models import Cleanup, CleanupPod
from policies.services import cleanup as services
from policies.services.who import Who
from policies.views import columns

OPERATE = "policies.operate_cleanup"
PER_PAGE = 50
SHOWN = 10
"""Earlier clean-ups on the page."""
FILTERS = ("q", "namespace", "owner", "owner_kind", "node", "reason", "after", "before")


class Operated(ClusterPage):
    """A page that everybody reads and operators use."""

    http_method_names = ["get", "head", "post"]
    title = gettext_lazy("Clean-up of failed pods")

    def crumbs(self) -> list[Crumb]:
        up = Crumb(gettext_lazy("Failures"), self.address("failures"))
        return [*(Crumb(label) for label in MENU_PATH), up, Crumb(self.title)]

    def who(self) -> Who:
        return Who(audit.actor(self.request), self.request.META.get("REMOTE_ADDR", ""))

    def allow(self) -> None:
        if not self.request.user.has_perm(OPERATE):
            raise PermissionDenied

    def to(self, cleanup: Cleanup) -> HttpResponse:
        named = {"cluster": self.cluster.slug, "cleanup": cleanup.pk}
        return HttpResponseRedirect(reverse("cleanup", kwargs=named))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            may=self.request.user.has_perm(OPERATE), switched_on=settings.NUMAWEB_CLEANUP, **kwargs
        )


class Cleanups(Operated):
    """What can be cleaned up, and what was."""

    template_name = "policies/cleanups.html"

    def tables(self) -> Mapping[str, Table]:
        return {"cleanups": Table(columns.CLEANUPS, lambda: selectors.cleanups(self.cluster))}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = self.filtered()
        chips = [
            (found.filters[name].label, value)
            for name in FILTERS
            for value in self.request.GET.getlist(name)
            if value
        ]
        return super().get_context_data(
            chips=chips,
            unreadable=not found.is_valid(),
            query=self.kept(),
            earlier=selectors.cleanups(self.cluster)[:SHOWN],
            off=words.obstacle("off"),
            **kwargs,
        )

    def filtered(self) -> FailureFilter:
        return FailureFilter(self.request.GET, failures.lines(self.cluster), request=self.request)

    def kept(self) -> str:
        kept = self.request.GET.copy()
        for name in [each for each in kept if each not in FILTERS]:
            del kept[name]
        return kept.urlencode()

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """A preview of the pods behind the filter of the address."""
        self.allow()
        found = self.filtered()
        if not found.is_valid():
            return HttpResponseRedirect(f"{request.path}?{self.kept()}")
        try:
            return self.to(services.preview(self.cluster, found.qs, self.who(), timezone.now()))
        except services.CleanupError as error:
            messages.error(request, " ".join(words.obstacle(error.code, error.cause)))
            return HttpResponseRedirect(f"{request.path}?{self.kept()}")


class CleanupPage(Operated):
    """One clean-up: its preview, its progress, its end."""

    template_name = "policies/cleanup.html"

    def get_template_names(self) -> list[str]:
        htmx = getattr(self.request, "htmx", None)
        return ["policies/parts/cleanup.html"] if htmx else [str(self.template_name)]

    def named(self) -> tuple[str, ...]:
        return (*super().named(), "cleanup", str(self.kwargs["cleanup"]))

    def tables(self) -> Mapping[str, Table]:
        return {
            "pods": Table(columns.CLEANED, lambda: self.found().pods.order_by("pk")),
            "owners": Table(columns.OWNERS, lambda: selectors.cleanup_owners(self.found()).items()),
        }

    def found(self) -> Cleanup:
        found = selectors.cleanups(self.cluster).filter(pk=self.kwargs["cleanup"]).first()
        if found is None:
            raise Http404(_("There is no such clean-up."))
        return found

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = self.found()
        counts = selectors.cleanup_counts(found)
        total = sum(counts.values())
        waiting = counts["waiting"] + counts["asked"]
        page = Paginator(found.pods.order_by("pk"), PER_PAGE).get_page(self.request.GET.get("page"))
        kwargs["cleanup"] = found  # instead of its number in the address
        return super().get_context_data(
            counts=[(str(CleanupPod.Outcome(name).label), count) for name, count in counts.items() if count],
            total=total,
            settled=total - waiting,
            owners=list(selectors.cleanup_owners(found).items()),
            page=page,
            pods=[(pod, words.cause(pod.cause)) for pod in page],
            error=words.hindrance(found.error),
            missing=words.obstacle("missing-right", ", ".join(found.missing)) if found.missing else None,
            **kwargs,
        )

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Starts it, with the number of its pods typed; or stops it."""
        self.allow()
        found = self.found()
        try:
            if request.POST.get("do") == "stop":
                services.stop(found, self.who(), timezone.now())
            elif request.POST.get("pods", "").strip() != str(found.pods.count()):
                messages.error(request, " ".join(words.obstacle("count")))
            else:
                services.start(found, self.who(), timezone.now())
                tasks.offer(found.pk)
        except services.CleanupError as error:
            messages.error(request, " ".join(words.obstacle(error.code, error.cause)))
        return self.to(found)
