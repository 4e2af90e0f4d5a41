"""Per-CPU times are as many numbers as there are CPUs: none is invented, none is taken for another's."""

import msgspec
import pytest

from monitoring.sources.columns import CpuColumns, Places
from numacore.cpuset import CpuSet
from numacore.topology import Cpu, NumaNode, Topology
from numacore.wire import WireError


def places(cpus: str, count: int = 4) -> Places:
    """NUMA node 0 has the even CPUs, node 1 the odd ones."""
    numa = [CpuSet(range(i, count, 2)) for i in range(2)]
    listed = tuple(Cpu(id=i, socket=0, core=i, numa=i % 2) for i in range(count))
    return Places(Topology(cpus=listed, nodes=tuple(NumaNode(i, each) for i, each in enumerate(numa))), cpus)


def columns(busy: str, idle: str, cpus: str) -> CpuColumns:
    return msgspec.json.decode(f'{{"cpus":"{cpus}","busy":{busy},"idle":{idle}}}', type=CpuColumns)


@pytest.mark.parametrize(
    ("cpus", "busy", "idle", "cause"),
    [
        ("0-3", "[1,2,3]", "[1,2,3,4,5]", r"CPUs are needed - at `\$\.cpu\.busy"),
        ("0-3", "[1,2,3,4]", "[1,2,3]", r"CPUs are needed - at `\$\.cpu\.idle"),
        ("0-3", "[]", "[1,2,3,4]", "CPUs are needed"),
        ("0", "[ ]", "[1]", "CPUs are needed"),
        ("0", "[]", "[1]", "CPUs are needed"),
        ("", "[1]", "[]", "CPUs are needed"),
        ("0", "[[]]", "[1]", "whole numbers"),
        ("0-1", "[1,[2]]", "[1,2]", "whole numbers"),
        ("0", "[null]", "[1]", "whole numbers"),
        ("0", "[1e3]", "[1]", "whole numbers"),
        ("0", "5", "[1]", "whole numbers"),
        ("0", '""', "[1]", "whole numbers"),
    ],
)
def test_it_refuses_other_than_a_number_for_each_cpu(cpus: str, busy: str, idle: str, cause: str) -> None:
    with pytest.raises(WireError, match=cause):
        places(cpus).times(columns(busy, idle, cpus))


def test_it_takes_them_as_they_are_written() -> None:
    times = places("0-3").times(columns("[ 1, 2,\n3 ,4 ]", "[10,20,30,9223372036854775807]", "0-3"))
    assert times.tolist() == [[1, 2, 3, 4], [10, 20, 30, 2**63 - 1]]
    assert places("").times(columns("[ ]", "[]", "")).tolist() == [[], []]


def test_it_counts_no_cpu_that_belongs_to_no_numa_node() -> None:
    table = places("0-4")
    before = table.times(columns("[0,0,0,0,0]", "[0,0,0,0,0]", "0-4"))
    after = table.times(columns("[1,2,3,2,4]", "[3,2,1,2,0]", "0-4"))
    assert table.shares(before, after) == [0.5, 0.5]
    assert places("0,4").shares(before[:, [0, 4]], after[:, [0, 4]]) == [0.25, None]
