"""Volcano's way to its verdict on a node as sentences: what its filter, predicate, simulated allocation and score said, with numbers.

The scheduler's own words stand beside the step that made them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from monitoring.figures import verdicts
from numacore.cpuset import CpuSet
from numacore.hints import nodes_of
from numacore.topology import Topology
from numacore.volcano.hints import SINGLE
from numacore.volcano.plugin import NodeVerdict, Outcome, Score, Step

Stage = Literal["filter", "predicate", "allocation", "score"]
STAGES = {
    "filter": gettext_lazy("filter"),
    "predicate": gettext_lazy("predicate"),
    "allocation": gettext_lazy("simulated allocation"),
    "score": gettext_lazy("score"),
}
_NO_HINTS = {
    "no-request": gettext_lazy("Container “%(name)s” requests no CPU: any NUMA nodes suit it."),
    "zero": gettext_lazy("Container “%(name)s” requests 0 CPUs: any NUMA nodes suit it."),
    "fraction": gettext_lazy(
        "Container “%(name)s” requests no whole number of CPUs, which Volcano aligns with nothing: any NUMA nodes suit it."
    ),
}


class Told(NamedTuple):
    """One step. `words`: the scheduler's own, empty where it says nothing; `container`: whose step it is."""

    stage: Stage
    text: str
    words: str = ""
    container: str = ""


def trace(verdict: NodeVerdict, topology: Topology, score: Score | None) -> list[Told]:
    """Every step that was taken, in order. `topology`: the node's, for the NUMA nodes of CPUs."""
    outcome = verdict.outcomes[0]
    found = [_filter(verdict)]
    for step in outcome.steps:
        found.append(_predicate(step, verdict, topology, outcome))
        if step.admitted and step.request:
            found.append(_allocation(step, topology))
    if others := _others(verdict):
        found.append(others)
    return [*found, _score(verdict, score)]


def _filter(verdict: NodeVerdict) -> Told:
    outcome = verdict.outcomes[0]
    if verdict.skipped or (outcome.cause and outcome.cause != "container"):
        return Told("filter", verdicts.volcano(verdict).text, outcome.reason)
    if verdict.pod_policy in ("", "none"):
        text = _("Passed: the pod names no policy, and so the node's own, %(policy)s, is enforced on it.")
        return Told("filter", text % {"policy": verdict.node_policy})
    text = _(
        "Passed: the node's CPU manager is static, and its policy has the same name as the pod's, %(policy)s."
    )
    return Told("filter", text % {"policy": verdict.pod_policy})


def _predicate(step: Step, verdict: NodeVerdict, topology: Topology, outcome: Outcome) -> Told:
    words = "" if step.admitted else outcome.reason
    if step.no_hints:
        return Told(
            "predicate", str(_NO_HINTS[step.no_hints]) % {"name": step.container}, words, step.container
        )
    free = ngettext(
        "Container “%(name)s” asks for %(asked)s CPU. Volcano takes %(reserved)s for reserved; free then: %(free)s (%(by_numa)s).",
        "Container “%(name)s” asks for %(asked)s CPUs. Volcano takes %(reserved)s for reserved; free then: %(free)s (%(by_numa)s).",
        step.request,
    ) % {
        "name": step.container,
        "asked": step.request,
        "reserved": _("CPUs %(cpus)s") % {"cpus": step.reserved} if step.reserved else _("none"),
        "free": len(step.free),
        "by_numa": _by_numa(step.free, topology),
    }
    return Told("predicate", f"{free} {_merged(step, verdict)}", words, step.container)


def _by_numa(cpus: CpuSet, topology: Topology) -> str:
    parts = [
        _("NUMA %(numa)s: %(count)s") % {"numa": each.id, "count": len(each.cpus & cpus)}
        for each in topology.nodes
    ]
    return _(", ").join(parts)


