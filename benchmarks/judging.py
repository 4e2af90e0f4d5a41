"""The kubelet's engine: CPU time of a verdict, against the kubelet's own managers on the same cases, start of processes left out."""

import json
import resource
import subprocess
import time
from typing import Any

from benchmarks import measure
from benchmarks.outcome import Outcome
from numacore.kubelet import case
from tests.oracle import program

GIBI = 1 << 30
EIGHT, SIXTEEN = 8, 16
GO_ROUNDS = 3
"""The kubelet tries every combination, seconds for each case; more rounds would say nothing else."""
LIMIT = 0.1
"""CPU seconds of a container's verdict on 16 NUMA nodes."""


def run() -> list[Outcome]:
    return [against_the_kubelet(), sixteen_nodes()]


def machine(nodes: int) -> list[dict[str, Any]]:
    """NUMA nodes of four cores with two threads, 8 GiB, 512 huge pages of 2 MiB."""
    return [
        {
            "ID": node,
            "Memory": 8 * GIBI,
            "HugePages": {"2048": 512},
            "Distances": [10 if other == node else 21 for other in range(nodes)],
            "Cores": [
                {"ID": core, "Socket": node * 2 // nodes, "Threads": [2 * core, 2 * core + 1]}
                for core in range(node * 4, node * 4 + 4)
            ],
        }
        for node in range(nodes)
    ]


def asked(nodes: int, policy: str, *requests: tuple[str, str, str]) -> dict[str, Any]:
    """A case: one pod of one container for each request of CPUs, memory and huge pages."""
    names = ("cpu", "memory", "hugepages-2Mi")
    amounts = [dict(zip(names, each, strict=True)) for each in requests]
    config = {
        "TopologyPolicy": policy,
        "Scope": "container",
        "TopologyOptions": {"max-allowable-numa-nodes": "16"},
        "CPUPolicy": "static",
        "Reservation": {"cpu": "1", "memory": "512Mi"},
        "MemoryPolicy": "Static",
        "ReservedMemory": [{"Numa": 0, "Limits": {"memory": "512Mi"}}],
    }
    steps = [
        {"Admit": {"UID": f"p{at}", "Containers": [{"Name": "c", "Requests": each, "Limits": each}]}}
        for at, each in enumerate(amounts)
    ]
    return {"ID": f"{nodes} {policy}", "Machine": machine(nodes), "Config": config, "Steps": steps}


SMALL, WIDE, LOPSIDED = ("2", "1Gi", "64Mi"), ("20", "20Gi", "1Gi"), ("4", "20Gi", "1Gi")


def against_the_kubelet() -> Outcome:
    """Eight NUMA nodes, on which many sets of nodes would do: the kubelet tries all combinations of three resources."""
    cases = [asked(EIGHT, policy, SMALL, WIDE, LOPSIDED) for policy in ("restricted", "best-effort")]
    binary = str(program.oracle())
    lines = "".join(json.dumps(each) + "\n" for each in cases)
    ours = [cpu_of_engine(cases) for _ in range(measure.ROUNDS)]
    theirs = [cpu_of(binary, lines) - cpu_of(binary, "") for _ in range(GO_ROUNDS)]
    mine, peer = measure.spread(ours), measure.spread(theirs)
    return Outcome(
        "judging: 6 pods on 8 NUMA nodes",
        mine.shown("ms", 1e3, 1),
        peer.shown("ms", 1e3, 1),
        mine.median / peer.median,
        1.0,
        how="CPU time of numacore.kubelet for two cases of three pods each that ask for CPUs, memory and huge pages. Peer: the "
        "kubelet's own managers (tests/oracle/kubelet) on the same cases, an empty run of the same process taken off.",
    )


def sixteen_nodes() -> Outcome:
    """The dearest of several requests on a machine of 16 NUMA nodes."""
    kinds = (SMALL, WIDE, LOPSIDED, ("90", "100Gi", "12Gi"))
    dearest = max(
        (
            measure.spread([cpu_of_engine([asked(SIXTEEN, policy, each)]) for _ in range(measure.ROUNDS)])
            for policy in ("restricted", "best-effort", "single-numa-node")
            for each in kinds
        ),
        key=lambda spread: spread.median,
    )
    return Outcome(
        "judging: a container on 16 NUMA nodes",
        dearest.shown("ms", 1e3, 1),
        "-",
        dearest.median * 1e3,
        LIMIT * 1e3,
        "ms",
        how="CPU time of numacore.kubelet for a container that asks for CPUs, memory and huge pages, start of the node "
        "included; the dearest of twelve (four requests under three policies).",
    )


def cpu_of_engine(cases: list[dict[str, Any]]) -> float:
    read = [case.read(json.dumps(each)) for each in cases]
    started = time.process_time()
    for each in read:
        case.judge(each)
    return time.process_time() - started


def cpu_of(binary: str, lines: str) -> float:
    """CPU seconds of the oracle's process over these cases."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([binary], input=lines, capture_output=True, text=True, check=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
