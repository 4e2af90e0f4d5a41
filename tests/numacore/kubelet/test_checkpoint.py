"""State files: checksums that kubelets wrote, every form read and written, damage told in the kubelet's words."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from numacore.cpuset import CpuSet
from numacore.kubelet import checkpoint, checksums, node
from numacore.kubelet.checksums import CheckpointError, CpuText, MemoryCheckpoint
from numacore.kubelet.cpu_manager import CpuState
from numacore.kubelet.errors import StartError
from numacore.kubelet.memory_state import MemoryTable, NodeState
from numacore.kubelet.settings import Settings
from numacore.kubeletstate import CpuManagerState, MemoryManagerState
from numacore.kubeletstate import MemoryTable as ReportedTable
from numacore.workload import MemoryBlock
from tests.numacore.kubelet.builders import container, machine, pod, running, settings

WHOLE_PODS = {"PodLevelResourceManagers": True}
TWO = {"pod": {"container1": "4-6", "container2": "1-3"}}


def kubelet(minor: int, cpu: str = "static", memory: str = "Static", **gates: bool) -> Settings:
    return Settings(minor=minor, cpu_manager_policy=cpu, memory_manager_policy=memory, feature_gates=gates)


@pytest.mark.parametrize(
    ("content", "checksum"),
    [
        (CpuText("none", "4-6"), 354655845),
        (CpuText("none", "1-3", TWO), 3610638499),
        (CpuText("other", "1-3"), 1394507217),
        (CpuText("none", "1.3"), 3021697696),
        (CpuText("static", "0-63"), 1058907510),
        (CpuText("static", "2-15,17-31,34-47,49-63"), 4141502832),
        (CpuText("static", "0-31"), 3540042759),
        (CpuText("static", "0-1", {"u": {"c": "2-3", "a": "4"}}), 4254969121),
        (CpuText("none"), 1353318690),
        (
            CpuText(
                "static",
                "0-1,4,6-9,12,14-15",
                {"69aa6124-4e0e-4c66-94ea-feae7df25b68": {"app": "2-3,10-11", "sidecar": "5,13"}},
            ),
            1811869873,
        ),
    ],
)
def test_a_cpu_state_has_the_checksum_that_kubelets_wrote(content: CpuText, checksum: int) -> None:
    assert checksums.cpu_checksum(content) == checksum


def test_pod_level_cpus_count_in_the_checksum_of_1_36() -> None:
    content = CpuText("static", "0-1", {"u": {"c": "2-3", "a": "4"}}, {"u": "2-4,10"})
    assert checksums.cpu_checksum(content, with_pods=True) == 3779302432


ONE_BLOCK = (MemoryBlock("memory", 512, (0,)),)
SMALL = {0: NodeState(0, {"memory": MemoryTable(2048, 512, 1536, 512, 1024)}, ())}
TINY = {0: NodeState(1, {"memory": MemoryTable(10, 1, 9, 2, 7)}, (0, 1))}
TINY_BLOCK = (MemoryBlock("memory", 2, (0,)),)
TWO_SIZES = {
    0: NodeState(
        2,
        {
            "hugepages-1Gi": MemoryTable(10737418240, 0, 10737418240, 1073741824, 9663676416),
            "memory": MemoryTable(99759243264, 1126170624, 87895654400, 4294967296, 83600687104),
        },
        (0,),
    ),
    1: NodeState(
        0,
        {
            "hugepages-1Gi": MemoryTable(10737418240, 0, 10737418240, 0, 10737418240),
            "memory": MemoryTable(99283886080, 1126170624, 87420297216, 0, 87420297216),
        },
        (1,),
    ),
}
TWO_BLOCKS = (MemoryBlock("memory", 4294967296, (0,)), MemoryBlock("hugepages-1Gi", 1073741824, (0,)))


@pytest.mark.parametrize(
    ("content", "with_pods", "checksum"),
    [
        (MemoryCheckpoint("static", SMALL, {"pod": {"container1": ONE_BLOCK}}), False, 4215593881),
        (
            MemoryCheckpoint("static", SMALL, {"pod": {"container1": ONE_BLOCK}}, {"pod": ONE_BLOCK}),
            True,
            1278640530,
        ),
        (MemoryCheckpoint("Static", TINY, {"u": {"c": TINY_BLOCK}}), False, 2148689342),
        (MemoryCheckpoint("Static", TINY, {"u": {"c": TINY_BLOCK}}, {"u": TINY_BLOCK}), True, 3695017771),
        (MemoryCheckpoint("None"), False, 4236770233),
        (
            MemoryCheckpoint(
                "Static", TWO_SIZES, {"2f0c6f0e-6c56-4c9b-9b0e-2f6f0f9f6f11": {"app": TWO_BLOCKS}}
            ),
            False,
            683052938,
        ),
    ],
)
def test_a_memory_state_has_the_checksum_that_kubelets_wrote(
    content: MemoryCheckpoint, with_pods: bool, checksum: int
) -> None:
    assert checksums.memory_checksum(content, with_pods=with_pods) == checksum


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (
            '{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":2048,'
            '"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":{"container1":'
            '[{"numaAffinity":[0],"type":"memory","size":512}]}}}',
            1849615440,
        ),
        (
            '{"unknownField":"value","policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":'
            '{"total":2048,"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":'
            '{"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}}}',
            2100279793,
        ),
        ('{"policyName":"None","machineState":null}', 3825501417),
        (
            '{"policyName":"static","defaultCpuSet":"0-1","entries":{"u":{"a":"4","c":"2-3"}},"podEntries":{"u":{"cpuSet":"2-4,10"}}}',
            2790791354,
        ),
    ],
)
def test_content_kept_as_text_has_the_checksum_that_kubelets_wrote(data: str, checksum: int) -> None:
    assert checksums.fnv1a(f"(string){data}") == checksum


def written(entries: dict[str, str], checksum: int) -> str:
    return json.dumps(
        {"policyName": "none", "defaultCpuSet": "1-3", "entries": entries, "checksum": checksum}
    )


def test_the_first_form_is_read_with_the_runtimes_ids() -> None:
    text = written({"containerID1": "4-6", "containerID2": "1-3"}, 3680390589)
    containers = {"containerID1": ("pod", "container1"), "containerID2": ("pod", "container2")}
    found = checkpoint.read_cpu(text, kubelet(34), containers)
    assert found.entries == {"pod": {"container1": 0b1110000, "container2": 0b1110}}
    with pytest.raises(
        CheckpointError, match="containerID 'containerID1' not found in initial containers list"
    ):
        checkpoint.read_cpu(text, kubelet(34))
    with pytest.raises(CheckpointError, match="entries"):
        checkpoint.read_cpu(text, kubelet(37), containers)


def test_a_file_of_kubelet_1_16_is_read_and_a_changed_cpu_in_it_is_noticed() -> None:
    """As a node wrote it: the runtime's ids have 64 digits."""
    ran = "ab9940917010576bd755870dab91e2cd2fc531a04ac362d44a62950aaa41c527"
    text = json.dumps(
        {
            "policyName": "static",
            "defaultCpuSet": "0-2,4-26,28-47",
            "entries": {ran: "3,27"},
            "checksum": 1300288133,
        }
    )
    containers = {ran: ("pod", "myapp-container")}
    found = checkpoint.read_cpu(text, kubelet(34), containers)
    assert found.entries == {"pod": {"myapp-container": 1 << 3 | 1 << 27}}
    with pytest.raises(CheckpointError, match=checkpoint.CORRUPTED):
        checkpoint.read_cpu(text.replace("3,27", "3,28"), kubelet(34), containers)


