"""Nodes of a cluster as candidates for pods, from their newest state. Equal machines and equal states are made once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from django.db.models import F

from monitoring import hot
from monitoring.hot import HotNode
from monitoring.models import Cluster, Node
from monitoring.selectors import configuration, inventory
from monitoring.selectors.planning.memory import Memory
from monitoring.selectors.planning.question import Question, UnknownNodesError
from numacore import lint, wire
from numacore.diagnosis import Reason
from numacore.facts import Facts
from numacore.kubelet import machine
from numacore.kubeletstate import Kubelet
from numacore.lint import Capacity
from numacore.whatif import candidate
from numacore.whatif.candidate import Candidate

Key = tuple[str, ...]
"""Hashes of the sections that decide."""
DECIDING = (wire.MACHINE, wire.KUBELET, wire.CONTAINERS)
BATCH = 100
"""Nodes whose state is taken from the store at a time."""

machines: Memory[tuple[wire.Machine, machine.Machine]] = Memory(64)
candidates: Memory[tuple[Candidate, Capacity]] = Memory(1024)


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A node that pods are to be judged on. `key` is the same for nodes that answer the same, None = it cannot be judged.

    `age`: seconds since its exporter last answered, None = it never did. `kubelet`: its version by the API server, which an exporter
    seldom knows; "" = unknown.
    """

    name: str
    key: Key | None
    state: HotNode | None
    age: float | None
    stale: bool
    kubelet: str = ""


def chosen(cluster: Cluster, question: Question) -> list[Node]:
    """The nodes that a question is about, by name. Raises UnknownNodesError."""
    found = inventory.nodes(cluster).order_by("name").annotate(by_api=F("kubernetes__kubelet_version"))
    if question.find:
        found = found.filter(name__icontains=question.find)
    if question.on:
        found = found.filter(topology_policy=question.on)
    if question.names:
        found = found.filter(name__in=question.names)
        if missing := set(question.names) - {each.name for each in found}:
            raise UnknownNodesError(sorted(missing))
    return list(found)


def known(cluster: Cluster, nodes: Sequence[Node], now: datetime) -> Iterable[Known]:
    """What is known of these nodes, a batch at a time. Raises hot.StoreError."""
    store, moment = hot.store(), now.timestamp()
    heard = {node: at for block in store.cells(cluster.pk) for node, at in block.heard().items()}
    for start in range(0, len(nodes), BATCH):
        batch = nodes[start : start + BATCH]
        states = store.get_many([each.pk for each in batch])
        for each in batch:
            version = str(getattr(each, "by_api", None) or "")
            yield _known(each.name, version, states.get(each.pk), heard.get(each.pk, 0.0), moment)


def _known(name: str, version: str, state: HotNode | None, heard: float, moment: float) -> Known:
    if state is None:
        return Known(name=name, key=None, state=None, age=None, stale=True)
    age = max(0.0, moment - max(state.received, heard))
    key = (*(state.hashes.get(section, "") for section in DECIDING), version)
    stale = age > configuration.stale_after()
    return Known(name=name, key=key, state=state, age=age, stale=stale, kubelet=version)


def candidate_of(known: Known) -> tuple[Candidate, Capacity | None]:
    """The node as a candidate, and what it could give at most; None = unknown."""
    if known.state is None or wire.MACHINE not in known.state.sections:
        return Candidate(name=known.name, problem=Reason("no-data")), None
    state = known.state
    found, most = candidates.got(known.key, lambda: _made(state, known.kubelet))
    return msgspec.structs.replace(found, name=known.name), most


def _made(state: HotNode, version: str) -> tuple[Candidate, Capacity]:
    facts, seen = facts_of(state)
    if version and facts.kubelet and not facts.kubelet.version:
        facts = msgspec.structs.replace(
            facts, kubelet=msgspec.structs.replace(facts.kubelet, version=version)
        )
    return candidate.of_facts("", facts, seen=seen), lint.capacity("", facts)


def facts_of(state: HotNode) -> tuple[Facts, machine.Machine]:
    """What decides about pods: no measurements, which are many times as dear to decode."""
    told, seen = machines.got(state.hashes[wire.MACHINE], lambda: _machine(state.sections))
    kubelet = state.sections.get(wire.KUBELET)
    listed = state.sections.get(wire.CONTAINERS)
    facts = Facts(
        topology=told.topology,
        attributes=told.attributes,
        kubelet=wire.decode_section(Kubelet, kubelet) if kubelet else None,
        containers=wire.decode_section(wire.Containers, listed).containers if listed else (),
    )
    return facts, seen


def _machine(sections: Mapping[str, bytes]) -> tuple[wire.Machine, machine.Machine]:
    told = wire.decode_section(wire.Machine, sections[wire.MACHINE])
    return told, machine.of_topology(told.topology, told.attributes)


def capacities(cluster: Cluster, question: Question, now: datetime) -> list[Capacity]:
    """What the chosen nodes could give at most, as far as anything is known of them. Raises as `plan`."""
    listed = chosen(cluster, question)
    return [most for each in known(cluster, listed, now) if (most := candidate_of(each)[1]) is not None]
