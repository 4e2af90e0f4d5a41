"""The change that a preview shows, to be taken away and run by hand: a script for one node, or a playbook for all of the policy's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring import hot
from numacore.change import script
from numacore.change.script import ScriptError
from policies import audit, selectors
from policies.audit import Event
from policies.models import Policy
from policies.selectors import byhand
from policies.selectors.byhand import Handed
from policies.views.preview import PreviewPage
from policies.words import rollout as words

MOST = 500
"""Nodes of one playbook; each brings its whole script."""
KINDS = {"sh": "text/x-shellscript; charset=utf-8", "yml": "application/yaml"}


class ByHand(PreviewPage):
    """`form` sh: of the node that `node` names; yml: of every node that the policy counts for and that can be changed."""

    def get(self, request: HttpRequest, *_args: Any, form: str, **_kwargs: Any) -> HttpResponse:
        policy = self.found()
        names = selectors.reached(self.cluster, policy)
        if form == "sh":
            names = [name for name in names if name == request.GET.get("node")]
            if not names:
                raise Http404(_("This policy does not count for such a node."))
        if len(names) > MOST:
            return self.refused(
                _("A playbook has at most %(most)s nodes, and this policy counts for %(number)s.")
                % {"most": MOST, "number": len(names)}
            )
        try:
            handed = byhand.handed(self.cluster, policy, names, timezone.now())
            text = one(handed[0]) if form == "sh" else many(handed)
        except hot.StoreError:
            return self.refused(_("The newest state of the nodes cannot be read."))
        except ScriptError as error:
            return self.refused(str(error))
        if not text:
            return self.refused(" ".join(dict.fromkeys(reasons(handed))) or _("There is nothing to change."))
        self.tell(policy, [each.node for each in handed if each.given])
        name = names[0] if form == "sh" else policy.target or self.slug
        response = HttpResponse(text, content_type=KINDS[form])
        response["Content-Disposition"] = f'attachment; filename="numaweb-{name}.{form}"'
        return response

    def refused(self, words: str) -> HttpResponse:
        messages.error(self.request, words)
        return HttpResponseRedirect(self.request.path.rpartition("by-hand")[0])

    def tell(self, policy: Policy, nodes: list[str]) -> None:
        audit.record(
            Event(
                action="change by hand",
                actor=self.who().name,
                address=self.who().address,
                target=f"cluster {self.slug} policy {policy.level} {policy.target}".rstrip(),
                after={"version": policy.version, "nodes": nodes},
                result="done",
            )
        )


def one(handed: Handed) -> str:
    """ "" = nothing to change."""
    return script.script(handed.given) if handed.given else ""


def many(handed: Sequence[Handed]) -> str:
    """Nodes that are left out stand in comments, with why; "" = nothing to change on any."""
    given = [each.given for each in handed if each.given]
    if not given:
        return ""
    as_wanted = _("as it is wanted")
    left_out = "".join(
        f"# {each.node}: {' '.join(reasons([each])).translate(_ONE_LINE) or as_wanted}\n"
        for each in handed
        if each.given is None
    )
    return f"{left_out}{script.playbook(given)}"


_ONE_LINE = dict.fromkeys((*range(32), 127, 133, 8232, 8233), " ")


def reasons(handed: Sequence[Handed]) -> list[str]:
    said = [words.said(reason) for each in handed for reason in each.why]
    return [f"{each.text} {each.remedy or ''}".rstrip() for each in said]
