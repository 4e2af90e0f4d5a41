"""Memory, huge pages and memory tiers of NUMA nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numacore.topology import HugePages
from tests.numaagent.conftest import Seen

Look = Callable[..., Seen]
NODE = "sys/devices/system/node"
CPUS = "sys/devices/system/cpu/online = 0\nsys/devices/system/cpu/cpu0/topology/core_id = 0\n"
TWO = CPUS + f"{NODE}/node0/cpulist = 0\n{NODE}/node1/cpulist =\n{NODE}/node[0-1]/distance = 10 20\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096 kB", 4096 << 10), ("4 MB", 4 << 20), ("1 GB", 1 << 30), ("4096", 4096), ("4096 B", 4096)],
)
def test_it_reads_memory_in_any_unit(look: Look, text: str, size: int) -> None:
    seen = look(TWO + f"{NODE}/node[0-1]/meminfo <<\n\tNode 1 MemTotal: {text}\n\tNode 1 MemFree: 0 kB")
    assert seen.machine.attributes.memory == {0: size, 1: size}
    assert seen.usage.memory[0].used == size


def test_it_never_shows_zero_for_memory_that_nobody_tells(look: Look) -> None:
    seen = look(TWO + f"{NODE}/node0/meminfo <<\n\tNode 0 MemTotal: lots")
    assert seen.machine.attributes.memory == {0: None, 1: None}
    use = seen.usage.memory[0]
    assert (use.total, use.free, use.used, use.file, use.anon) == (None,) * 5


def test_it_reads_huge_pages_of_every_size_and_what_is_free(look: Look) -> None:
    pools = f"{NODE}/node0/hugepages/hugepages"
    seen = look(
        TWO
        + f"""
{NODE}/node[0-1]/meminfo <<
	Node 0 MemTotal: 10 kB
{pools}-1048576kB/nr_hugepages = 4
{pools}-1048576kB/free_hugepages = 1
{pools}-64kB/nr_hugepages = 7
"""
    )
    assert seen.usage.memory[0].hugepages == (HugePages(64 << 10, 7, None), HugePages(1 << 30, 4, 1))
    assert seen.machine.attributes.hugepages == {0: (HugePages(64 << 10, 7), HugePages(1 << 30, 4))}


def test_it_takes_the_machines_huge_pages_where_it_is_one_numa_node(look: Look) -> None:
    seen = look(
        CPUS + "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages = 9\nproc/meminfo <<\n\tMemTotal: 1 kB"
    )
    assert seen.machine.attributes.hugepages == {0: (HugePages(2 << 20, 9),)}


def test_it_does_not_share_out_the_machines_huge_pages(look: Look) -> None:
    """How many of them each of several NUMA nodes has, nobody says."""
    seen = look(TWO + "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages = 9")
    assert seen.machine.attributes.hugepages == {}


def test_it_reads_cache_and_swap_cache_apart_on_a_machine_without_numa(look: Look) -> None:
    seen = look(
        CPUS + "proc/meminfo <<\n\tMemTotal: 9 kB\n\tSwapCached: 5 kB\n\tCached: 3 kB\n\tMemFree: 1 kB"
    )
    assert seen.usage.memory[0].file == 3 * 1024


def test_it_reads_tiers_latency_and_bandwidth(look: Look) -> None:
    access = f"{NODE}/node1/access0/initiators"
    seen = look(
        TWO
        + f"""
{NODE}/node[0-1]/meminfo <<
	Node 0 MemTotal: 10 kB
{access}/node0 -> ../../../node0
{access}/read_latency = 250
{access}/write_latency = 0
{access}/read_bandwidth = 30000
sys/devices/virtual/memory_tiering/memory_tier4/nodelist = 0
sys/devices/virtual/memory_tiering/memory_tier22/nodelist = 1,7
"""
    )
    [found] = seen.machine.attributes.performance
    assert (found.node, found.initiators, found.read_latency, found.write_latency) == (1, (0,), 250, None)
    assert seen.machine.attributes.memory_tiers == {0: 4, 1: 22}
