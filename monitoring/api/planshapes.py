"""What the API answers about plans: where pods would go, why not elsewhere, and what the linter finds. null = unknown."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from monitoring.api.shapes import Bytes, Seconds, Why

Outcome = Literal["crash", "admitted", "refused", "unknown"]


class LintFinding(msgspec.Struct):
    """What is wrong with a workload before anybody places it. error: not placed, or not as asked; warning: likely not as meant."""

    severity: Literal["error", "warning"]
    field: Annotated[str, Meta(description="path in its document")]
    code: str
    text: str
    remedy: str | None


class PlannedMemory(msgspec.Struct):
    """Memory of one kind that the kubelet would bind to NUMA nodes."""

    resource: str
    numa_nodes: list[int]
    size: Bytes


class PlannedContainer(msgspec.Struct):
    """What a container would have for itself. `cpus` null = it would run on shared ones."""

    name: str
    cpus: Annotated[str, Meta(description="list of CPUs")] | None
    memory: list[PlannedMemory]


class VolcanoVerdict(msgspec.Struct):
    """Volcano's verdict on a node. `message` is in its own words; `score` null = it gives none."""

    fits: bool
    text: str
    message: str | None
    score: int | None


class PlanDisagreement(msgspec.Struct):
    """Who refuses what the other accepts."""

    side: Literal["kubelet-refuses", "volcano-refuses"]
    cause: str
    text: str


class PlannedNode(msgspec.Struct):
    """One node's answer. `fits`: how many of the pods it takes one after the other, as far as they were tried (`tried` of the group)."""

    node: str
    outcome: Outcome
    age: Seconds | None
    stale: bool
    policy: str | None
    scope: str | None
    reasons: list[Why]
    fits: int | None
    limited_by: list[Why]
    qos: str | None
    containers: list[PlannedContainer]
    numa_nodes: list[int]
    volcano: VolcanoVerdict | None
    disagreement: PlanDisagreement | None
    policies: Annotated[dict[str, Outcome], Meta(description="under each policy, in this node's scope")]


class PlannedGroup(msgspec.Struct):
    """Equal pods of one workload on every chosen node. `pending`: nodes that there was no time for; the same request goes on there."""

    workload: str
    namespace: str
    replicas: Annotated[int, Meta(description="null: one on every node")] | None
    scheduler: str
    policy: str | None
    tried: int
    summary: str
    best: str | None
    pending: int
    assumptions: list[str]
    findings: list[LintFinding]
    nodes: list[PlannedNode]


class PlanAnswer(msgspec.Struct):
    """Where the pods of a manifest would go. Nothing was changed."""

    cluster: str
    groups: list[PlannedGroup]


class LintedGroup(msgspec.Struct):
    workload: str
    findings: list[LintFinding]


class LintAnswer(msgspec.Struct):
    """What is wrong with the workloads of a manifest, by the capacity of the chosen nodes."""

    cluster: str
    groups: list[LintedGroup]
