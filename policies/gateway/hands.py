"""All that a rollout does in one cluster, and which rights that takes."""

from __future__ import annotations

import msgspec
from kubernetes import client

from monitoring.kube.access import Access
from monitoring.kube.rights import Right
from policies.gateway import reaching
from policies.gateway.drains import Drains
from policies.gateway.jobs import Jobs
from policies.gateway.nodes import Nodes

WANTED = (
    Right("get", "", "nodes"),
    Right("list", "", "nodes"),
    Right("patch", "", "nodes"),
    Right("list", "", "pods"),
    Right("create", "", "pods", "eviction"),
    Right("list", "policy", "poddisruptionbudgets"),
)
"""In the whole cluster (charts, files/rbac/rollouts.yaml)."""
WANTED_THERE = (
    Right("get", "batch", "jobs"),
    Right("create", "batch", "jobs"),
    Right("delete", "batch", "jobs"),
)
"""In the namespace of the appliers."""


class Hands:
    """What a rollout works with in one cluster. Raises ApiError, as all that it holds."""

    def __init__(self, access: Access) -> None:
        api = reaching.client_for(access)
        line = reaching.Line(api)
        self._reviews = client.AuthorizationV1Api(api)
        self.nodes, self.drains, self.jobs = Nodes(line), Drains(line), Jobs(line)

    def missing(self, namespace: str) -> list[Right]:
        """Rights that are wanted and not held. `namespace`: of the appliers."""
        there = [msgspec.structs.replace(each, namespace=namespace) for each in WANTED_THERE]
        return [each for each in (*WANTED, *there) if not reaching.allowed(self._reviews, each)]
