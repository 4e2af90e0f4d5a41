"""Kubernetes objects with the fields that numaweb uses, and no others: what is not named here is skipped while reading.

Names are Kubernetes's own in Python's spelling. Absent is None where absence says something, and empty where Kubernetes itself
means the same by both. Quantities stay the text that was written (`numacore.quantity` reads them). No object can be
part of a circle, so the garbage collector is told to leave them alone; with 150,000 pods that is a third of the time.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import field

Amount = str | int
"""A quantity in a custom resource, which may be a number there (`x-kubernetes-int-or-string`)."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """What all structs here have in common."""


class OwnerReference(Value, frozen=True):
    kind: str
    name: str
    uid: str
    controller: bool = False


class ObjectMeta(Value, frozen=True):
    """`namespace` is empty for what belongs to the cluster."""

    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class KubeObject(Value, frozen=True):
    """Anything that has a name and a uid."""

    metadata: ObjectMeta


class Condition(Value, frozen=True):
    """`status` is True, False or Unknown, as text."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


# ---------------------------------------------------------------- core/v1 Node


class Taint(Value, frozen=True):
    key: str
    effect: str
    value: str = ""


class NodeSpec(Value, frozen=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeAddress(Value, frozen=True):
    type: str
    address: str


class NodeSystemInfo(Value, frozen=True):
    kubelet_version: str = ""
    machine_id: str = field(default="", name="machineID")
    boot_id: str = field(default="", name="bootID")
    system_uuid: str = field(default="", name="systemUUID")
    architecture: str = ""
    os_image: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""


class DaemonEndpoint(Value, frozen=True):
    port: int = field(default=0, name="Port")


class DaemonEndpoints(Value, frozen=True):
    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


class NodeStatus(Value, frozen=True):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    daemon_endpoints: DaemonEndpoints = DaemonEndpoints()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(KubeObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# ---------------------------------------------------------------- core/v1 Pod


class ResourceClaim(Value, frozen=True):
    """A claim of the pod that a container uses (dynamic resource allocation)."""

    name: str
    request: str = ""


class ResourceRequirements(Value, frozen=True):
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    claims: tuple[ResourceClaim, ...] = ()


class ContainerPort(Value, frozen=True):
    container_port: int
    name: str = ""
    protocol: str = "TCP"


class Container(Value, frozen=True):
    """`restart_policy` is Always for an init container that keeps running (a sidecar)."""

    name: str
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()


class PodSpec(Value, frozen=True):
    """`resources` are those of the whole pod (1.34 on), None where only containers have some."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: dict[str, str] = {}


class ContainerStateWaiting(Value, frozen=True):
    reason: str = ""


class ContainerStateRunning(Value, frozen=True):
    """That it is there says everything."""


class ContainerState(Value, frozen=True):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None


class ContainerStatus(Value, frozen=True):
    """`container_id` carries the runtime before it: `containerd://...`."""

    name: str
    container_id: str = field(default="", name="containerID")
    state: ContainerState = ContainerState()
    restart_count: int = 0


class PodStatus(Value, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = field(default="", name="podIP")
    qos_class: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(KubeObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# ---------------------------------------------------------------- core/v1 Event


class ObjectReference(Value, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class EventSource(Value, frozen=True):
    component: str = ""
    host: str = ""


class EventSeries(Value, frozen=True):
    count: int = 0
    last_observed_time: datetime | None = None


class Event(KubeObject, frozen=True):
    """Events of both groups, read as core/v1: older writers fill `source`, `count` and two timestamps, newer ones the rest."""

    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None

    @property
    def times(self) -> int:
        """How often it happened."""
        return max(1, self.series.count if self.series else self.count)

    @property
    def last(self) -> datetime | None:
        """When it happened last."""
        said = (
            self.series.last_observed_time if self.series else None,
            self.last_timestamp,
            self.event_time,
            self.first_timestamp,
        )
        return next((time for time in said if time is not None), self.metadata.creation_timestamp)

    @property
    def first(self) -> datetime | None:
        """When it happened first."""
        return self.first_timestamp or self.event_time or self.metadata.creation_timestamp


# ---------------------------------------------------------------- apps/v1 DaemonSet


class LabelSelectorRequirement(Value, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class TemplateMeta(Value, frozen=True):
    """Of objects that are still to be made: without name and uid."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(Value, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Value, frozen=True):
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()


class DaemonSetStatus(Value, frozen=True):
    """Numbers of nodes."""

    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0


class DaemonSet(KubeObject, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


# ---------------------------------------------------------------- nodeinfo.volcano.sh/v1alpha1 Numatopology


class NumaResource(Value, frozen=True):
    """`allocatable` is a cpuset for `cpu`: the CPUs that nobody owns. `capacity` is a number of CPUs."""

    allocatable: str = ""
    capacity: int | None = None


class CpuDetail(Value, frozen=True):
    """Volcano's Go type leaves zeros out, so absent means 0 here."""

    numa: int = 0
    socket: int = 0
    core: int = 0


class ContainerAllocation(Value, frozen=True):
    """`allocations`: a cpuset for `cpu`, a quantity for anything else."""

    name: str = ""
    allocations: dict[str, str] = {}


class PodAllocation(Value, frozen=True):
    """Either names (written from PodResources) or the uid alone (from the CPU manager's state file)."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    container_allocations: tuple[ContainerAllocation, ...] = ()


class NumatopologySpec(Value, frozen=True):
    """`pod_allocations` is None where the definition of the resource has no such field (Volcano 1.15 and older)."""

    policies: dict[str, str] = {}
    res_reserved: dict[str, Amount] = {}
    numares: dict[str, NumaResource] = {}
    cpu_detail: dict[str, CpuDetail] = {}
    pod_allocations: tuple[PodAllocation, ...] | None = None


class Numatopology(KubeObject, frozen=True):
    """Volcano's view of one node, which it is named after. volcano.sh/apis 1.15, nodeinfo/v1alpha1/numatopo_types.go."""

    spec: NumatopologySpec = NumatopologySpec()


# ---------------------------------------------------------------- topology.node.k8s.io NodeResourceTopology


class Attribute(Value, frozen=True):
    name: str
    value: str = ""


class ZoneCost(Value, frozen=True):
    """The distance from one zone to the zone of this name."""

    name: str
    value: int


class ZoneResource(Value, frozen=True):
    name: str
    capacity: Amount | None = None
    allocatable: Amount | None = None
    available: Amount | None = None


class Zone(Value, frozen=True):
    """A NUMA node (`type: Node`), named `node-0` and so on."""

    name: str
    type: str = ""
    parent: str = ""
    costs: tuple[ZoneCost, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    resources: tuple[ZoneResource, ...] = ()


class NodeResourceTopology(KubeObject, frozen=True):
    """v1alpha1 says its policies in `topology_policies`, v1alpha2 in `attributes` (and keeps the older field for a while).

    k8stopologyawareschedwg/noderesourcetopology-api 0.1.2, types.go of both versions: no `spec` around the fields.
    """

    topology_policies: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    zones: tuple[Zone, ...] = ()