@pytest.mark.parametrize("checksum", [1694838852, 0])
def test_a_first_form_without_containers_needs_no_ids(checksum: int) -> None:
    assert checkpoint.read_cpu(written({}, checksum), kubelet(34)).default == 0b1110


def left(minor: int, **gates: bool) -> node.Node:
    """A node with pinned containers, a group of two NUMA nodes, and a pod that asks as a whole."""
    now = running("best-effort", "pod", on=machine(4), minor=minor, feature_gates=gates)
    for each in (
        pod("a", container(cpu="2"), init=(container("i", cpu="3"),)),
        pod("b", container(cpu="1", memory="9Gi", hugepages_2Mi="2Mi")),
        pod(
            "w",
            container("own", cpu="2"),
            container("rest", cpu="0", memory="0"),
            whole={"cpu": "4", "memory": "1Gi"},
        ),
    ):
        now, verdict = node.admit(now, each)
        assert verdict.admitted, verdict
    return now


@pytest.mark.parametrize("gates", [{}, WHOLE_PODS])
@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_a_kubelet_reads_what_it_wrote(minor: int, gates: dict[str, bool]) -> None:
    now = left(minor, **gates)
    files = node.state_files(now)
    cpu = checkpoint.restore_cpu(files.cpu, now.settings)
    memory = checkpoint.restore_memory(files.memory, now.settings)
    assert (cpu.default, cpu.assignments, cpu.pods) == (
        now.state.cpu.default,
        now.state.cpu.assignments,
        now.state.cpu.pods,
    )
    assert (memory.nodes, memory.assignments, memory.pods) == (
        now.state.memory.nodes,
        now.state.memory.assignments,
        now.state.memory.pods,
    )
    assert bool(cpu.pods and memory.pods) == (minor >= 36 and bool(gates))


