"""REST: a page of nodes, and the whole list of 5,000, against the REST framework's own serializers and a plain encoder."""

import subprocess
import sys

import msgspec

from benchmarks import installation, measure
from benchmarks.outcome import Outcome
from tests import servers

SETTING = "5,000 nodes in PostgreSQL, their freshness in Redis; CPU of the view in its process, sign-in and middleware left out."


def run() -> list[Outcome]:
    # The whole list is kept for one round of collection: long enough here to measure what is kept.
    with installation.installed(NUMAWEB_COLLECT_PERIOD="300", NUMAWEB_COLLECT_SHIFT="600") as place:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.answering"],
            cwd=servers.ROOT,
            env=place.surroundings,
            capture_output=True,
            text=True,
            timeout=300,
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    found = msgspec.json.decode(done.stdout, type=dict[str, list[float]])
    whole, page = (int(size) for size in found["bytes"])
    return [
        compared(
            found,
            "page",
            "nested",
            "REST: a page of 100 of 5,000 nodes",
            0.4,
            f"{page / 1e3:.0f} KB. Peer: ModelSerializer with cluster and topology nested, PageNumberPagination, the same columns.",
        ),
        compared(
            found,
            "whole",
            "encode",
            "REST: all 5,000 nodes, kept",
            3,
            f"{whole / 1e6:.1f} MB, as every caller but the first of a round gets them. Peer: msgspec.json.encode of the same rows.",
        ),
        compared(
            found,
            "same",
            "encode",
            "REST: all 5,000 nodes, unchanged (304)",
            0.5,
            "The caller sends the ETag that it has. Peer: msgspec.json.encode of the same rows.",
        ),
        compared(
            found,
            "anew",
            "flat",
            "REST: all 5,000 nodes, made anew",
            0.5,
            "Read from the database, once a round however many ask. Peer: ModelSerializer without nesting.",
        ),
    ]


def compared(
    found: dict[str, list[float]], ours: str, peer: str, what: str, goal: float, how: str
) -> Outcome:
    ratios = [a / b for a, b in zip(found[ours], found[peer], strict=True)]
    return Outcome(
        what,
        measure.spread(found[ours]).shown("ms", 1e3, 2),
        measure.spread(found[peer]).shown("ms", 1e3, 2),
        measure.spread(ratios).median,
        goal,
        how=f"{SETTING} {how}",
    )
