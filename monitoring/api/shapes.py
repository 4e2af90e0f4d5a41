"""What the API answers, as types: the OpenAPI document is made from these, so that neither can drift from the other.

null = unknown. Shares are 0 to 1, sizes bytes, times seconds, moments RFC 3339 with their zone. CPU and NUMA node lists
are in the kernel's list format ("0-3,8").
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from monitoring.figures.why import Why
from numacore.kubeletstate import Kubelet
from numacore.report import ContainerReport, NodeReport, Policy
from numacore.topology import Attributes, Performance, Topology
from numacore.wire import Exporter

Bytes = Annotated[int, Meta(description="bytes")]
Share = Annotated[float, Meta(description="share, 0 to 1")]
Seconds = Annotated[float, Meta(description="seconds")]
CpuAmount = Annotated[float, Meta(description="CPUs")]
Address = Annotated[str, Meta(description="path of this API")]
State = Literal["ok", "stale", "no-data"]


class ClusterRow(msgspec.Struct):
    """A cluster. `slug` is its name in addresses."""

    slug: str
    name: str
    kind: Literal["plain", "simulated", "kubernetes"]
    enabled: bool
    created: datetime
    nodes: int
    endpoints: int
    address: Address


class NodeRow(msgspec.Struct):
    """A current node with the figures of its newest report.

    `age` is that of its newest answer, `source` whether that is live (`exporter`) or what was stored last (`store`).
    """

    name: str
    cluster: str
    uid: str | None
    topology: Annotated[
        str | None,
        Meta(description="hash; /topologies/<hash>/ has the machine; null = no exporter ever told of it"),
    ]
    state: State
    source: Literal["exporter", "store"] | None
    age: Seconds | None
    first_seen: datetime
    last_seen: datetime | None
    sockets: int | None
    numa_nodes: int | None
    cpus: int | None
    cpus_offline: int | None
    cpus_reserved: int | None
    cpus_exclusive: int | None
    cpus_shared: int | None
    cpus_unknown: int | None
    cpus_idle: int | None
    memory_total: Bytes | None
    memory_used: Bytes | None
    busy: Share | None
    pinned: int | None
    pinnable: int | None
    cpu_requested: CpuAmount | None
    cpu_allocatable: CpuAmount | None
    cpu_allocation: Share | None
    memory_allocation: Share | None
    requests_unknown: int | None
    topology_policy: str | None
    topology_scope: str | None
    cpu_policy: str | None
    memory_policy: str | None
    containers: int | None
    exclusive_containers: int | None
    crossing: int | None
    crossing_unknown: int | None
    worst_cost: float | None
    problems: int | None
    contradictions: int | None
    address: Address


class ContainerRow(msgspec.Struct):
    """A container that runs now. Outside Kubernetes it has no pod."""

    id: str
    cluster: str
    node: str
    namespace: str | None
    pod: str | None
    pod_uid: str | None
    name: str | None
    told_by_api: Annotated[
        list[Literal["namespace", "pod", "name", "pod_uid"]],
        Meta(
            description="which of these the exporter could not read and the API server's Pod of the same uid told"
        ),
    ]
    owner_kind: str | None
    owner: Annotated[
        str | None, Meta(description="of its pod, by the API server: the Deployment, not its ReplicaSet")
    ]
    kubernetes: bool
    runtime: str | None
    qos: Literal["Guaranteed", "Burstable", "BestEffort"] | None
    kind: Literal["exclusive", "narrowed", "floating"] | None
    cpus: Annotated[str, Meta(description="list of CPUs that it owns, else may run on")] | None
    cpu_count: int | None
    cpu_nodes: Annotated[str, Meta(description="list of NUMA nodes")] | None
    memory_nodes: Annotated[dict[str, int], Meta(description="bytes by NUMA node")] | None
    device_nodes: Annotated[str, Meta(description="list of NUMA nodes")] | None
    locality: Share | None
    cost: Annotated[float, Meta(description="1 = all accesses local")] | None
    remote_pages: Share | None
    cross_cpu: bool | None
    cross_memory: bool | None
    cross_device: bool | None
    crossing: bool | None
    cpu_use: CpuAmount | None
    memory: Bytes | None
    pinning: Annotated[str, Meta(description="code of why it is pinned or not")] | None
    updated: datetime
    age: Seconds
    source: Literal["exporter", "store"]
    address: Address


class EndpointRow(msgspec.Struct):
    """The address of one exporter and how it last answered. Its token is never shown.

    `ca` and `server_name` are for https: whom its certificate must be from, null = an authority that numaweb's machine trusts, and the
    name in it, null = the host of the address.
    """

    id: int
    cluster: str
    url: str
    name: str | None
    has_token: bool
    ca: Annotated[str, Meta(description="certificates in PEM form")] | None
    server_name: str | None
    enabled: bool
    state: Literal["new", "ok", "failing"]
    last_try: datetime | None
    last_ok: datetime | None
    failures: int
    failures_total: int
    error: Annotated[str, Meta(description="cause of the last failure")] | None
    remedy: Annotated[str, Meta(description="code of what to do")] | None
    skew: Annotated[float, Meta(description="seconds by which the node's clock is ahead")] | None
    node: str | None
    conflict: str | None
    address: Address


class EventRow(msgspec.Struct):
    """Something that numaweb saw happen to a node."""

    at: datetime
    code: str
    text: str
    values: dict[str, Any]


class Page(msgspec.Struct, kw_only=True):
    """One page of a list. `next` and `previous` are addresses, null where there is no more."""

    next: str | None
    previous: str | None
    count: Annotated[int, Meta(description="of the whole list, where `count=true` asks for it")] | None = None


class NodePage(Page):
    results: list[NodeRow]


class ContainerPage(Page):
    results: list[ContainerRow]


class EndpointPage(Page):
    results: list[EndpointRow]


class EventPage(Page):
    results: list[EventRow]


class ClusterList(msgspec.Struct):
    results: list[ClusterRow]


class Fleet(msgspec.Struct):
    """Every current node of a cluster in one answer, by name."""

    cluster: str
    taken: datetime
    results: list[NodeRow]


class Live(msgspec.Struct):
    """Whence a node's figures come and how old they are.

    Without live data (`live` false) they are those of the last stored placement. `cause` and `remedy` are codes with
    their sentences in the language that the caller asks for (Accept-Language).
    """

    live: bool
    taken: datetime | None
    age: Seconds | None
    stale: bool
    cause: str | None
    cause_text: str | None
    remedy: str | None
    ownership_age: Annotated[
        Seconds | None,
        Meta(
            description="seconds since the kubelet's socket last told who owns CPUs, memory and devices, where it fails now and that "
            "answer is still shown; null = ownership is as new as the rest"
        ),
    ]
    sections: dict[str, SectionAge]


class SectionAge(msgspec.Struct):
    """One section of an exporter's answer. `age` null = never confirmed."""

    age: Seconds | None
    source: Literal["exporter", "store"]
    hash: str | None


