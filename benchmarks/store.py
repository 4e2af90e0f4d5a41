"""History: one snapshot of 5,000 nodes x 8 NUMA nodes into PostgreSQL, against bare COPY."""

import subprocess
import sys

import msgspec

from benchmarks import installation, measure
from benchmarks.outcome import Outcome
from tests import servers


def run() -> list[Outcome]:
    with installation.installed() as place:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.storing"],
            cwd=servers.ROOT,
            env=place.surroundings,
            capture_output=True,
            text=True,
            timeout=300,
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    found = msgspec.json.decode(done.stdout, type=dict[str, list[float]])
    packed, rows = (int(size) for size in found["bytes"])
    return [
        Outcome(
            "store: one snapshot of 5,000 x 8",
            measure.spread(found["ours"]).shown("ms", 1e3, 0),
            measure.spread(found["rows"]).shown("ms", 1e3, 0),
            ratio(found, "rows"),
            1.3,
            how="Time to write one interval of history (7 figures of each of 40,000 NUMA nodes) with "
            f"monitoring.history.write_journal, packing included, in one transaction: {packed / 1e6:.1f} MB arrive in "
            f"PostgreSQL; CPU of the client {measure.spread(found['ours_cpu']).shown('ms', 1e3, 0)}. Peer: COPY of the same "
            f"figures as binary rows ({rows / 1e6:.1f} MB) from one ready buffer into a table with a primary key; CPU "
            f"{measure.spread(found['rows_cpu']).shown('ms', 1e3, 0)}. fsync is off.",
        ),
        Outcome(
            "store: the same, against its packed bytes",
            measure.spread(found["ours"]).shown("ms", 1e3, 0),
            measure.spread(found["packed"]).shown("ms", 1e3, 0),
            ratio(found, "packed"),
            1.3,
            how=f"Ours as in the line above, packing included. Peer: COPY of nothing but the {packed / 1e6:.1f} MB that "
            "packing left, from one ready buffer into a table without any key. Whoever reads the goal so strictly compares "
            "making small bytes of many with moving small bytes that somebody else made.",
        ),
    ]


def ratio(found: dict[str, list[float]], peer: str) -> float:
    """Median over the rounds of ours to the peer's."""
    return measure.spread([ours / them for ours, them in zip(found["ours"], found[peer], strict=True)]).median
