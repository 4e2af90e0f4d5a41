"""Use of containers: fresh numbers, in the order of the containers, unknown where there is none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from numaagent.readers import columns
from numacore import wire
from tests.numaagent import trees
from tests.numaagent.conftest import Open, seen
from tests.numaagent.test_containers import MACHINE, MOUNT_V2, V2

A, B, C = ("1" * 64, "2" * 64, "3" * 64)


def numbers(cpu: int, memory: int, pages: tuple[int, ...], container: str) -> str:
    nodes = "".join(f" N{node}={size}" for node, size in enumerate(pages))
    return f"""
{V2}/docker/{container}/cpu.stat <<
	usage_usec {cpu}
	user_usec 1
{V2}/docker/{container}/memory.current = {memory}
{V2}/docker/{container}/memory.numa_stat <<
	anon{nodes}
	file N0=1 N1=2
	kernel_stack N0=9 N1=9
"""


TREE = (
    MACHINE
    + MOUNT_V2
    + f"{V2}/cgroup.controllers = cpuset cpu memory\n{V2}/cpuset.cpus.effective = 0-7\n"
    + numbers(100, 4096, (10, 20), A)
    + numbers(200, 8192, (30, 40), B)
)


def test_it_reads_time_memory_and_pages(open_node: Open, tmp_path: Path) -> None:
    found = seen(open_node(trees.build(TREE, tmp_path)))
    use = found.usage.containers
    assert use is not None
    assert [each.id for each in found.containers] == [A, B]
    assert (use.cpu_time, use.memory) == ((100, 200), (4096, 8192))
    assert use.pages == {0: (11, 31), 1: (22, 42)}  # anonymous and file


def test_it_says_which_containers_the_columns_belong_to(open_node: Open, tmp_path: Path) -> None:
    node = open_node(trees.build(TREE, tmp_path))
    node.adopt(node.survey(1, 1))
    snapshot = node.snapshot(1, 1, {})
    assert seen(node, 1).usage.containers_of == snapshot.sections["containers"].hash


def test_it_reads_anew_for_each_answer_but_shares_within_half_a_second(
    open_node: Open, tmp_path: Path
) -> None:
    root = trees.build(TREE, tmp_path)
    node = open_node(root)
    file = root / V2 / "docker" / A / "cpu.stat"

    def time(now: float) -> int | None:
        use = seen(node, now).usage.containers
        assert use is not None
        return use.cpu_time[0]

    assert time(100.0) == 100
    file.write_text("usage_usec 150\n")
    assert time(100.4) == 100
    assert time(100.6) == 150
    file.write_text("usage_usec 170\n")
    assert time(101.2) == 170


def opened(root: Path) -> dict[str, str]:
    """Files below `root` that this process has open, by descriptor."""
    links = {fd: os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")}
    return {path: fd for fd, path in links.items() if path.startswith(str(root))}


def test_it_opens_nothing_anew_for_a_second_reading(open_node: Open, tmp_path: Path) -> None:
    node = open_node(trees.build(TREE, tmp_path))
    for now in (1, 2):
        seen(node, now)
    before = opened(tmp_path)
    for now in range(3, 30):
        seen(node, now)
    assert opened(tmp_path) == before
    assert len([path for path in before if path.startswith(str(tmp_path / V2 / "docker"))]) >= 6


def test_it_survives_a_container_that_ends_between_two_readings(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(TREE + numbers(300, 1, (1, 1), C), tmp_path)
    node = open_node(root)
    seen(node, 100)
    shutil.rmtree(root / V2 / "docker" / B)
    # Files that were deleted still answer on an ordinary file system; a cgroup's answer ENODEV. Close them as the
    # kernel would.
    node._kept.close()
    use = seen(node, 101).usage.containers
    assert use is not None
    assert use.cpu_time == (100, None, 300)
    before = node.outdated
    node.adopt(node.survey(102, 0))
    assert (before, node.outdated) == (True, False)
    assert [each.id for each in seen(node, 102).containers] == [A, C]


def test_it_counts_no_problem_when_a_container_ends(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(TREE, tmp_path)
    node = open_node(root)
    seen(node, 100)
    shutil.rmtree(root / V2 / "docker" / B)
    node._kept.close()
    assert seen(node, 101).causes("containers-use") == []


def test_it_reads_a_group_that_came_back_under_the_same_name(open_node: Open, tmp_path: Path) -> None:
    """A service that restarts gets a new group at the old path."""
    root = trees.build(TREE, tmp_path)
    node = open_node(root)
    seen(node, 100)
    kept = node._kept
    path = str(root / V2 / "docker" / A / "cpu.stat")
    stale = kept._open[path]
    # A descriptor of a group that has ended fails at every read, as one of a folder does.
    folder = os.open(root, os.O_RDONLY)
    os.dup2(folder, stale)
    os.close(folder)
    (root / V2 / "docker" / A / "cpu.stat").write_text("usage_usec 3\n")
    use = seen(node, 101).usage.containers
    assert use is not None
    assert use.cpu_time == (3, 200)


def test_it_shows_unknown_where_a_controller_is_off_and_looks_again(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(TREE, tmp_path)
    place = root / V2 / "docker" / A
    (place / "memory.current").unlink()
    (place / "memory.numa_stat").unlink()
    node = open_node(root)
    for now in (100, 101):
        found = seen(node, now)
        use = found.usage.containers
        assert use is not None
        assert (use.cpu_time, use.memory) == ((100, 200), (None, 8192))
        assert use.pages == {0: (None, 31), 1: (None, 42)}
        assert found.causes("containers-use") == []
    (place / "memory.current").write_text("77\n")
    node.adopt(node.survey(110, 0))
    use = seen(node, 110).usage.containers
    assert use is not None
    assert use.memory == (77, 8192)


@pytest.mark.parametrize(
    "rubbish", [b"", b"\xff\xfe", b"usage_usec many\n", b"{}", b"usage_usec 99999999999999999999\n"]
)
def test_it_shows_unknown_for_rubbish(open_node: Open, tmp_path: Path, rubbish: bytes) -> None:
    root = trees.build(TREE, tmp_path)
    for name in ("cpu.stat", "memory.current", "memory.numa_stat"):
        (root / V2 / "docker" / A / name).write_bytes(rubbish)
    use = seen(open_node(root)).usage.containers
    assert use is not None
    assert (use.cpu_time, use.memory) == ((None, 200), (None, 8192))
    assert use.pages == {0: (None, 31), 1: (None, 42)}


def test_it_keeps_a_bounded_number_of_files_open(open_node: Open, tmp_path: Path) -> None:
    node = open_node(trees.build(TREE, tmp_path))
    node._kept._budget = 2
    for now in (100, 101):
        use = seen(node, now).usage.containers
        assert use is not None
        assert (use.cpu_time, use.memory) == ((100, 200), (4096, 8192))
    assert len(node._kept._open) == 2


def test_it_takes_pages_of_other_nodes_and_lines_in_other_order() -> None:
    """The quick way only takes the usual form; the slow one takes any."""
    usual = [b"anon N0=1 N3=2\nfile N0=3 N3=4\nslab N0=9 N3=9\n"]
    other = b"file N0=3 N3=4\nanon N0=1 N3=2\n"
    assert columns.pages(usual) == {0: [4], 3: [6]}
    assert columns.pages([other]) is None
    assert columns.pages_v2(other) == {0: 4, 3: 6}
    assert columns.pages([*usual, b"anon N0=1\nfile N0=1\n"]) is None
    assert columns.pages([b"anon N0=1 N3=2\nfile N0=3 N5=4\n"]) is None


def test_it_reads_pages_of_processes_where_it_is_asked_to(open_node: Open, tmp_path: Path) -> None:
    description = (
        TREE
        + f"""
{V2}/docker/{A}/cgroup.procs = 41
proc/41/numa_maps <<
	00400000 default file=/bin/busybox mapped=308 active=0 N0=300 N1=8 kernelpagesize_kB=4
	7f0000 default anon=2 N1=2 kernelpagesize_kB=2048
	7ffc41871000 default