@pytest.mark.parametrize(
    ("wrote", "reads", "fine"), [(34, 37, True), (37, 34, True), (36, 37, True), (36, 34, False)]
)
def test_other_versions_read_it_as_far_as_they_know_the_form(wrote: int, reads: int, fine: bool) -> None:
    files = node.state_files(left(wrote, **WHOLE_PODS if wrote == 36 else {}))
    if fine:
        assert checkpoint.restore_cpu(files.cpu, settings(minor=reads)).assignments
        assert checkpoint.restore_memory(files.memory, settings(minor=reads)).assignments
        return
    with pytest.raises(StartError, match=checkpoint.CORRUPTED):
        checkpoint.restore_cpu(files.cpu, settings(minor=reads))
    with pytest.raises(StartError, match=checkpoint.CORRUPTED):
        checkpoint.restore_memory(files.memory, settings(minor=reads))


def test_kubelet_1_36_reads_what_it_wrote_when_nothing_was_pinned() -> None:
    """Without containers the file of form 3 looks like one of form 1."""
    now = running(minor=36, feature_gates=WHOLE_PODS)
    assert checkpoint.restore_cpu(node.state_files(now).cpu, now.settings).default == now.state.cpu.default


@pytest.mark.parametrize(
    ("minor", "words"), [(35, checkpoint.CORRUPTED), (36, "differs from"), (37, "differs from")]
)
def test_a_memory_state_without_a_checksum_is_read_since_1_36(minor: int, words: str) -> None:
    with pytest.raises(StartError, match=words):
        checkpoint.restore_memory("{}", settings(minor=minor))


def test_only_the_text_in_data_counts_since_1_37() -> None:
    files = node.state_files(left(37))
    table = json.loads(files.cpu or "")
    table |= {"defaultCpuSet": "0", "entries": {}, "checksum": 1}
    found = checkpoint.restore_cpu(json.dumps(table), settings())
    assert found.assignments == left(37).state.cpu.assignments


DAMAGED: list[tuple[dict[str, Any], str]] = [
    ({"dataChecksum": 1}, "could not load v4 checkpoint: checkpoint is corrupted"),
    (
        {"data": ""},
        "could not load v4 checkpoint: failed to deserialize cpu manager checkpoint data: unexpected end of JSON input",
    ),
    ({"data": "", "dataChecksum": 0, "checksum": 5}, "checkpoint is corrupted"),
    (
        {"data": "", "dataChecksum": 0, "checksum": 0, "policyName": "none"},
        'configured policy "static" differs from state checkpoint policy "none"',
    ),
    (
        {"data": "", "dataChecksum": 0, "checksum": 0, "defaultCpuSet": "1.3"},
        'could not parse default CPU set "1.3": strconv.Atoi: parsing "1.3": invalid syntax',
    ),
    (
        {"data": "", "dataChecksum": 0, "checksum": 0, "entries": {"u": {"c": "3-1"}}},
        'could not parse cpuset "3-1" for container "c" in pod "u": invalid range "3-1" (3 > 1)',
    ),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGED)
