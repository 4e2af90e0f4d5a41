"""Affinity policies in words: what each switch does and for whom it is, why something is not written down."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.figures import sentences, survival
from monitoring.figures.headlines import Headline, Level
from monitoring.figures.survival import Shown
from numacore.change.wish import Fault
from numacore.kubelet.restart import Survival
from numacore.whatif.surviving import Outlook

MOST_NAMED = 10


class Switch(msgspec.Struct, frozen=True):
    """One of the kubelet's topology policies: what it does, for which applications, and what it costs."""

    policy: str
    does: str | Promise
    scenario: str | Promise
    costs: str | Promise


SWITCHES = (
    Switch(
        "none",
        _("The kubelet looks at no NUMA node when it gives out CPUs, memory and devices."),
        _("Applications that do not mind latency: batch work, small services, build machines."),
        _("A container may run on one NUMA node with its memory on another."),
    ),
    Switch(
        "best-effort",
        _("The kubelet puts a container onto one NUMA node if it can, and starts it anyway if it cannot."),
        _("Most applications, and the first step on a cluster that has never had a policy."),
        _("Nothing tells a container that it crosses NUMA nodes; this product does."),
    ),
    Switch(
        "restricted",
        _(
            "A container that fits into one NUMA node must get one, or it is refused; a larger one may take the fewest that hold it."
        ),
        _("Applications that need speed, some of them larger than a NUMA node: databases, caches, training jobs."),
        _(
            "Refused pods stay as failed pods, and their owner makes more of them until one finds room: have a scheduler that knows NUMA nodes."
        ),
    ),
    Switch(
        "single-numa-node",
        _("Everything that a container asks for comes from one NUMA node, or it is refused."),
        _("The highest demands on latency: packet processing, telecommunications, trading, inference on one accelerator."),
        _("Containers larger than a NUMA node never start. A restart of the kubelet ends running ones that cross."),
    ),
)  # fmt: skip

DISTANCE = Switch(
    "prefer-closest-numa-nodes",
    _(
        "Where a container needs several NUMA nodes, the kubelet takes those with the smallest average distance, and not those with the lowest numbers."
    ),
    _("Servers with more than two NUMA nodes and containers that are larger than one of them."),
    _("Nothing; it decides only between choices that are equal otherwise. Kubelets from 1.26 on know it, from 1.32 on without a gate."),
)  # fmt: skip


def without_distance(versions: Sequence[str]) -> str:
    return sentences.filled(
        _("Not to be had here: it came with kubelet 1.26, and these nodes run %(versions)s."),
        {"versions": ", ".join(versions)},
    )


STATES = {
    "differs": _("not as wanted"),
    "frozen": _("frozen"),
    "unknown": _("unknown"),
    "agrees": _("as wanted"),
    "nothing": _("nothing wanted"),
}

OUTCOMES = {
    "crashes": _("the kubelet would crash"),
    "refused": _("cannot be done here"),
    "loses": _("pods would not come back"),
    "changes": _("would change"),
    "nothing": _("as wanted already"),
    "unknown": _("cannot be told"),
}

OBSTACLES: dict[str, tuple[Promise, Promise]] = {
    "changed": (
        _("Somebody else has changed this meanwhile."),
        _("What you see now is the newest version; make your change again if it is still right."),
    ),
    "selector": (
        _("This label selector cannot be read."),
        _("Write it as Kubernetes does, for instance numa=fast,zone in (a, b)."),
    ),
    "overlap": (
        _("Two pools would share nodes."),
        _("Give the nodes other labels, or let the selectors part."),
    ),
    "name-taken": (
        _("There is a pool with this name."),
        _("Take another name, or change that pool."),
    ),
    "no-node": (
        _("There is no current node with this name."),
        _("Choose one of the list."),
    ),
    "no-pool": (
        _("There is no pool with this name."),
        _("Make it first."),
    ),
    "wish": (
        _("This policy contradicts itself."),
        _("See the fields below."),
    ),
    "in-use": (
        _("A policy is for this pool, and remembers it even when it is off."),
        _("Keep the pool, or change its selector."),
    ),
}  # fmt: skip

FAULTS: dict[str, Promise] = {
    "wish-choice": _("%(value)s is none of %(values)s."),
    "wish-max-nodes": _("This is a number from %(least)s to %(most)s."),
    "wish-closest-without-policy": _("With the topology policy none nothing is aligned, so no distance is looked at: switch one of the two off."),
    "wish-option-unknown": _("There is no option %(option)s; there are %(values)s."),
    "wish-options-exclude": _("%(first)s and %(second)s exclude each other: choose one."),
    "wish-options-without-static": _("%(options)s: only the static CPU manager has options. Choose static, or no option."),
    "wish-socket-single-numa": _("align-by-socket does not go with single-numa-node: choose another topology policy, or leave the option out."),
    "wish-cpus": _("%(value)s is no list of CPUs such as 0-1,32: %(words)s"),
    "wish-amount": _("%(value)s is no amount of CPUs such as 500m or 2."),
    "wish-memory-without-static": _("Memory is reserved by NUMA node only for the memory manager Static: choose it, or leave this as it is."),
    "wish-memory-amounts": _("Amounts are whole Mi above 0 for NUMA nodes from 0 on, at least one."),
}  # fmt: skip
"""What is wrong with a wish on any machine (`numacore.change.wish.check`)."""


def fault(found: Fault) -> str:
    reason = found.reason
    return str(FAULTS[reason.code]) % {name: str(value) for name, value in reason.values.items()}


def obstacle(code: str, cause: str = "") -> tuple[str, str]:
    """Why something is not written down, and what to do; `cause` is the part at fault."""
    text, remedy = OBSTACLES[code]
    return (f"{text} {cause}" if cause else str(text)), str(remedy)


def switch(policy: str) -> Switch | None:
    return next((each for each in SWITCHES if each.policy == policy), None)


def overlap(pools: tuple[str, str], nodes: tuple[str, ...]) -> str:
    """Which nodes two pools share; at most ten are named."""
    named = ", ".join(nodes[:MOST_NAMED]) + (" …" if len(nodes) > MOST_NAMED else "")
    return gettext("%(one)s and %(other)s share: %(nodes)s") % {
        "one": pools[0],
        "other": pools[1],
        "nodes": named,
    }


def title(level: str, name: str) -> str:
    """Of a target's page."""
    match level:
        case "pool":
            return gettext("Policy of pool %(name)s") % {"name": name}
        case "node":
            return gettext("Policy of node %(name)s") % {"name": name}
    return gettext("Policy of the whole cluster")


def no_target(level: str, name: str) -> str:
    if level == "pool":
        return gettext("There is no pool %(name)s in this cluster.") % {"name": name}
    return gettext("There is no node %(name)s in this cluster.") % {"name": name}


RESTART: dict[str, tuple[Level, Promise]] = {
    "survives": ("ok", _("Its kubelet would start with this, and every pod that runs would stay.")),
    "loses": (
        "warning",
        _("Its kubelet would start with this and not take on these pods again, unless they are moved away before:"),
    ),
    "refuses": ("danger", _("Its kubelet would not start with this.")),
    "crashes": ("danger", _("Its kubelet would start with this and crash on a pod that runs now, again at each attempt.")),
}  # fmt: skip


def restart(of: Survival, names: dict[str, str], policy: str) -> Shown:
    """What the restart with a change would bring. `names`: of pods by uid; `policy`: the topology manager's by then."""
    shown = survival.shown(Outlook(survival=of, running=names), policy)
    level, text = RESTART[shown.state]
    return shown._replace(headline=Headline(level, str(text), ""))
