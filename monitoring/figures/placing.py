"""Whether the place of a pod on the NUMA nodes is known, and if not, why and what to do: words for `selectors.kubernetes.Placement`."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring.figures.sentences import Said

LABELS: dict[str, Promise] = {
    "known": _("known"),
    "not-shown": _("unknown: its exporter does not show it"),
    "silent": _("unknown: its exporter is silent"),
    "no-exporter": _("unknown: no exporter"),
    "not-running": _("none: it does not run"),
}
REASONS: dict[str, tuple[Promise, Promise]] = {
    "not-shown": (
        _("The exporter on its node answers and does not show it."),
        _(
            "It started a moment ago, its containers ended, or the exporter cannot see them: look at the problems on the node's "
            "page, and whether the pod's runtime keeps its containers in a virtual machine."
        ),
    ),
    "silent": (
        _("The exporter on its node has said nothing for five minutes."),
        _("The node's page names the cause."),
    ),
    "no-exporter": (
        _("No numa-exporter ever told of its node."),
        _("The node's page names what is in the way."),
    ),
}


def label(code: str) -> str:
    """A code in a few words."""
    return str(LABELS.get(code, code))


def reason(code: str) -> Said | None:
    """Why a placement is unknown; None = it is known, or there is nothing to be known."""
    found = REASONS.get(code)
    return None if found is None else Said(str(found[0]), str(found[1]))


ADDED: dict[str, Promise] = {
    "names": _("named by Kubernetes"),
    "uid": _("pod found by Kubernetes"),
}
ADDED_MORE = _(
    "The exporter on the node could not read it; it is joined by the uid of the pod that the API server has."
)


def added(fields: str | tuple[str, ...]) -> list[str]:
    """What the API server added to a container, in words: `fields` as `told_by_api` has them."""
    told = fields.split(",") if isinstance(fields, str) else fields
    names = {"namespace", "pod", "name"} & set(told)
    return [str(ADDED[what]) for what, so in (("names", names), ("uid", "pod_uid" in told)) if so]
