"""What passes the checks starts, and what they say for the managers is what the managers say."""

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from numacore.kubelet import node
from numacore.kubelet.checks.assembly import File, Sources
from numacore.kubelet.checks.check import check
from numacore.kubelet.checks.documents import read
from numacore.kubelet.errors import StartError
from numacore.kubelet.machine import Machine
from numacore.kubelet.settings import MemoryReservation, Settings
from tests.numacore.kubelet.builders import machine

BOOLEANS = st.sampled_from(["true", "false", "1", "maybe"])
CPU_OPTIONS = ["full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket", "distribute-cpus-across-cores", "strict-cpu-reservation",
               "prefer-align-cpus-by-uncorecache", "nonsense"]  # fmt: skip
AMOUNTS = st.sampled_from(["0", "500m", "1", "1Gi", "100Mi", "1124Mi", "1.5Gi"])
FIELDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "cpuManagerPolicy": st.sampled_from(["none", "static", "Static"]),
        "memoryManagerPolicy": st.sampled_from(["None", "Static", "static"]),
        "topologyManagerPolicy": st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
        "topologyManagerScope": st.sampled_from(["container", "pod"]),
    },
    optional={
        "cpuManagerPolicyOptions": st.dictionaries(st.sampled_from(CPU_OPTIONS), BOOLEANS, min_size=1, max_size=2),
        "topologyManagerPolicyOptions": st.dictionaries(
            st.sampled_from(["prefer-closest-numa-nodes", "max-allowable-numa-nodes"]), st.sampled_from(["true", "8", "x", "16"]), min_size=1
        ),
        "reservedSystemCPUs": st.sampled_from(["0", "0-1", "0,4", "4-7"]),
        "kubeReserved": st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNTS, min_size=1),
        "evictionHard": st.sampled_from([{}, {"memory.available": "100Mi"}, {"memory.available": "10%"}]),
        "reservedMemory": st.lists(
            st.fixed_dictionaries({"numaNode": st.integers(0, 2), "limits": st.just({"memory": "1124Mi"}) | st.just({"hugepages-2Mi": "2Mi"})}),
            min_size=1, max_size=2, unique_by=lambda each: (each["numaNode"], str(each["limits"])),
        ),
        "featureGates": st.dictionaries(st.sampled_from(["CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions"]), st.booleans(), min_size=1),
    },
)  # fmt: skip


@settings(max_examples=120, deadline=None, derandomize=True)
@given(fields=FIELDS, minor=st.sampled_from([34, 35, 36, 37]), nodes=st.sampled_from([1, 2, 9]))
def test_the_checks_and_the_managers_agree(fields: dict[str, Any], minor: int, nodes: int) -> None:
    on = machine(nodes, cores=4)
    head = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    found = check(Sources(minor=minor, file=File("config.yaml", read(yaml.safe_dump(head | fields)))), on)
    refused = refusal(fields, minor, on)
    if refused is None:
        assert found.starts, found.told
        assert found.settings is not None
        return
    (finding,) = found.told
    assert {finding.words, *finding.alternatives} == {str(refused), *refused.alternatives}
    assert (finding.stage, finding.severity) == ("managers", "fatal")
    assert finding.field in fields or finding.reason.code in ("no-reserved-cpus", "memory-sum", "memory-none")
    assert finding.reason.code != "managers-refuse"


def refusal(fields: dict[str, Any], minor: int, on: Machine) -> StartError | None:
    """What the managers say by themselves."""
    try:
        node.start(by_hand(fields, minor, on.memory), on)
    except StartError as error:
        return error
    return None


def by_hand(fields: dict[str, Any], minor: int, memory: int) -> Settings:
    """The managers' settings, made without the checks."""
    eviction = fields.get("evictionHard", {"memory.available": "100Mi"}).get("memory.available", "0")
    cpus = fields.get("reservedSystemCPUs", "")
    kube = dict(fields.get("kubeReserved", {}))
    if cpus:
        kube["cpu"] = {"0": "1", "0-1": "2", "0,4": "2", "4-7": "4"}[cpus]
    bytes_of = {
        "0": 0,
        "500m": 0.5,
        "1": 1,
        "1Gi": 1 << 30,
        "100Mi": 100 << 20,
        "1124Mi": 1124 << 20,
        "1.5Gi": 3 << 29,
    }
    share = int(memory * float_of_ten_percent()) if eviction == "10%" else bytes_of[eviction]
    reserved = bytes_of[kube.pop("memory", "0")] + share
    return Settings(
        minor=minor,
        topology_manager_policy=fields["topologyManagerPolicy"],
        topology_manager_scope=fields["topologyManagerScope"],
        topology_manager_policy_options=fields.get("topologyManagerPolicyOptions", {}),
        cpu_manager_policy=fields["cpuManagerPolicy"],
        cpu_manager_policy_options=fields.get("cpuManagerPolicyOptions", {}),
        reserved_system_cpus=cpus,
        reservation={kind: size for kind, size in kube.items() if size != "0"}
        | ({"memory": written(reserved)} if reserved else {}),
        memory_manager_policy=fields["memoryManagerPolicy"],
        reserved_memory=tuple(
            MemoryReservation(each["numaNode"], each["limits"]) for each in fields.get("reservedMemory", ())
        ),
        feature_gates=fields.get("featureGates", {}),
    )


def float_of_ten_percent() -> float:
    """10 % as a float32, which is how the kubelet keeps it."""
    return 0.10000000149011612


def written(size: float) -> str:
    """Canonical text of an amount of bytes."""
    if size != int(size):
        return f"{int(size * 1000)}m"
    return next(
        (
            f"{int(size) >> shift}{unit}"
            for unit, shift in (("Gi", 30), ("Mi", 20), ("Ki", 10))
            if not int(size) % (1 << shift)
        ),
        str(int(size)),
    )
