"""Machines as rows: each topology once however many nodes have it, and what a machine has beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from monitoring.models import Topology
from numacore import topology as core
from numacore.wire import Machine


def store(topologies: Iterable[core.Topology]) -> dict[str, Topology]:
    """The rows of topologies by their hash, made for those that are the first of their kind; documents not loaded."""
    wanted = {topology.hash: topology for topology in topologies}
    found = {row.hash: row for row in Topology.objects.filter(pk__in=wanted).defer("document")}
    made = {digest: _row(topology) for digest, topology in wanted.items() if digest not in found}
    Topology.objects.bulk_create(made.values(), ignore_conflicts=True)
    return found | made


def _row(topology: core.Topology) -> Topology:
    return Topology(
        hash=topology.hash,
        document=msgspec.json.encode(topology, enc_hook=core.enc_hook),
        cpus=len(topology.cpus),
        numa_nodes=len(topology.nodes),
        sockets=len(topology.sockets),
        threads_per_core=topology.threads_per_core(),
    )


def attributes(machine: Machine) -> dict[str, Any]:
    """What a machine has beside its topology, as it reads back from the database."""
    found: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(machine.attributes, enc_hook=core.enc_hook)
    )
    return found
