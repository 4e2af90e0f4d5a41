"""A policy's preview: what would come of it on each of its nodes, before anybody could do it, and the way to plan a rollout.

For operators; nothing changes by either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring import hot
from monitoring.figures import survival
from monitoring.figures.sentences import Said
from monitoring.figures.survival import Shown
from monitoring.views.base import Crumb
from numacore.change.leaving import Leaving
from policies import selectors, tasks
from policies.forms import RolloutForm
from policies.models import Policy
from policies.selectors import Previewed
from policies.services.rollout import control
from policies.services.rollout.error import RolloutError
from policies.views.policies import PolicyPage
from policies.words import changing, findings
from policies.words import policy as words
from policies.words import rollout as rollout_words

PREVIEW = "policies.operate_preview"
PLAN = "policies.operate_rollout"
PER_PAGE = 20
"""Each node's settings, state files and pods are gone through: some milliseconds a node."""


class Card(NamedTuple):
    """A node's preview in words."""

    node: Previewed
    outcome: str
    refusals: list[Said]
    notes: list[Said]
    state_files: list[tuple[Leaving, Said]]
    restart: Shown | None
    """What the restart with the change would bring to its pods; None = it does not come to one."""
    now: Shown | None
    """What a restart without the change would bring, where that alone is a danger."""
    keeps: list[str]
    moves: list[str]
    volcano: Said | None
    findings: list[findings.Shown]
    """What the checks say to the new settings that they do not say to the present ones."""


def card(node: Previewed) -> Card:
    change = node.change
    if change is None:
        why = [changing.said(node.problem)] if node.problem else []
        return Card(node, str(words.OUTCOMES[node.outcome]), why, [], [], None, None, [], [], None, [])
    wanted = str(change.intended.get("topologyManagerPolicy", ""))
    restart = words.restart(change.changed, node.names, wanted) if change.changed and change.diff else None
    now = survival.shown(change.unchanged, "")
    return Card(
        node=node,
        outcome=str(words.OUTCOMES[node.outcome]),
        refusals=[changing.said(each) for each in change.refusals],
        notes=[changing.said(each) for each in (*change.notes, *change.assumed)],
        state_files=[(each, changing.said(each.reason)) for each in change.state_files],
        restart=restart,
        now=now if now.state in ("refuses", "crashes") else None,
        keeps=[node.names.get(uid, uid) for uid in change.keeps],
        moves=[node.names.get(uid, uid) for uid in change.moves],
        volcano=changing.said(change.volcano) if change.volcano else None,
        findings=[findings.shown(each) for each in change.findings],
    )


class PreviewPage(PolicyPage):
    """Nodes that a policy counts for, a page at a time, each with what would become of it."""

    permission_required = PREVIEW
    template_name = "policies/preview.html"

    @property
    def title(self) -> str:  # type: ignore[override]
        return _("Preview")

    def crumbs(self) -> list[Crumb]:
        named = words.title(self.kwargs["level"], self.kwargs.get("name", ""))
        found = super().crumbs()
        return [*found[:-1], Crumb(named, self.request.path.removesuffix("preview/")), found[-1]]

    def found(self) -> Policy:
        level, name = self.kwargs["level"], self.kwargs.get("name", "")
        found = selectors.policy_of(self.cluster, level, name)
        if found is None:
            raise Http404(_("Nobody has written a policy for this yet."))
        return found

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        policy, now = self.found(), timezone.now()
        names = selectors.reached(self.cluster, policy)
        asked = self.request.GET.get("node", "")
        page = Paginator([asked] if asked in names else names, PER_PAGE).get_page(
            self.request.GET.get("page")
        )
        cards, unread = [], False
        try:
            cards = [card(each) for each in selectors.preview(self.cluster, policy, list(page), now)]
        except hot.StoreError:
            unread = True
        form = kwargs.pop("form", None) or RolloutForm(initial={"zone": settings.TIME_ZONE})
        return super().get_context_data(
            policy=policy,
            page=page,
            cards=cards,
            unread=unread,
            made=now,
            one=asked if asked in names else "",
            form=form,
            may_plan=self.request.user.has_perm(PLAN),
            switched_on=settings.NUMAWEB_ROLLOUTS,
            off=rollout_words.obstacle("off"),
            busy=selectors.active_rollout(self.cluster),
            **kwargs,
        )

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Has a rollout planned."""
        if not request.user.has_perm(PLAN):
            raise PermissionDenied
        policy, form = self.found(), RolloutForm(request.POST)
        if not form.is_valid():
            return self.again(form)
        try:
            made = control.create(self.cluster, policy, form.options(), self.who(), timezone.now())
        except RolloutError as error:
            messages.error(request, " ".join(rollout_words.obstacle(error.code, error.cause)))
            return self.again(form)
        tasks.offer_plan(made.pk)
        return HttpResponseRedirect(reverse("rollout", kwargs={"cluster": self.slug, "rollout": made.pk}))

    def again(self, form: RolloutForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form, cluster=self.slug))
