"""The first line of a page: a sentence that answers the question with which people come. Values in, words out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.figures import drawing, sentences
from numacore.report import ContainerReport, NodeReport

Level = Literal["ok", "warning", "danger", "unknown"]
LOCAL = 1.005
"""A cost up to here is all local, but for rounding."""
PAYS = 1.1
"""A floating container is named from this cost on: a little is always spread."""


class Headline(NamedTuple):
    """How bad it is, the answer, and what is behind it."""

    level: Level
    text: str
    detail: str = ""


def of_cluster(
    *, nodes: int, without_data: int, crossing: int, exclusive: int, worst: float | None, other: int
) -> Headline:
    """Is something wrong in this cluster? `other` counts what else needs attention."""
    if not nodes:
        return Headline(
            "unknown",
            _("No node has been heard of yet."),
            _("Data appears here as soon as an exporter answers."),
        )
    silent = _silent(nodes, without_data)
    if crossing:
        text = ngettext(
            "%(count)d container reaches across NUMA nodes.",
            "%(count)d containers reach across NUMA nodes.",
            crossing,
        ) % {"count": crossing}
        return Headline(
            "danger" if exclusive else "warning", text, joined(_worst(worst), _exclusive(exclusive), silent)
        )
    if without_data == nodes:
        return Headline("unknown", silent, _("Nothing current is known of this cluster."))
    if silent:
        return Headline("warning", silent, _("What the other nodes tell looks right."))
    if other:
        text = ngettext(
            "No container crosses; %(count)d thing needs a look.",
            "No container crosses; %(count)d things need a look.",
            other,
        )
        return Headline("warning", text % {"count": other})
    return Headline(
        "ok", _("Nothing needs attention: no container reaches across NUMA nodes, and every node answers.")
    )


def _silent(nodes: int, without_data: int) -> str:
    if not without_data:
        return ""
    return ngettext(
        "%(count)d of %(nodes)d nodes sends no current data.",
        "%(count)d of %(nodes)d nodes send no current data.",
        without_data,
    ) % {"count": without_data, "nodes": nodes}


def _worst(cost: float | None) -> str:
    return (
        ""
        if cost is None
        else _("The worst of them pays %(cost)s times the access cost of local memory.")
        % {"cost": f"{cost:.2f}"}
    )


def _exclusive(count: int) -> str:
    if not count:
        return ""
    return ngettext("%(count)d of them owns CPUs.", "%(count)d of them own CPUs.", count) % {"count": count}


def of_node(report: NodeReport, *, numa: bool, live: bool) -> Headline:
    """Why is an application on this node slow?"""
    crossing = sorted((each for each in report.containers if each.cross), key=lambda each: -(each.cost or 0))
    contradictions = report.policy.contradictions if report.policy else ()
    if crossing:
        text = ngettext(
            "%(count)d container reaches across NUMA nodes.",
            "%(count)d containers reach across NUMA nodes.",
            len(crossing),
        ) % {"count": len(crossing)}
        level: Level = "danger" if any(each.kind == "exclusive" for each in crossing) else "warning"
        return Headline(level, text, crossing_sentence(crossing[0], several=len(crossing) > 1))
    if contradictions:
        return Headline(
            "warning", sentences.reason(contradictions[0]).text, sentences.reason(contradictions[0]).remedy
        )
    if not live:
        return Headline(
            "unknown",
            _("Nothing current is known of this node."),
            _("What is shown was stored when it was last heard."),
        )
    if len(report.numa) < 2:
        return Headline("ok", _one_node(numa), _("Nothing can reach across NUMA nodes here."))
    if report.crossing_unknown:
        text = ngettext(
            "No container is seen to cross; of %(count)d nobody can say it.",
            "No container is seen to cross; of %(count)d nobody can say it.",
            report.crossing_unknown,
        )
        return Headline(
            "unknown", text % {"count": report.crossing_unknown}, _("The problems of the readers say why.")
        )
    return Headline("ok", _("No container reaches across NUMA nodes."), costliest_floating(report.containers))


def _one_node(numa: bool) -> str:
    return (
        _("This machine has one NUMA node.")
        if numa
        else _("The kernel of this machine knows no NUMA nodes; it counts as one.")
    )


def crossing_sentence(of: ContainerReport, *, several: bool) -> str:
    """What of a container crosses, and what it costs; `several` = it is the worst of some."""
    here = ", ".join(map(str, of.cpu_nodes))
    cross = of.cross or ()
    form = (
        _("Worst is %(name)s: its CPUs are on NUMA %(here)s.")
        if several
        else _("%(name)s has its CPUs on NUMA %(here)s.")
    )
    parts = [form % {"name": drawing.title(of), "here": here}]
    if "memory" in cross and of.page_shares and of.remote_pages is not None:
        away = ", ".join(str(node) for node in sorted(of.page_shares) if node not in of.cpu_nodes)
        values = {"share": f"{of.remote_pages:.0%}", "away": away}
        parts.append(_("%(share)s of its memory lies on NUMA %(away)s.") % values)
    if "device" in cross:
        away = ", ".join(str(node) for node in of.device_nodes if node not in of.cpu_nodes)
        parts.append(_("It uses a device on NUMA %(away)s.") % {"away": away})
    if of.cost is not None and of.cost > LOCAL:
        parts.append(
            _("Its accesses cost about %(cost)s times as much as local ones.") % {"cost": f"{of.cost:.2f}"}
        )
    return joined(*parts)


def costliest_floating(containers: Iterable[ContainerReport]) -> str:
    """The floating container that pays most, if one pays at all."""
    paying = [
        each for each in containers if each.kind == "floating" and each.cost is not None and each.cost > PAYS
    ]
    if not paying:
        return ""
    # A service of the system is where it is on every node; it is named only where no pod pays.
    worst = max(paying, key=lambda each: (each.container.kubernetes, each.cost or 0))
    values = {"name": drawing.title(worst), "cost": f"{worst.cost:.2f}"}
    return (
        _("%(name)s floats over the whole node and pays about %(cost)s times the local access cost.") % values
    )


def joined(*parts: str) -> str:
    """Sentences one after another, as the language writes them (Chinese has no blank between them)."""
    gap = "" if (translation.get_language() or "").startswith("zh") else " "
    return gap.join(part for part in parts if part)
