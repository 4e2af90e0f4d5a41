"""What stands as the product changed it, node by node, and the way back for all of it: before the product is removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy

from monitoring import hot
from monitoring.models import Cluster
from monitoring.views.saving import Table
from policies import selectors, tasks
from policies.forms import RestoreForm
from policies.models import Original, Policy
from policies.selectors.exported import exported
from policies.services.rollout import control, targets
from policies.services.rollout.error import RolloutError
from policies.views import columns
from policies.views.policies import PER_PAGE, PolicyPage
from policies.words import rollout as words

PLAN = "policies.operate_rollout"


class Line(NamedTuple):
    """A changed file of a node. `changes`: field, what is in force ("" = unknown), what it goes back to; `why`: it cannot go back."""

    original: Original
    changes: list[tuple[str, str, str]]
    why: str


class RestorePage(PolicyPage):
    """Everybody reads it; operators have the way back planned."""

    template_name = "policies/restore.html"
    title = gettext_lazy("Back to the originals")

    def tables(self) -> Mapping[str, Table]:
        return {
            "changed": Table(
                columns.ORIGINALS, lambda: lines(self.cluster, list(selectors.changed(self.cluster)))
            )
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        changed = selectors.changed(self.cluster)
        page = Paginator(changed, PER_PAGE).get_page(self.request.GET.get("page"))
        form = kwargs.pop("form", None) or RestoreForm(initial={"zone": settings.TIME_ZONE})
        return super().get_context_data(
            page=page,
            lines=lines(self.cluster, list(page)),
            stay=selectors.staying(self.cluster).count(),
            still_on=Policy.objects.filter(cluster=self.cluster, on=True).count(),
            form=form,
            may_plan=self.request.user.has_perm(PLAN),
            switched_on=settings.NUMAWEB_ROLLOUTS,
            off=words.obstacle("off"),
            busy=selectors.active_rollout(self.cluster),
            **kwargs,
        )

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Has the way back planned."""
        if not request.user.has_perm(PLAN):
            raise PermissionDenied
        form = RestoreForm(request.POST)
        if not form.is_valid():
            return self.again(form)
        try:
            made = control.restore_all(self.cluster, form.options(), self.who(), timezone.now())
        except RolloutError as error:
            messages.error(request, " ".join(words.obstacle(error.code, error.cause)))
            return self.again(form)
        tasks.offer_plan(made.pk)
        return HttpResponseRedirect(reverse("rollout", kwargs={"cluster": self.slug, "rollout": made.pk}))

    def again(self, form: RestoreForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form, cluster=self.slug))


def lines(cluster: Cluster, page: Sequence[Original]) -> list[Line]:
    """With what is in force now, as far as exporters tell."""
    try:
        now = exported(cluster, [each.node_name for each in page])
    except hot.StoreError:
        now = {}
    found = []
    for each in page:
        node = now.get(each.node_name)
        where = getattr(each, "where")  # noqa: B009 - annotated
        known = node is not None and node.kubelet is not None and where == selectors.THERE
        present = targets.present(node, each.fields) if known and node else {}
        changes = words.changes(present, each.fields)
        if not known:
            changes = [(field, "", then) for field, _is_now, then in changes]
        found.append(Line(each, changes, str(words.WHERE.get(where, ""))))
    return found
