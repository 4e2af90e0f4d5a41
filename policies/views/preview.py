"""A policy's preview: what would come of it on each of its nodes, before anybody could do it. For operators; nothing changes."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.core.paginator import Paginator
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring import hot
from monitoring.figures import survival
from monitoring.figures.sentences import Said
from monitoring.figures.survival import Shown
from monitoring.views.base import Crumb
from numacore.change.leaving import Leaving
from policies import selectors
from policies.models import Policy
from policies.selectors import Previewed
from policies.views.policies import PolicyPage
from policies.words import changing
from policies.words import policy as words

PREVIEW = "policies.operate_preview"
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


def card(node: Previewed) -> Card:
    change = node.change
    if change is None:
        why = [changing.said(node.problem)] if node.problem else []
        return Card(node, str(words.OUTCOMES[node.outcome]), why, [], [], None, None, [], [], None)
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
    )


class PreviewPage(PolicyPage):
    """Nodes that a policy counts for, a page at a time, each with what would become of it."""

    permission_required = PREVIEW
    http_method_names = ["get", "head"]
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
        page = Paginator(selectors.reached(self.cluster, policy), PER_PAGE).get_page(
            self.request.GET.get("page")
        )
        cards, unread = [], False
        try:
            cards = [card(each) for each in selectors.preview(self.cluster, policy, list(page), now)]
        except hot.StoreError:
            unread = True
        return super().get_context_data(
            policy=policy, page=page, cards=cards, unread=unread, made=now, **kwargs
        )
