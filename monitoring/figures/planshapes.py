"""What programs are told about plans: where pods would go, why not elsewhere, and what the linter finds. null = unknown."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from monitoring.figures.why import Why

Bytes = Annotated[int, Meta(description="bytes")]
Seconds = Annotated[float, Meta(description="seconds")]

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


class PlannedDevices(msgspec.Struct):
    """Devices of one resource. Which of several equal ones a kubelet takes is open."""

    resource: str
    ids: list[str]
    numa_nodes: list[int]


class PlannedContainer(msgspec.Struct):
    """What a container would have for itself. `cpus` null = it would run on shared ones."""

    name: str
    cpus: Annotated[str, Meta(description="list of CPUs")] | None
    memory: list[PlannedMemory]
    devices: list[PlannedDevices]


class VolcanoVerdict(msgspec.Struct):
    """Volcano's verdict on a node. `message` is in its own words; `score` null = it gives none."""

    fits: bool
    text: str
    message: str | None
    score: int | None


class PlanDisagreement(msgspec.Struct):
    """Who refuses what the other accepts, or dies of it."""

    side: Literal["kubelet-refuses", "kubelet-crashes", "volcano-refuses"]
    cause: str
    text: str


class OfferedAmount(msgspec.Struct):
    """What one NUMA node has of a resource: CPUs, bytes or devices."""

    numa_node: int
    free: int
    total: int


class Offered(msgspec.Struct):
    """What a manager offers for one resource. `hints`: the sets of NUMA nodes that would do, narrow ones first, at most 256 of `count`; null = it has
    no preference. `preferred`: those of them that it prefers."""

    resource: str
    requested: int
    amounts: list[OfferedAmount]
    count: int | None
    hints: list[list[int]] | None
    preferred: list[list[int]] | None


class Merged(msgspec.Struct):
    """One merge of hints: of a container, or of the pod as a whole (null). `best` null = any NUMA node."""

    container: str | None
    offers: list[Offered]
    best: list[int] | None
    preferred: bool
    accepted: bool


class Advised(msgspec.Struct):
    """One change that alone would let the pod in; it was judged. request: `container` ("" = the pod as a whole) asks for `value` of `name`, and a `step`
    more is refused. setting: the kubelet's field `name` becomes `value` ("" = taken out). leaving: the pod of the uid `value` goes.
    """

    kind: Literal["request", "setting", "leaving"]
    name: str
    value: str
    container: str
    step: str
    text: str


class PossibleAnswer(msgspec.Struct):
    """An answer that the kubelet may give."""

    outcome: Outcome
    containers: list[PlannedContainer]
    reasons: list[Why]
    text: str


class OtherPolicy(msgspec.Struct):
    """The first pod under another policy and scope of the topology manager on the node as it stands."""

    policy: str
    scope: str
    outcome: Outcome
    cpus: Annotated[str, Meta(description="list of CPUs; empty = shared ones, or refused")]
    text: Annotated[str, Meta(description="why it is refused; empty = it is not")]


class VolcanoStep(msgspec.Struct):
    """One step of Volcano. `message`: the scheduler's own words."""

    stage: Literal["filter", "predicate", "allocation", "score"]
    container: str | None
    text: str
    message: str | None


class Turn(msgspec.Struct):
    """What becomes of one of several workloads when its turn comes on a node. `fits` of `tried` pods find a place."""

    workload: str
    tried: int
    fits: int | None
    outcome: Outcome
    reasons: list[Why]


class PlanTrace(msgspec.Struct):
    """How the answers came about. `open`: every answer that the kubelet may give where it is not deterministic itself, the one that is shown first; empty
    where all is settled."""

    reason: Annotated[str, Meta(description="the kubelet's own word for it; empty = admitted")]
    message: Annotated[str, Meta(description="the kubelet's own sentence")]
    failed_at: Annotated[str, Meta(description="device, cpu or memory: whose allocation failed")] | None
    failed_container: str | None
    merges: list[Merged]
    advice: list[Advised]
    advice_complete: Annotated[
        bool, Meta(description="false: not every smaller request that may help was tried")
    ]
    open: list[PossibleAnswer]
    policies: list[OtherPolicy]
    volcano: list[VolcanoStep]
    turns: list[Turn]


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
    trace: (
        Annotated[PlanTrace, Meta(description="null: not asked for, or beyond the nodes that are traced")]
        | None
    )


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
    after: Annotated[list[str], Meta(description="workloads whose pods stand on each node already")]
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
