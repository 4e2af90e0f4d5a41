"""A rollout's plan of 10,000 nodes with 150,000 pods from nothing: under 60 seconds, and the page hears of it all the time.

NUMAWEB_BENCH_NODES makes it smaller; the goal is then as much smaller.
"""

import os
import subprocess
import sys
import tempfile

import msgspec

from benchmarks.outcome import Outcome
from tests import servers, stack

SECRET_KEY = "only-for-benches-" * 4
NODES = 10_000
GOAL = 60.0
"""Seconds for all of them."""
SILENT = 5.0
"""Seconds without a word of progress that a person puts up with."""


class Found(msgspec.Struct):
    whole: float
    silent: float
    words: int


def run() -> list[Outcome]:
    nodes = int(os.environ.get("NUMAWEB_BENCH_NODES", NODES))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.previewing", str(nodes)],
            cwd=servers.ROOT,
            env=stack.environment(
                NUMAWEB_STATE_DIR=folder, NUMAWEB_SECRET_KEY=SECRET_KEY, NUMAWEB_ROLLOUTS="1"
            ),
            capture_output=True,
            text=True,
            timeout=3600,
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    found = msgspec.json.decode(done.stdout, type=Found)
    how = (
        f"{nodes:,} simulated nodes with 15 pods each, every state its own, in SQLite and the store of the process: pods listed from JSON, every node's "
        "file written anew and its kubelet replayed with it, warnings, plan and rows written. CPU time of that process, once. No peer."
    )
    what = f"rollout: preview of {nodes:,} nodes, {15 * nodes:,} pods"
    return [
        Outcome(what, f"{found.whole:.1f} s", "-", found.whole, GOAL * nodes / NODES, "s", how),
        Outcome(
            f"{what}: longest silence", f"{found.silent:.1f} s", "-", found.silent, SILENT, "s",
            f"{how} Counted: between two words of progress, of {found.words}.",
        ),
    ]  # fmt: skip
