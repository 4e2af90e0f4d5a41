"""Where Volcano's scheduler and the kubelet would answer otherwise on the same pod and node, and what makes the difference.

The cause is found by asking again: what of the kubelet's side, put as Volcano sees it, turns its answer around. Volcano knows CPUs
only, one container after the other, with an old merge of hints and reserved CPUs that it guesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from numacore.kubelet import errors, node, resource, topology_manager
from numacore.kubelet.pod import Container, Pod
from numacore.kubelet.verdict import Verdict
from numacore.manifest import Group
from numacore.volcano.plugin import NodeVerdict, Step
from numacore.whatif.candidate import Candidate

Side = Literal["kubelet-refuses", "kubelet-crashes", "volcano-refuses"]
Cause = Literal[
    "memory",
    "devices",
    "scope",
    "init-containers",
    "full-pcpus-only",
    "reserved-cpus",
    "merge",
    "policy-names",
    "no-numatopology",
    "not-static",
    "core-ids",
    "rules",
    "crash",
]
"""memory: memory or huge pages. scope: pod. full-pcpus-only: Volcano does not know that option. merge: the newer rule that hints must agree. core-ids: unique in a socket only, so that Volcano
takes other CPUs for siblings. rules: the two simply count otherwise.
crash: Volcano foresees none."""


class Disagreement(msgspec.Struct, frozen=True):
    """Who refuses what the other accepts, or dies of it, and the cause."""

    side: Side
    cause: Cause


def disagreement(
    group: Group, candidate: Candidate, kubelet: Verdict, volcano: NodeVerdict
) -> Disagreement | None:
    """None where both agree, or where nobody can tell."""
    fits = volcano.outcomes[0].fit
    if candidate.kubelet is None or fits == kubelet.admitted:
        return None
    if kubelet.outcome in ("panics", "hangs"):
        return Disagreement("kubelet-crashes", "crash")
    if fits:
        return Disagreement(
            "kubelet-refuses", _why_kubelet_refuses(group, candidate.kubelet, kubelet, volcano)
        )
    return Disagreement("volcano-refuses", _why_volcano_refuses(candidate, volcano))


def _why_kubelet_refuses(group: Group, kubelet: node.Node, verdict: Verdict, volcano: NodeVerdict) -> Cause:
    if verdict.failure and verdict.failure.provider == "memory":
        return "memory"
    if verdict.failure and verdict.failure.provider == "device":
        return "devices"
    if verdict.reason == errors.SMT_ALIGNMENT:
        return "full-pcpus-only"
    for cause, changed, pod in _as_volcano_sees(kubelet, group.pod):
        if _admits(changed, pod):
            return cause
    if _reserved_differ(kubelet, volcano.outcomes[0].steps):
        return "reserved-cpus"
    return "merge" if verdict.reason == errors.TOPOLOGY_AFFINITY else "rules"


def _as_volcano_sees(kubelet: node.Node, pod: Pod) -> Iterator[tuple[Cause, node.Node, Pod]]:
    """The kubelet's side, one thing at a time put as Volcano sees it."""
    yield "memory", msgspec.structs.replace(kubelet, memory=None), pod
    yield "devices", kubelet, _without_devices(pod)
    if kubelet.topology and kubelet.topology.scope == topology_manager.POD:
        scope = msgspec.structs.replace(kubelet.topology, scope=topology_manager.CONTAINER)
        yield "scope", msgspec.structs.replace(kubelet, topology=scope), pod
    if pod.init:
        yield "init-containers", kubelet, msgspec.structs.replace(pod, init=())


def _admits(kubelet: node.Node, pod: Pod) -> bool:
    return node.admit(kubelet, msgspec.structs.replace(pod, uid="asked-again"))[1].admitted


def _without_devices(pod: Pod) -> Pod:
    return msgspec.structs.replace(
        pod,
        init=tuple(map(_cpu_and_memory, pod.init)),
        containers=tuple(map(_cpu_and_memory, pod.containers)),
    )


def _cpu_and_memory(container: Container) -> Container:
    def kept(amounts: dict[str, str]) -> dict[str, str]:
        return {
            name: amount
            for name, amount in amounts.items()
            if name == resource.CPU or resource.is_memory(name)
        }

    return msgspec.structs.replace(
        container, requests=kept(container.requests), limits=kept(container.limits)
    )


def _reserved_differ(kubelet: node.Node, steps: tuple[Step, ...]) -> bool:
    reserved = kubelet.cpu.reserved if kubelet.cpu else 0
    return any(step.reserved.bits != reserved for step in steps)


def _why_volcano_refuses(candidate: Candidate, volcano: NodeVerdict) -> Cause:
    outcome = volcano.outcomes[0]
    by_cause: dict[str, Cause] = {
        "no-numatopology": "no-numatopology",
        "not-static": "not-static",
        "other-policy": "policy-names",
    }
    if outcome.cause in by_cause:
        return by_cause[outcome.cause]
    if candidate.volcano and _core_ids_repeat(candidate):
        return "core-ids"
    if candidate.kubelet and _reserved_differ(candidate.kubelet, outcome.steps):
        return "reserved-cpus"
    return "rules"


def _core_ids_repeat(candidate: Candidate) -> bool:
    """Whether a core id stands in more than one socket."""
    sockets: dict[int, set[int]] = {}
    for cpu in candidate.volcano.cpus.values() if candidate.volcano else ():
        sockets.setdefault(cpu.core, set()).add(cpu.socket)
    return any(len(each) > 1 for each in sockets.values())
