"""Caches of POWER machines whose kernel tells them in the device tree only."""

from __future__ import annotations

from pathlib import Path

from numaagent import config
from numaagent.readers import topology
from numaagent.readers.files import Files
from numacore.topology import Cache
from tests.numaagent import trees

CPU = "sys/devices/system/cpu"
KIB = 1024
DESCRIPTION = f"""
{CPU}/online = 0-3
{CPU}/cpu[0-1]/topology/thread_siblings = mask 32 0-1
{CPU}/cpu[2-3]/topology/thread_siblings = mask 32 2-3
{CPU}/cpu0/physical_id = 8
{CPU}/cpu1/physical_id = 9
{CPU}/cpu2/physical_id = 12
{CPU}/cpu3/physical_id = 13
"""


def word(place: Path, name: str, *values: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(b"".join(value.to_bytes(4, "big") for value in values))


def plant(root: Path) -> None:
    """Two cores with caches of their own, and a third level that they share."""
    base = root / "sys/firmware/devicetree/base/cpus"
    for core, servers in ((0, (8, 9)), (1, (12, 13))):
        place = base / f"PowerPC,POWER7@{core * 4 + 8:x}"
        word(place, "ibm,ppc-interrupt-server#s", *servers)
        word(place, "d-cache-size", 32 * KIB)
        word(place, "i-cache-size", 64 * KIB)
        word(place, "l2-cache", 100 + core)
        second = base / f"l2-cache@{core}"
        word(second, "ibm,phandle", 100 + core)
        word(second, "d-cache-size", 256 * KIB)
        word(second, "i-cache-size", 256 * KIB)
        word(second, "l2-cache", 200)
    third = base / "l3-cache@0"
    word(third, "linux,phandle", 200)
    word(third, "d-cache-size", 4096 * KIB)
    word(third, "cache-unified")
    (root / "proc").mkdir()
    (root / "proc" / "device-tree").symlink_to("/sys/firmware/devicetree/base")


def caches(root: Path) -> dict[tuple[int, str, str], int | None]:
    roots = config.load({}, root=str(root)).roots
    found: tuple[Cache, ...] = topology.read(Files(str(root)), roots).caches
    return {(each.level, each.kind, str(each.cpus)): each.size for each in found}


def test_it_reads_caches_and_who_shares_them(tmp_path: Path) -> None:
    trees.build(DESCRIPTION, tmp_path)
    plant(tmp_path)
    assert caches(tmp_path) == {
        (1, "Data", "0-1"): 32 * KIB,
        (1, "Instruction", "0-1"): 64 * KIB,
        (1, "Data", "2-3"): 32 * KIB,
        (1, "Instruction", "2-3"): 64 * KIB,
        (2, "Unified", "0-1"): 256 * KIB,
        (2, "Unified", "2-3"): 256 * KIB,
        (3, "Unified", "0-3"): 4096 * KIB,
    }


def test_it_believes_sysfs_where_that_tells(tmp_path: Path) -> None:
    trees.build(DESCRIPTION, tmp_path)
    plant(tmp_path)
    index = f"{CPU}/cpu0/cache/index0"
    trees.build(f"{index}/level = 1\n{index}/type = Data\n{index}/size = 1K", tmp_path)
    assert caches(tmp_path) == {(1, "Data", "0"): KIB}


def test_it_takes_handles_that_lead_in_a_circle(tmp_path: Path) -> None:
    trees.build(DESCRIPTION, tmp_path)
    plant(tmp_path)
    word(tmp_path / "sys/firmware/devicetree/base/cpus/l3-cache@0", "l2-cache", 200)
    assert max(level for level, _, _ in caches(tmp_path)) == 4