def test_a_damaged_cpu_state_stops_the_kubelet_in_its_words(damage: dict[str, Any], words: str) -> None:
    text = json.dumps(json.loads(node.state_files(left(37)).cpu or "") | damage)
    with pytest.raises(StartError) as stopped:
        checkpoint.restore_cpu(text, settings())
    assert str(stopped.value) == (
        f"could not restore state from checkpoint: {words}, please drain this node and delete the CPU manager "
        'checkpoint file "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
    )


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"dataChecksum": 1}, "could not load v3 checkpoint: checkpoint is corrupted"),
        ({"dataChecksum": 0}, "could not load v3 checkpoint: checkpoint is corrupted"),
        (
            {"data": ""},
            "could not load v3 checkpoint: failed to deserialize memory manager checkpoint data: unexpected end of JSON input",
        ),
        ({"data": "", "dataChecksum": 0, "checksum": 5}, "checkpoint is corrupted"),
        (
            {"data": "", "dataChecksum": 0, "checksum": 0, "policyName": "None"},
            '[memorymanager] configured policy "Static" differs from state checkpoint policy "None"',
        ),
    ],
)
def test_a_damaged_memory_state_stops_the_kubelet_in_its_words(damage: dict[str, Any], words: str) -> None:
    text = json.dumps(json.loads(node.state_files(left(37)).memory or "") | damage)
    with pytest.raises(StartError) as stopped:
        checkpoint.restore_memory(text, settings())
    assert str(stopped.value) == (
        f"could not restore state from checkpoint: {words}, please drain this node and delete the memory manager "
        'checkpoint file "/var/lib/kubelet/memory_manager_state" before restarting Kubelet'
    )


def test_before_1_37_the_text_in_data_does_not_count() -> None:
    text = json.dumps(json.loads(node.state_files(left(37)).memory or "") | {"data": "nonsense"})
    assert (
        checkpoint.restore_memory(text, settings(minor=36)).assignments == left(37).state.memory.assignments
    )


def test_keys_are_read_without_regard_to_case() -> None:
    text = json.dumps({"PolicyName": "none", "defaultCPUSet": "4-6", "CHECKSUM": 354655845})
    assert checkpoint.read_cpu(text, kubelet(37)).default == 0b1110000


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"entries":[1]}', '{"entries":{"u":1}}', '{"checksum":"x"}']
)
@pytest.mark.parametrize("read", [checkpoint.read_cpu, checkpoint.read_memory])
def test_what_is_no_state_file_is_told_as_such(read: Callable[[str, Settings], object], text: str) -> None:
    with pytest.raises(CheckpointError):
        read(text, kubelet(37))


def test_a_nodes_report_becomes_the_state_that_it_read() -> None:
    now = left(37).state
    blocks = {uid: dict(inside) for uid, inside in now.memory.assignments.items()}
    cpu = CpuManagerState(
        "static",
        CpuSet.of_bits(now.cpu.default),
        {u: {n: CpuSet.of_bits(c) for n, c in inside.items()} for u, inside in now.cpu.assignments.items()},
    )
    nodes = {
        at: {
            k: ReportedTable(t.total, t.system_reserved, t.allocatable, t.reserved, t.free)
            for k, t in each.memory.items()
        }
        for at, each in now.memory.nodes.items()
    }
    memory = MemoryManagerState(
        "Static", nodes, {at: each.cells for at, each in now.memory.nodes.items()}, blocks
    )
    assert checkpoint.of_cpu_report(cpu) == CpuState(now.cpu.default, now.cpu.assignments)
    assert checkpoint.of_memory_report(memory).nodes == now.memory.nodes
