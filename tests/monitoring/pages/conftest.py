"""One small cluster for all page tests: a busy server, a machine with one NUMA node, a node that is silent."""

from __future__ import annotations

import pytest

from monitoring.models import Cluster
from tests.monitoring.pages import machines, seeds

POSTGRES = f"{1:064x}"
"""Id of the pinned container whose memory and device lie elsewhere."""
CART = f"{4:064x}"
"""Id of a container that asks for one and a half CPUs."""


@pytest.fixture
def east(db: None) -> Cluster:
    cluster = seeds.cluster()
    seeds.node(cluster, "node-07", machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1)))
    seeds.node(cluster, "solo", machines.server(machines.topology(sockets=1, numa=1, cores=8, threads=1)))
    silent = machines.server(machines.topology(sockets=2, numa=1, cores=8, threads=2))
    seeds.node(cluster, "silent", silent, heard=0)
    return cluster
