"""The memory manager where nothing else decides: memory that is used again, groups of NUMA nodes, and what a state file may leave out."""

from __future__ import annotations

import pytest

from numacore.kubelet import checkpoint, node
from numacore.kubelet.memory_state import MemoryState
from numacore.kubelet.node import Node, StateFiles
from numacore.kubelet.pod import Pod
from numacore.kubelet.restart import survival
from tests.numacore.kubelet.builders import container, machine, pod, running

Placed = tuple[tuple[str, int, tuple[int, ...]], ...]


def memory_alone(policy: str = "restricted", nodes: int = 2) -> Node:
    """NUMA nodes of 8 GiB with 64 huge pages of 2 MiB, 1 GiB reserved on the first; CPUs are nobody's."""
    return running(policy, on=machine(nodes), cpu_manager_policy="none")


def placed(now: Node, asked: Pod) -> tuple[Node, dict[str, Placed]]:
    """Kind, MiB and NUMA nodes by container; nothing of a refused pod."""
    after, verdict = node.admit(now, asked)
    if not verdict.admitted:
        return now, {}
    return after, {
        name: tuple((block.kind, block.size >> 20, block.numa) for block in held.memory)
        for name, held in verdict.placements.items()
    }


def test_memory_that_is_used_again_does_not_make_up_for_huge_pages_that_are_missing() -> None:
    """The first NUMA node has the init container's memory and too few pages: the container goes to the second."""
    now, _ = placed(memory_alone(), pod("x", container(hugepages_2Mi="100Mi")))
    asked = pod(
        "p", container("app", memory="6Gi", hugepages_2Mi="100Mi"), init=(container("init", memory="6Gi"),)
    )
    _, found = placed(now, asked)
    assert found["app"] == (("hugepages-2Mi", 100, (1,)), ("memory", 6144, (1,)))


@pytest.mark.parametrize(("more", "numa"), [(0, (0,)), (1, (1,))])
def test_memory_that_is_used_again_counts_beside_what_is_free_to_the_last_byte(
    more: int, numa: tuple[int, ...]
) -> None:
    """The first NUMA node has 8 GiB less 1 GiB reserved, 128 MiB of huge pages and 2 GiB of another pod: 4992 MiB for this pod, of which
    its init container held 3 GiB."""
    now, _ = placed(memory_alone(), pod("x", container(memory="2Gi")))
    asked = pod("p", container("app", memory=f"{4992 + more}Mi"), init=(container("init", memory="3Gi"),))
    _, found = placed(now, asked)
    assert found["app"] == (("memory", 4992 + more, numa),)


def wide() -> Node:
    """Of four NUMA nodes the first two serve a pod of 9 GiB together."""
    now, found = placed(memory_alone("none", nodes=4), pod("wide", container(memory="9Gi")))
    assert found == {"c": (("memory", 9216, (0, 1)),)}
    return now


@pytest.mark.parametrize(
    ("before", "asked", "numa"),
    [
        ((), "1Gi", (2,)),
        ((), "10Gi", (2, 3)),
        ((), "17Gi", None),
        (("1Gi",), "1Gi", (2,)),
        (("1Gi",), "7500Mi", (3,)),
        (("1Gi",), "10Gi", None),
        (("10Gi",), "1Gi", (0, 1)),
        (("10Gi",), "5888Mi", (0, 1)),
        (("10Gi",), "5889Mi", None),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_a_group_of_numa_nodes_serves_as_a_whole_and_a_node_in_use_joins_none(
    before: tuple[str, ...], asked: str, numa: tuple[int, ...] | None
) -> None:
    now = wide()
    for number, size in enumerate(before):
        now, found = placed(now, pod(f"b{number}", container(memory=size)))
        assert found
    _, found = placed(now, pod("p", container(memory=asked)))
    assert [block[2] for block in found.get("c", ())] == ([] if numa is None else [numa])


def test_a_group_is_dissolved_with_its_last_pod_and_its_memory_is_whole_again() -> None:
    _, found = placed(node.remove(wide(), "wide"), pod("one", container(memory="6Gi")))
    assert found == {"c": (("memory", 6144, (0,)),)}


def test_a_state_file_with_pods_and_without_a_machine_is_refused() -> None:
    now, _ = placed(memory_alone(), pod("p", container(memory="1Gi")))
    bare = MemoryState(assignments=now.state.memory.assignments)
    files = StateFiles(None, checkpoint.write_memory(bare, now.settings))
    assert survival(now.settings, now.machine, files).refusal == (
        "[memorymanager] machine state can not be empty when it has memory assignments"
    )