class ReaderProblem(msgspec.Struct):
    """Something that the node's exporter could not read.

    `cause` is as the exporter wrote it; `name` of the reader, `text` of the cause and `remedy` are in the language that the caller asks for.
    """

    reader: str
    name: str
    what: Annotated[str, Meta(description="path of the file or folder on the node, or the flag")]
    code: Annotated[
        str | None,
        Meta(
            description="kind of cause, such as missing, no-right, damaged, distances, hangs; null = unknown"
        ),
    ]
    cause: str
    text: str
    remedy: str
    count: Annotated[int, Meta(description="times since the exporter started")]


class NodeDetail(msgspec.Struct):
    """Everything that is known of one node. `report` and `attributes` null = no exporter ever told of it."""

    node: NodeRow
    data: Live
    report: NodeReport | None
    attributes: Attributes | None
    exporter: Exporter | None
    endpoint: EndpointRow | None
    problems: list[ReaderProblem]
    boot_id: str | None


class NodeTopology(msgspec.Struct):
    """A node's machine and what it has beside it."""

    hash: str
    topology: Topology
    attributes: Attributes


class TopologyDetail(msgspec.Struct):
    """A machine, and how many current nodes are such a one."""

    hash: str
    nodes: int
    threads_per_core: int | None
    topology: Topology


class Distances(msgspec.Struct):
    """The firmware's relative distances: 10 = local, 20 = twice the cost, 255 = unreachable. Rows are "from"."""

    numa_nodes: list[int]
    distances: list[list[int | None]]
    performance: Annotated[
        list[Performance],
        Meta(description="latency in nanoseconds and bandwidth in MB/s, where the firmware has HMAT"),
    ]


class PlacedContainer(msgspec.Struct):
    """One container of a node with its placement, its cost and the reasons."""

    placement: ContainerReport
    pinning: Why
    memory: Why | None


class NodeContainers(msgspec.Struct):
    """The containers of one node, allocation by NUMA node included."""

    data: Live
    results: list[PlacedContainer]


class LostPod(msgspec.Struct):
    """A running pod that the kubelet would refuse to take on again. `message`: the kubelet's own words."""

    uid: str
    name: str
    code: str
    text: str
    message: str


class KubeletRestart(msgspec.Struct):
    """What would happen if the kubelet restarted now, or the node rebooted into the same machine. refuses: it does not start. crashes: it dies starting.
    loses: it starts, and `lost` are not taken on again. `message`: its own words when it does not start."""

    outcome: Literal["survives", "refuses", "crashes", "loses", "unknown"]
    text: str
    detail: str
    message: str | None
    by_chance: Annotated[
        bool,
        Meta(description="whether it starts is chance: groups of NUMA nodes overlap in its memory state"),
    ]
    differences: Annotated[
        list[str], Meta(description="amounts of memory that are not what the state file says")
    ]
    lost: list[LostPod]
    running: Annotated[int, Meta(description="pods that are affected when it does not start")]
    assumptions: list[str]


