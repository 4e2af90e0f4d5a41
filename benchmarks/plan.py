"""The Planner on 500 nodes: how long an answer takes, when nothing is remembered and when something is."""

import subprocess
import sys

import msgspec

from benchmarks import installation, measure
from benchmarks.outcome import Outcome
from tests import servers

SETTING = (
    "500 simulated nodes (8 NUMA nodes, 384 CPUs, 60 containers each, every state its own) in PostgreSQL and Redis; the selector in "
    "its process: state taken and decoded, the kubelet's verdict, Volcano's, the other three policies, in one thread. CPU time of that process. No peer."
)
LINES = {
    "first": ("plan: 500 nodes, nothing remembered", "the first answer"),
    "other": ("plan: 500 nodes, another question", "the same nodes with another policy imagined"),
    "again": ("plan: 500 nodes, the same question", "as for the next page of the list"),
}


def run() -> list[Outcome]:
    with installation.installed() as place:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.planning"],
            cwd=servers.ROOT,
            env=place.surroundings,
            capture_output=True,
            text=True,
            timeout=600,
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    found = msgspec.json.decode(done.stdout, type=dict[str, list[float]])
    return [line(what, how, found[name]) for name, (what, how) in LINES.items()]


def line(what: str, how: str, seconds: list[float]) -> Outcome:
    spread = measure.spread(seconds)
    return Outcome(what, spread.shown("s", 1, 2), "-", spread.median, 2, "s", f"{SETTING} Counted: {how}.")
