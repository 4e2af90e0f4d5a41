"""Why a container is pinned or not, and why its memory is far away."""

import pytest

from numacore import diagnosis
from numacore.cpuset import CpuSet
from numacore.diagnosis import Reason
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState
from numacore.workload import QOS, Container, Cross, Kind, Max, MemoryBlock

STATIC = Kubelet(present=True, cpu_state=CpuManagerState("static", CpuSet(), {}))
NONE = Kubelet(present=True, cpu_state=CpuManagerState("none", CpuSet(), {}))
UNREAD = Kubelet(present=True, unread=("/var/lib/kubelet/config.yaml",))
MANAGED = Kubelet(present=True, memory_state=MemoryManagerState("Static", {}, {}, {}))


def pod(
    qos: QOS | None = "Guaranteed", limit: float | Max | None = 2.0, exclusive: str | None = ""
) -> Container:
    owned = None if exclusive is None else CpuSet.parse(exclusive)
    return Container(id="c", qos=qos, cpu_limit=limit, exclusive=owned)


@pytest.mark.parametrize(
    ("container", "kubelet", "kind", "reason"),
    [
        (pod(exclusive="2-3"), STATIC, "exclusive", Reason("pinned", {"cpus": 2})),
        (pod(exclusive="2"), None, "exclusive", Reason("pinned", {"cpus": 1})),
        (Container(id="c", kubernetes=False), None, "floating", Reason("plain")),
        (Container(id="c", kubernetes=False), STATIC, "narrowed", Reason("plain-cpuset")),
        (Container(id="c", kubernetes=False), None, None, Reason("plain")),
        (pod(), None, "floating", Reason("unknown-kubelet")),
        (pod(), Kubelet(), "floating", Reason("unknown-kubelet")),
        (pod(), NONE, "floating", Reason("policy-none", {"policy": "none"})),
        (pod(), UNREAD, "floating", Reason("unknown-kubelet")),
        (pod(qos=None), STATIC, "floating", Reason("unknown-qos")),
        (pod(qos="Burstable"), STATIC, "floating", Reason("qos", {"qos": "Burstable"})),
        (pod(qos="BestEffort"), STATIC, "floating", Reason("qos", {"qos": "BestEffort"})),
        (pod(limit=1.5), STATIC, "floating", Reason("fraction", {"cpus": 1.5})),
        (pod(limit=0.1 + 0.2), STATIC, "floating", Reason("fraction", {"cpus": 0.3})),
        (pod(exclusive=None), STATIC, "floating", Reason("unknown-state")),
        (pod(limit=None, exclusive=None), STATIC, "floating", Reason("unknown-state")),
        (pod(), STATIC, "floating", Reason("late")),  # whole CPUs, Guaranteed, and older than the policy
    ],
)
def test_pinning(container: Container, kubelet: Kubelet | None, kind: Kind | None, reason: Reason) -> None:
    assert diagnosis.pinning(container, kubelet, kind) == reason


def managed(*numa: tuple[int, ...]) -> Container:
    return Container(id="c", memory_blocks=tuple(MemoryBlock("memory", 1, each) for each in numa))


@pytest.mark.parametrize(
    ("container", "kubelet", "cross", "reason"),
    [
        (pod(), MANAGED, None, None),
        (pod(), MANAGED, (), None),
        (pod(), MANAGED, ("cpu", "device"), None),
        (pod(), None, ("memory",), Reason("memory-first-touch")),
        (Container(id="c", kubernetes=False), MANAGED, ("memory",), Reason("memory-first-touch")),
        (pod(), UNREAD, ("memory",), None),
        (pod(), NONE, ("cpu", "memory"), Reason("memory-manager-none", {"policy": "None"})),
        (pod(), MANAGED, ("memory",), Reason("memory-not-managed")),
        (managed((0, 1)), MANAGED, ("memory",), Reason("memory-group")),
        (managed((0,)), MANAGED, ("memory",), Reason("memory-moved")),
        (managed((0,), (0, 1)), MANAGED, ("memory",), Reason("memory-moved")),
    ],
)
def test_remote_memory(
    container: Container, kubelet: Kubelet | None, cross: tuple[Cross, ...] | None, reason: Reason | None
) -> None:
    assert diagnosis.remote_memory(container, kubelet, cross) == reason