class NodeKubelet(msgspec.Struct):
    """The kubelet of a node as far as it can be seen: settings with where each was asked, state files, policy."""

    data: Live
    kubelet: Kubelet | None
    policy: Policy | None
    contradictions: list[Why]
    restart: KubeletRestart


class Document(msgspec.Struct):
    """What the exporter sent, as it sent it, section by section."""

    data: Live
    exporter: Exporter | None
    sections: dict[str, Any]


class History(msgspec.Struct):
    """One figure of a node over time, by NUMA node. null in a series = nothing is known of that interval."""

    metric: str
    unit: str
    start: datetime
    end: datetime
    resolution: Seconds
    source: Literal["store", "prometheus"]
    error: Annotated[str, Meta(description="why Prometheus, which was to be asked, did not answer")] | None
    times: Annotated[list[datetime], Meta(description="start of each interval")]
    series: Annotated[
        dict[str, list[float | None]],
        Meta(description="by NUMA node, or `node` for a figure of the whole node"),
    ]


class TotalsValue(msgspec.Struct):
    """Sums over the current nodes, as far as they are known; null = there are nodes, and none of them tells."""

    nodes: int
    nodes_without_data: int
    numa_nodes: int | None
    cpus: Annotated[dict[str, int | None], Meta(description="CPUs by ownership")]
    cpus_total: int | None
    cpus_idle: int | None
    busy: Share | None
    pinned: int | None
    pinnable: int | None
    memory_total: Bytes | None
    memory_used: Bytes | None
    containers: int | None
    exclusive_containers: int | None
    crossing: int | None
    crossing_unknown: int | None
    exclusive_crossing: int | None


class AttentionValue(msgspec.Struct):
    """Something that a person should look at."""

    level: Literal["danger", "warning", "info"]
    code: str
    text: str
    detail: str
    values: dict[str, Any]
    node: str | None
    container: str | None


class ComponentValue(msgspec.Struct):
    """A part of the service. `absent` = not configured."""

    name: str
    label: str
    state: Literal["ok", "failing", "absent"]
    detail: str
    values: dict[str, Any]


class TileValue(msgspec.Struct):
    """One node of the fleet with a value for each of its NUMA nodes, ascending by id."""

    node: str
    topology_policy: str | None
    state: State
    age: Seconds | None
    crossing: int | None
    pinned: list[Share | None]
    busy: list[Share | None]


class RoomFor(msgspec.Struct):
    """How many pods of so many CPUs of their own still fit."""

    cpus: int
    on_one_numa_node: Annotated[int, Meta(description="each on a NUMA node for itself")]
    on_one_node: Annotated[int, Meta(description="if a node's NUMA nodes were one")]


class RoomValue(msgspec.Struct):
    """CPUs that a container may still get for its own, and how much of them lies together."""

    free: int | None
    largest: Annotated[
        int | None, Meta(description="the most that one NUMA node has; null = of none it is known")
    ]
    node: Annotated[str, Meta(description="where that is; empty = nowhere")]
    numa: int | None
    numa_nodes: Annotated[int, Meta(description="NUMA nodes of which it is known")]
    unknown: Annotated[
        int, Meta(description="NUMA nodes of which it is not, a node without any word counted as one")
    ]
    sizes: list[RoomFor]


class ClusterOverview(msgspec.Struct):
    """A cluster at one glance."""

    cluster: str
    taken: datetime
    oldest_age: Annotated[float, Meta(description="seconds, of the nodes that are not stale")] | None
    totals: TotalsValue
    worst: list[ContainerRow]
    room: RoomValue
    policies: Annotated[dict[str, int], Meta(description="nodes by topology policy")]
    attention: list[AttentionValue]
    attention_total: int
    components: list[ComponentValue]
    nodes: list[TileValue]


class Hit(msgspec.Struct):
    """One find of a search."""

    kind: Literal["cluster", "node", "container"]
    label: str
    cluster: str
    node: str | None
    container: str | None
    address: Address


class Hits(msgspec.Struct):
    results: list[Hit]


class SettingsValue(msgspec.Struct):
    """What administrators have set; they change it in the administration."""

    busy_threshold: Share
    detail_hours: int
    minute_days: int
    quarter_days: int
    placement_days: int
    event_days: int
    failure_days: int
    gone_hours: int
    prometheus_url: str | None
    has_prometheus_token: bool
    collect_period: Seconds


class Root(msgspec.Struct):
    """Where everything is."""

    version: str
    addresses: dict[str, str]


class ProblemDetails(msgspec.Struct):
    """RFC 9457. `errors` names parameters and fields, with what is wrong with each."""

    type: str
    title: str
    status: int
    detail: str
    errors: dict[str, Any] = {}
