"""Cases written by hand: each shows one rule that random cases hardly reach. What the kubelet says to them is recorded."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from tests.oracle.configs import taken_by

Form = dict[str, Any]
GIBI = 1 << 30


def _machine(nodes: int, cores: int = 4, *, ids: Sequence[int] = (), sockets: int = 0) -> list[Form]:
    """Nodes of 8 GiB, 64 pages of 2 MiB and cores of two threads, numbered core by core."""
    sockets = sockets or nodes
    return [
        {
            "ID": ids[at] if ids else at,
            "Memory": 8 * GIBI,
            "HugePages": {"2048": 64},
            "Distances": [10 if other == at else 20 for other in range(nodes)],
            "Cores": [
                {
                    "ID": core,
                    "Socket": at * sockets // nodes,
                    "Threads": [2 * core, 2 * core + 1],
                    "Uncore": at,
                }
                for core in range(at * cores, (at + 1) * cores)
            ],
        }
        for at in range(nodes)
    ]


def _config(policy: str = "none", scope: str = "container", **changes: Any) -> Form:
    """CPU manager static with CPU 0 reserved, memory manager Static with 1 GiB on NUMA node 0."""
    config = {
        "TopologyPolicy": policy,
        "Scope": scope,
        "TopologyOptions": {},
        "CPUPolicy": "static",
        "CPUOptions": {},
        "ReservedCPUs": "0",
        "Reservation": {"cpu": "1", "memory": "1Gi"},
        "MemoryPolicy": "Static",
        "ReservedMemory": [{"Numa": 0, "Limits": {"memory": "1Gi"}}],
        "Gates": {},
    }
    return config | changes


def _container(name: str, cpu: str = "1", memory: str = "1Gi", *, sidecar: bool = False, **more: str) -> Form:
    """Guaranteed; `pages="4Mi"` are huge pages, anything else devices."""
    asked = {"cpu": cpu, "memory": memory} | {
        "hugepages-2Mi" if kind == "pages" else f"example.com/{kind}": size for kind, size in more.items()
    }
    return {"Name": name, "Requests": asked, "Limits": asked} | (
        {"RestartPolicy": "Always"} if sidecar else {}
    )


def _pod(uid: str, *containers: Form, init: Iterable[Form] = (), whole: Form | None = None) -> Form:
    pod = {"UID": uid, "Init": list(init), "Containers": list(containers) or [_container("c")]}
    return pod | ({"PodRequests": whole, "PodLimits": whole} if whole else {})


def _admit(uid: str, *containers: Form, init: Iterable[Form] = (), whole: Form | None = None) -> Form:
    return {"Admit": _pod(uid, *containers, init=init, whole=whole)}


def _devices(resource: str, **numa: Sequence[int] | None) -> Form:
    """Healthy devices by id with their NUMA nodes; None = the device is ill, on node 0."""
    return {
        "Resource": f"example.com/{resource}",
        "Devices": [
            {"ID": each, "Numa": list(nodes)}
            if nodes is not None
            else {"ID": each, "Numa": [0], "Unhealthy": True}
            for each, nodes in numa.items()
        ],
    }


def _case(
    identity: str, machine: list[Form], config: Form, *steps: Form, devices: Sequence[Form] = ()
) -> Form:
    case = {"ID": identity, "Machine": machine, "Config": config, "Steps": list(steps)}
    return case | ({"Devices": list(devices)} if devices else {})


def _few_pages_on_the_first(machine: list[Form]) -> list[Form]:
    first, *others = machine
    return [first | {"HugePages": {"2048": 10}}, *others]


_WHOLE_PODS: Form = {"PodLevelResourceManagers": True, "PodLevelResources": True}
_DEVICES_ALONE: Form = {"CPUPolicy": "none", "MemoryPolicy": "None", "ReservedCPUs": "", "ReservedMemory": []}
_MEMORY_ALONE: Form = {"CPUPolicy": "none", "ReservedCPUs": ""}
_ONE_EACH = _devices("gpu", a=[0], b=[1])
_RESERVED_IN_EACH: Form = {"ReservedCPUs": "0,11,12,23", "Reservation": {"cpu": "4", "memory": "1Gi"}}
_IN_WHOLE_CORES: Form = {"distribute-cpus-across-numa": "true", "full-pcpus-only": "true"}

_WRONG: tuple[Form, ...] = (
    {"MemoryPolicy": "BestEffort"},
    {"MemoryPolicy": "static"},
    {"TopologyPolicy": "Restricted"},
    {"Scope": "Pod"},
    {"CPUPolicy": "Static"},
    {"ReservedMemory": []},
    {"ReservedMemory": [{"Numa": 7, "Limits": {"memory": "1Gi"}}]},
    {"Reservation": {"cpu": "1"}, "ReservedMemory": []},
    {"Reservation": {"memory": "1Gi"}, "ReservedCPUs": ""},
    {"Reservation": {"cpu": "17", "memory": "1Gi"}, "ReservedCPUs": ""},
    {"TopologyOptions": {"max-allowable-numa-nodes": "7"}},
    {"TopologyOptions": {"max-allowable-numa-nodes": "many"}},
    {"TopologyOptions": {"prefer-closest-numa-nodes": "sometimes"}},
    {"TopologyOptions": {"closest": "true"}},
    {"CPUOptions": {"full-pcpus-only": "sometimes"}},
    {"CPUOptions": {"whole-cores": "true"}},
    {"CPUOptions": {"distribute-cpus-across-cores": "true", "full-pcpus-only": "true"}},
    {
        "CPUOptions": {"distribute-cpus-across-cores": "true"},
        "Gates": {"CPUManagerPolicyAlphaOptions": False},
    },
)
"""Settings on which the kubelet ends, or does not."""

WRITTEN: tuple[Form, ...] = (
    # CPUs in equal shares
    _case(
        "never-comes-back",
        _machine(4, 3),
        _config(CPUOptions=_IN_WHOLE_CORES, **_RESERVED_IN_EACH),
        _admit("p", _container("c", "14")),
        _admit("q"),
    ),
    # Devices
    _case(
        "devices-of-a-pod-that-comes-back",
        _machine(2),
        _config("restricted", **_DEVICES_ALONE),
        _admit("p", _container("c", gpu="1")),
        {"Remove": "p"},
        _admit("q"),
        {"Restart": {}},
        _admit("p", _container("c", gpu="2")),
        devices=[_ONE_EACH],
    ),
    _case(
        "devices-of-a-pod-that-comes-back-after-a-report",
        _machine(2),
        _config("restricted", **_DEVICES_ALONE),
        _admit("p", _container("c", gpu="1")),
        {"Remove": "p"},
        _admit("q"),
        {"Devices": [_ONE_EACH]},
        {"Restart": {}},
        _admit("p", _container("c", gpu="2")),
        devices=[_ONE_EACH],
    ),
    _case(
        "devices-of-a-pod-that-comes-back-after-two-restarts",
        _machine(2),
        _config("restricted", **_DEVICES_ALONE),
        _admit("p", _container("c", gpu="1")),
        {"Restart": {}},
        {"Remove": "p"},
        _admit("q"),
        {"Restart": {}},
        _admit("p", _container("c", gpu="2")),
        devices=[_ONE_EACH],
    ),
    _case(
        "devices-gone-twice",
        _machine(2),
        _config("restricted", **_DEVICES_ALONE),
        _admit("p", _container("c", gpu="1")),
        _admit("q", _container("c", gpu="1")),
        {"Remove": "p"},
        _admit("r"),
        {"Remove": "q"},
        _admit("s"),
        {"Restart": {}},
        _admit("p", _container("c", gpu="2")),
        devices=[_ONE_EACH],
    ),
    _case(
        "device-of-no-numa-node-used-again",
        _machine(2),
        _config("best-effort"),
        _admit("p", _container("c", gpu="1"), init=[_container("i", "500m", gpu="3")]),
        devices=[_devices("gpu", a=[], b=[1], c=[1])],
    ),
    _case(
        "no-device-at-all",
        _machine(2),
        _config("restricted", **_DEVICES_ALONE),
        _admit("p", _container("c", gpu="0")),
        devices=[_ONE_EACH],
    ),
    _case(
        "device-of-an-init-container-has-to-be-near",
        _machine(2),
        _config("restricted", **_DEVICES_ALONE),
        _admit("p", _container("c", gpu="1", nic="1"), init=[_container("i", gpu="1")]),
        devices=[_ONE_EACH, _devices("nic", x=[1])],
    ),
    _case(
        "more-devices-than-before",
        _machine(2),
        _config(**_DEVICES_ALONE),
        _admit("p", _container("c", gpu="1")),
        {"Restart": {}},
        _admit("p", _container("c", gpu="2")),
        devices=[_ONE_EACH],
    ),
    _case(
        "device-that-fell-ill",
        _machine(2),
        _config(**_DEVICES_ALONE),
        _admit("p", _container("c", gpu="2")),
        {"Devices": [_devices("gpu", a=None, b=[1])]},
        {"Restart": {}},
        _admit("p", _container("c", gpu="2")),
        devices=[_devices("gpu", a=[0], b=[1])],
    ),
    _case(
        "device-far-away-before-one-that-is-nowhere",
        _machine(2),
        _config("best-effort"),
        _admit("q", _container("c", "8")),
        _admit("p", _container("c", "2", gpu="1")),
        devices=[_devices("gpu", a=[], b=[1])],
    ),
    _case(
        "numa-nodes-without-a-device",
        _machine(2),
        _config("best-effort"),
        _admit("p", _container("c", "10", gpu="1")),
        devices=[_devices("gpu", a=[0])],
    ),
    # Memory
    _case(
        "default-hint-not-preferred",
        _machine(2),
        _config("best-effort", **_MEMORY_ALONE),
        _admit("wide", _container("c", memory="12Gi")),
        _admit("p", _container("a")),
        {"Restart": {"Config": _config("single-numa-node", "pod", **_MEMORY_ALONE)}},
        _admit("p", _container("a"), _container("b")),
    ),
    _case(
        "memory-that-is-no-whole-number",
        _machine(2),
        _config(**_MEMORY_ALONE),
        _admit("p", _container("c", memory="1.5Gi")),
        _admit("q", _container("c", memory="1536Mi")),
    ),
    _case(
        "memory-of-a-pod-that-is-no-whole-number",
        _machine(2),
        _config("restricted", "pod"),
        _admit("p", _container("c", memory="1.5Gi")),
    ),
    _case(
        "memory-of-a-pod-as-a-whole-that-is-no-whole-number",
        _machine(2),
        _config("restricted", "pod", Gates=_WHOLE_PODS),
        _admit("p", _container("c"), whole={"cpu": "2", "memory": "1.5Gi"}),
    ),
    _case(
        "memory-of-a-pod-that-the-managers-leave-alone",
        _machine(2),
        _config(
            "restricted",
            Gates={"PodLevelResources": True, "PodLevelResourceManagers": False},
            **_MEMORY_ALONE,
        ),
        _admit("wide", _container("c", memory="12Gi")),
        _admit("p", _container("c", "2"), whole={"cpu": "2", "memory": "1Gi"}),
    ),
    _case(
        "taken-on-again-as-a-pod",
        _machine(2),
        _config("single-numa-node", "pod"),
        _admit("p", _container("c", "2", "6Gi")),
        {"Restart": {}},
        _admit("p", _container("c", "2", "6Gi")),
        _admit("q", _container("c", "2", "2Gi")),
    ),
    _case(
        "extended-hint-not-preferred",
        _few_pages_on_the_first(_machine(2)),
        _config("restricted", "pod"),
        _admit("p", _container("c"), init=[_container("i", pages="60Mi")]),
    ),
    _case(
        "default-hint-without-a-policy",
        _machine(2),
        _config(**_MEMORY_ALONE),
        _admit("wide", _container("c", memory="12Gi")),
        _admit("p", _container("c")),
    ),
    _case(
        "memory-of-a-gone-pod-without-a-policy",
        _machine(2),
        _config(**_MEMORY_ALONE),
        _admit("p", _container("c", memory="6Gi")),
        {"Remove": "p"},
        _admit("q", _container("c", memory="6Gi")),
    ),
    _case(
        "memory-of-numa-nodes-that-serve-others-alone",
        _machine(2),
        _config("best-effort"),
        _admit("a", _container("c", "500m", "5Gi")),
        _admit("b", _container("c", "500m", "5Gi")),
        _admit("p", _container("c", "10", "4Gi")),
    ),
    _case(
        "memory-of-a-numa-node-in-another-group",
        _machine(3),
        _config("best-effort", ReservedCPUs="0-5", Reservation={"cpu": "6", "memory": "1Gi"}),
        _admit("wide", _container("c", "500m", "12Gi")),
        _admit("q", _container("c", "500m", "6Gi")),
        _admit("p", _container("c", "12", "4Gi")),
    ),
    _case(
        "one-kind-of-memory-more-than-before",
        _machine(2),
        _config("restricted", **_MEMORY_ALONE),
        _admit("p", _container("c")),
        {"Restart": {}},
        _admit("p", _container("c", pages="4Mi")),
    ),
    # NUMA ids
    _case(
        "numa-id-beyond-a-mask",
        _machine(2, ids=(0, 64)),
        _config("restricted", MemoryPolicy="None", ReservedMemory=[]),
        _admit("p"),
    ),
    _case(
        "numa-id-beyond-a-mask-without-a-policy",
        _machine(2, ids=(0, 64)),
        _config(**_MEMORY_ALONE),
        _admit("p"),
    ),
    _case(
        "numa-id-beyond-a-mask-and-nobody-manages",
        _machine(2, ids=(0, 64)),
        _config("restricted", **_DEVICES_ALONE),
        _admit("p"),
    ),
    _case(
        "one-numa-node-whose-id-is-past-its-distances",
        _machine(1, ids=(1,)),
        _config(
            "restricted",
            TopologyOptions={"prefer-closest-numa-nodes": "true"},
            ReservedMemory=[{"Numa": 1, "Limits": {"memory": "1Gi"}}],
        ),
        _admit("p"),
    ),
    _case(
        "numa-id-beyond-the-distances",
        _machine(3, ids=(0, 1, 4)),
        _config(
            "best-effort",
            TopologyOptions={"prefer-closest-numa-nodes": "true"},
            MemoryPolicy="None",
            ReservedMemory=[],
        ),
        _admit("narrow", _container("c", "2")),
        _admit("wide", _container("c", "17")),
    ),
    # Starts
    *(
        _case(f"no-start-{number}", _machine(2), _config("restricted", **changes), _admit("p"))
        for number, changes in enumerate(_WRONG)
    ),
    # Pods that ask as a whole
    _case(
        "whole-pod-that-goes",
        _machine(2),
        _config("restricted", "pod", Gates=_WHOLE_PODS),
        _admit("p", _container("a", "2"), _container("b", "0", "0"), whole={"cpu": "4", "memory": "6Gi"}),
        {"Restart": {}},
        {"Remove": "p"},
        _admit("q", _container("c", "7", "6Gi")),
    )
    | {"KeepState": True},
    _case(
        "whole-pod-that-goes-when-nobody-manages-such-pods-any-more",
        _machine(2),
        _config("restricted", "pod", Gates=_WHOLE_PODS),
        _admit("p", _container("a", "2"), _container("b", "0", "0"), whole={"cpu": "4", "memory": "6Gi"}),
        {"Restart": {"Config": _config("restricted", "pod", Gates={"PodLevelResourceManagers": False})}},
        {"Remove": "p"},
        _admit("q", _container("c", "7", "6Gi")),
    )
    | {"KeepState": True},
)


def written(minor: int) -> list[Form]:
    """The cases for one kubelet: without the feature gates that it refuses."""
    cases = copy.deepcopy(list(WRITTEN))
    for case in cases:
        for holder in (case, *(step["Restart"] for step in case["Steps"] if "Restart" in step)):
            if "Config" in holder:
                holder["Config"] = taken_by(minor, holder["Config"])
    return cases
