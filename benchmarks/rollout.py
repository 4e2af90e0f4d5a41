"""The plan of a rollout over 10,000 nodes: under 2 seconds, and twice the nodes cost twice the time."""

import subprocess
import sys
import tempfile

import msgspec

from benchmarks import measure
from benchmarks.outcome import Outcome
from tests import servers, stack

SECRET_KEY = "only-for-benches-" * 4
SETTING = (
    "previews of all nodes are there; the plan is put in order and batches, hashed, written to SQLite with a row for each node. "
    "CPU time of that process. No peer."
)


def run() -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.rolling"],
            cwd=servers.ROOT,
            env=stack.environment(NUMAWEB_STATE_DIR=folder, NUMAWEB_SECRET_KEY=SECRET_KEY),
            capture_output=True,
            text=True,
            timeout=600,
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    found = msgspec.json.decode(done.stdout, type=dict[str, list[float]])
    one, two = (measure.spread(found[size]) for size in ("10000", "20000"))
    growth = two.median / one.median
    return [
        Outcome("rollout: plan of 10,000 nodes", one.shown("s", 1, 2), "-", one.median, 2, "s", SETTING),
        Outcome(
            "rollout: plan of 20,000 nodes beside 10,000",
            f"{growth:.2f}",
            "-",
            growth,
            2.5,
            "times",
            f"{SETTING} How much longer: 2 is linear.",
        ),
    ]
