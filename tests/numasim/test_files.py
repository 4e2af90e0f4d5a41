"""Files that move can be kept open and read at any moment."""

import os
import threading
from pathlib import Path

import pytest

from numacore.cpuset import CpuSet
from numasim import scenario
from numasim.files import Tree, mask
from numasim.node import Node
from numasim.trees import NodeTree
from tests.numasim.conftest import EPOCH, Grow

WHOLE = {"cgroup.procs", "cpuset.cpus.effective", "cpu.max"}
SPECS = {spec.name: spec for spec in scenario.cluster(8)}


@pytest.mark.parametrize(
    ("cpus", "width", "text"),
    [
        ("0-3", 8, "0f"),
        ("0-11", 20, "00fff"),
        ("32-34", 64, "00000007,00000000"),
        ("40", 44, "100,00000000"),
        ("", 32, "00000000"),
        ("0,127", 128, "80000000,00000000,00000000,00000001"),
    ],
)
def test_it_prints_masks_in_the_kernels_words(cpus: str, width: int, text: str) -> None:
    assert mask(CpuSet.parse(cpus), width) == text


def test_a_file_that_moves_keeps_its_inode_and_loses_its_old_end(place: Path) -> None:
    tree = Tree(place)
    tree.keep("proc/stat", "cpu 1000 20\n")
    handle = os.open(place / "proc/stat", os.O_RDONLY)
    try:
        tree.keep("proc/stat", "cpu 2 3\n")
        assert os.pread(handle, 100, 0) == b"cpu 2 3\n"
    finally:
        os.close(handle)


def test_equal_files_of_a_large_machine_are_stored_once(place: Path) -> None:
    tree = Tree(place)
    tree.put_all("a", {"level": 2})
    tree.put_all("b", {"level": 2, "size": 3})
    assert (place / "a/level").stat().st_ino == (place / "b/level").stat().st_ino
    tree.keep("c/level", "2\n")
    assert (place / "c/level").stat().st_nlink == 1


def test_a_kept_file_is_never_empty_nor_half(grow: Grow) -> None:
    tree = grow(SPECS["npu-kunpeng-2"])
    stat = os.open(tree.root / "proc/stat", os.O_RDONLY)
    leaf = next((tree.root / "sys/fs/cgroup").rglob("cri-containerd-*/memory.numa_stat"))
    pages = os.open(leaf, os.O_RDONLY)
    done = threading.Event()
    seen: list[str] = []

    def watch() -> None:
        while not done.is_set():
            rows = os.pread(stat, 65536, 0).decode().split("\n")
            if len(rows) != 137 or any(len(row.split()) != 11 for row in rows[:129]):
                seen.append(f"{len(rows)} rows of /proc/stat")
            rows = os.pread(pages, 65536, 0).decode().split("\n")
            if len(rows) != 28 or not rows[0].startswith("anon N0="):
                seen.append(f"{len(rows)} rows of memory.numa_stat")

    watcher = threading.Thread(target=watch)
    watcher.start()
    for tick in range(1, 120):
        tree.node.advance(tick / 4)
        tree.update()
    done.set()
    watcher.join()
    os.close(stat)
    os.close(pages)
    assert seen == []


def test_a_pods_directories_appear_whole(place: Path) -> None:
    node = Node(SPECS["edge-1"], 1)
    tree = NodeTree(place / "n", node, EPOCH)
    tree.write()
    groups = tree.root / "sys/fs/cgroup/kubepods.slice"
    done = threading.Event()
    missing: set[str] = set()

    def watch() -> None:
        while not done.is_set():
            # A folder on its way out may be listed half; it is then no longer where it was.
            for folder, _, names in os.walk(groups):
                if ".scope" in folder and not set(names) >= WHOLE and os.path.exists(folder):
                    missing.add(folder)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for moment in range(0, 3600, 30):
        node.advance(float(moment))
        tree.update()
    done.set()
    watcher.join()
    assert missing == set()
    assert node.version > 10
