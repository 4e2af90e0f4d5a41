"""Would the kubelet that runs on a node survive a restart, or a reboot into the same machine, now; and which pods would it not take on again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from numacore import kubeletstate
from numacore.cpuset import CpuSetError
from numacore.diagnosis import Reason
from numacore.facts import Facts
from numacore.kubelet import checkpoint, cpu_manager, machine, memory_manager, resource, restart, settings
from numacore.kubelet.errors import UnsupportedError
from numacore.kubelet.node import StateFiles
from numacore.kubelet.pod import Container, Pod
from numacore.kubelet.restart import Survival
from numacore.quantity import QuantityError
from numacore.whatif import candidate
from numacore.workload import Container as Seen

Ages = Mapping[str, float]
"""When the API server made each pod, seconds since 1970, by the uid that its kubelet uses. A node does not tell it."""
NO_AGES: Ages = MappingProxyType({})
UNKNOWN_CPU = "1m"
"""Stands for a share of CPUs that nobody knows: anything but a whole number, which the CPU manager leaves alone."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """`survival` None = it cannot be judged, for the reason in `problem`. `assumed`: what had to be taken for granted.

    `running`: names of the pods by uid, as `namespace/name` where they are known.
    """

    survival: Survival | None = None
    problem: Reason | None = None
    assumed: tuple[Reason, ...] = ()
    running: dict[str, str] = {}


def outlook(facts: Facts, ages: Ages = NO_AGES) -> Outlook:
    """What a restart of this node's kubelet would bring, from its settings as they are asked for now and its state files.

    The files are judged by their content: whether their checksums are right, an exporter does not tell. Devices are left out: plugins
    register anew after a restart.
    """
    told = facts.kubelet
    if problem := candidate.unjudged(facts):
        return Outlook(problem=problem)
    assert told is not None
    minor, assumed = candidate.minor_of(told.version)
    seen = machine.of_topology(facts.topology, facts.attributes)
    try:
        asked = {field: setting.value for field, setting in told.settings.items()}
        wanted = settings.of_configuration(asked, minor, seen.memory)
        if problem := _state_unknown(told, wanted):
            return Outlook(problem=problem, assumed=assumed)
        survival = restart.survival(wanted, seen, files_of(told, wanted), running_pods(facts, ages))
    except UnsupportedError as error:
        return Outlook(problem=Reason("would-not-start", {"message": str(error)}), assumed=assumed)
    except (QuantityError, CpuSetError, msgspec.ValidationError) as error:
        return Outlook(problem=Reason("settings-wrong", {"message": str(error)}), assumed=assumed)
    return Outlook(survival=survival, assumed=assumed, running=_names(facts))


def _state_unknown(told: kubeletstate.Kubelet, wanted: settings.Settings) -> Reason | None:
    for manager, state, policy, with_state in (
        ("cpu", told.cpu_state, wanted.cpu_manager_policy, cpu_manager.STATIC),
        ("memory", told.memory_state, wanted.memory_manager_policy, memory_manager.STATIC),
    ):
        if state is None and policy == with_state:
            return Reason("state-unknown", {"manager": manager})
    return None


def files_of(told: kubeletstate.Kubelet, wanted: settings.Settings) -> StateFiles:
    """The state files as the kubelet that wrote them would write them again: under the policy that is in them."""
    cpu, memory = told.cpu_state, told.memory_state
    replace = msgspec.structs.replace
    texts = StateFiles()
    if cpu:
        written_under = replace(wanted, cpu_manager_policy=cpu.policy)
        texts = replace(texts, cpu=checkpoint.write_cpu(checkpoint.of_cpu_report(cpu), written_under))
    if memory:
        written_under = replace(wanted, memory_manager_policy=memory.policy)
        texts = replace(
            texts, memory=checkpoint.write_memory(checkpoint.of_memory_report(memory), written_under)
        )
    return texts


def running_pods(facts: Facts, ages: Ages = NO_AGES) -> list[Pod]:
    """The pods that run, as far as the managers would read them again, the oldest first as a starting kubelet takes them on (kubelet
    1.37, kubelet.go `HandlePodAdditions`). Those of unknown age come last, by uid."""
    told = facts.kubelet
    if told is None:
        return []
    found = _by_pod(facts)
    order = sorted(found, key=lambda uid: (ages.get(uid, math.inf), uid))
    return [_pod(uid, found[uid], told) for uid in order]


def ageless(facts: Facts, ages: Ages) -> int:
    """Number of pods that compete for a place of their own and are of unknown age, when there are several that compete: who of them
    comes first cannot be told."""
    competing = {uid for uid, inside in _by_pod(facts).items() if _competes(inside)}
    unknown = competing - ages.keys()
    return len(unknown) if len(competing) > 1 else 0


Inside = dict[str, Seen]
"""The containers of a pod by name."""


def _by_pod(facts: Facts) -> dict[str, Inside]:
    found: dict[str, Inside] = {}
    for each in facts.containers:
        if each.kubernetes and each.pod_uid and each.name:
            found.setdefault(each.pod_uid, {})[each.name] = each
    return found


def _competes(inside: Inside) -> bool:
    """Whether a pod may have a place of its own: one whose class is known of any container, which is all of theirs."""
    return any(each.qos == "Guaranteed" for each in inside.values())


def _pod(uid: str, inside: Inside, told: kubeletstate.Kubelet) -> Pod:
    """A running pod as far as the managers would read it again: what it holds is what it asks for."""
    if not _competes(inside):
        return Pod(uid, tuple(map(Container, inside)))
    return Pod(uid, tuple(_container(uid, name, each, told) for name, each in inside.items()))


def _container(uid: str, name: str, seen: Seen, told: kubeletstate.Kubelet) -> Container:
    amounts = {resource.CPU: _cpus(uid, name, seen, told), resource.MEMORY: _memory(seen)}
    blocks = told.memory_state.entries.get(uid, {}).get(name, ()) if told.memory_state else ()
    sums: dict[str, int] = {}
    for block in blocks:
        sums[block.kind] = sums.get(block.kind, 0) + block.size
    amounts |= {kind: str(size) for kind, size in sums.items()}
    return Container(name, amounts, amounts)


def _cpus(uid: str, name: str, seen: Seen, told: kubeletstate.Kubelet) -> str:
    held = told.cpu_state.entries.get(uid, {}) if told.cpu_state else {}
    if owned := held.get(name):
        return str(len(owned))
    known = seen.cpu_request
    return f"{round(known * 1000)}m" if known else UNKNOWN_CPU


def _memory(seen: Seen) -> str:
    return str(seen.memory_limit) if isinstance(seen.memory_limit, int) and seen.memory_limit else "1"


def _names(facts: Facts) -> dict[str, str]:
    return {
        each.pod_uid: f"{each.namespace}/{each.pod}" if each.namespace and each.pod else each.pod_uid
        for each in facts.containers
        if each.pod_uid
    }