"""
    )
    root = trees.build(description, tmp_path)
    (root / V2 / "docker" / A / "memory.numa_stat").unlink()
    use = seen(open_node(root, NUMAAGENT_NUMA_MAPS="1")).usage.containers
    assert use is not None
    assert use.pages == {0: (300 * 4096, 31), 1: (8 * 4096 + 2 * (2 << 20), 42)}
    plain = seen(open_node(root)).usage.containers
    assert plain is not None
    assert plain.pages == {0: (None, 31), 1: (None, 42)}


def test_it_shares_readings_by_numa_node_too_and_never_goes_back(open_node: Open, tmp_path: Path) -> None:
    node = open_node(trees.build(TREE, tmp_path))
    node.adopt(node.survey(100.0, 1.0))
    have = {name: each.hash for name, each in node.snapshot(100.0, 1.0, {}).sections.items()}
    del have[wire.USAGE]

    def told(now: float, wanted: str) -> tuple[float, set[str]]:
        found = node.snapshot(now, now, have, wanted)
        return found.monotonic, {name for name, each in found.sections.items() if each.data}

    assert told(100.4, "numa") == (100.0, {"numa"})  # of the reading that was told
    assert told(100.6, "numa") == (100.6, {"numa"})
    assert told(101.0, "numa") == (100.6, {"numa"})
    assert told(101.05, "") == (101.05, {"usage"})
    assert told(101.07, "numa") == (101.05, {"numa"})  # and not that of 100.6
    assert told(101.6, "numa") == (101.6, {"numa"})
    assert told(101.61, "") == (101.61, {"usage"})  # and not that of 101.05
