"""Programs that know nothing of this project read the trees as a machine: lscpu here, node_exporter in benchmarks."""

import subprocess
from pathlib import Path

import pytest

from numasim import scenario
from tests.numasim.conftest import Grow


def lscpu(root: Path) -> dict[str, str]:
    told = subprocess.run(
        ["lscpu", "--sysroot", root], capture_output=True, text=True, check=True, env={"LC_ALL": "C"}
    )
    pairs = (line.partition(":") for line in told.stdout.splitlines())
    return {name: text.strip() for name, _, text in pairs}


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "epyc-nps4",
            {
                "CPU(s)": "384",
                "Thread(s) per core": "2",
                "Core(s) per socket": "96",
                "L3 cache": "768 MiB (24 instances)",
                "NUMA node5 CPU(s)": "120-143,312-335",
            },
        ),
        (
            "kunpeng-920",
            {"CPU(s)": "128", "L2 cache": "64 MiB (128 instances)", "NUMA node3 CPU(s)": "96-127"},
        ),
        (
            "xeon-snc",
            {"Socket(s)": "2", "L3 cache": "105 MiB (2 instances)", "NUMA node1 CPU(s)": "14-27,70-83"},
        ),
        ("grace", {"NUMA node(s)": "6", "NUMA node1 CPU(s)": "72-143", "NUMA node26 CPU(s)": ""}),
        ("power-smt8", {"Thread(s) per core": "8", "Socket(s)": "2", "NUMA node8 CPU(s)": "96-191"}),
        (
            "half-dark",
            {
                "Off-line CPU(s) list": "14,15,40,62,63,80-83",
                "Socket(s)": "3",
                "NUMA node2 CPU(s)": "32-39,41-47,84-95",
            },
        ),
        ("high-ids", {"On-line CPU(s) list": "0-31,2048-2079", "NUMA node65 CPU(s)": "2048-2079"}),
        ("laptop", {"Core(s) per socket": "14", "L2 cache": "20 MiB (8 instances)"}),
        ("edge", {"CPU(s)": "8", "L3 cache": "4 MiB (1 instance)"}),
    ],
)
def test_lscpu_sees_the_machine(name: str, facts: dict[str, str], grow: Grow) -> None:
    told = lscpu(grow(scenario.plain(name, name, containers=6)).root)
    assert {fact: told.get(fact) for fact in facts} == facts