def _merged(step: Step, verdict: NodeVerdict) -> str:
    """What came of the hints under the node's policy."""
    hints = step.hints or ()
    if not hints:
        sets = _("No set of NUMA nodes has as many.")
    else:
        text = ngettext(
            "%(count)d set of NUMA nodes has as many, the narrowest is %(numa)s.",
            "%(count)d sets of NUMA nodes have as many, the narrowest is %(numa)s.",
            len(hints),
        )
        sets = text % {"count": len(hints), "numa": _nodes(hints[0].mask)}
    policy = {"policy": verdict.node_policy or ""}
    if step.admitted and step.best.preferred:
        return f"{sets} " + _("It prefers %(numa)s (%(policy)s).") % (
            policy | {"numa": _nodes(step.best.mask)}
        )
    if verdict.node_policy == SINGLE and hints:
        return f"{sets} " + _("None of them is a single NUMA node; %(policy)s refuses.") % policy
    if step.admitted:
        return f"{sets} " + _("None is as narrow as on an empty node; %(policy)s lets it pass.") % policy
    return f"{sets} " + _("None is as narrow as on an empty node; %(policy)s refuses.") % policy


def _nodes(mask: int | None) -> str:
    if mask is None:
        return _("any NUMA node")
    return "{" + ", ".join(map(str, nodes_of(mask))) + "}"


def _allocation(step: Step, topology: Topology) -> Told:
    if not step.cpus:
        text = _(
            "For container “%(name)s” the simulated allocation fails; to Volcano that is no error, and the container counts as one without CPUs."
        )
        return Told("allocation", text % {"name": step.container}, container=step.container)
    text = _("Container “%(name)s” would get the CPUs %(cpus)s on NUMA %(numa)s.")
    values: dict[str, object] = {
        "name": step.container,
        "cpus": step.cpus,
        "numa": ", ".join(map(str, topology.numa_of(step.cpus))),
    }
    if len(step.cpus) > step.request:
        text = _(
            "Container “%(name)s” would get the CPUs %(cpus)s on NUMA %(numa)s: more than it asks for, because core ids repeat in each socket "
            "and Volcano takes such CPUs for one core."
        )
    return Told("allocation", text % values, container=step.container)


def _others(verdict: NodeVerdict) -> Told | None:
    """Where the order of a Go map decides, what else may come of it."""
    others = verdict.outcomes[1:]
    if not others:
        return None
    told = sorted({str(each.cpus) if each.fit else _("refused") for each in others})
    text = _("This is open: Go goes through its maps in any order, and it may as well come to: %(answers)s.")
    return Told("allocation", text % {"answers": _("; ").join(told)})


def _score(verdict: NodeVerdict, score: Score | None) -> Told:
    outcome = verdict.outcomes[0]
    if not outcome.fit:
        return Told("score", _("None: a refused node gets no score."))
    if verdict.skipped:
        return Told("score", _("None: nothing was simulated on this node."))
    if verdict.pod_policy in ("", "none"):
        return Told("score", _("None: a pod that names no policy gets no score."))
    if score is None:
        return Told("score", _("None: the node is no candidate, its resources are used up."))
    if not score.most:
        text = _("%(value)s = weight %(weight)s × 100: the pod owns no CPU on any candidate.")
    elif score.numa_nodes == score.most:
        text = _(
            "%(value)s = weight %(weight)s × (100 − 100 × %(nodes)s ÷ %(most)s): no candidate needs more NUMA nodes than this one. A single candidate "
            "always gets 0, and so does each of several that need equally many."
        )
    else:
        text = ngettext(
            "%(value)s = weight %(weight)s × (100 − 100 × %(nodes)s ÷ %(most)s): %(nodes)s NUMA node here, %(most)s where it needs most of them.",
            "%(value)s = weight %(weight)s × (100 − 100 × %(nodes)s ÷ %(most)s): %(nodes)s NUMA nodes here, %(most)s where it needs most of them.",
            score.numa_nodes,
        )
    values = {"value": score.value, "weight": score.weight, "nodes": score.numa_nodes, "most": score.most}
    return Told("score", text % values)
