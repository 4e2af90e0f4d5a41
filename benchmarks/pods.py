"""A list of 150,000 pods: CPU time and memory of reading it, against the official client's objects of the same bytes."""

import subprocess
import sys

import msgspec

from benchmarks import measure
from benchmarks.outcome import Outcome
from tests import servers

PODS = 150_000
PEER_PODS = 3_000
"""The peer takes minutes for all, and as much for each pod whatever their number."""
GOAL = 1 / 40


def run() -> list[Outcome]:
    ours, peer = asked("ours", PODS), asked("peer", PEER_PODS)
    mine, theirs = measure.spread(ours["seconds"]), measure.spread(peer["seconds"])
    scale = PODS / PEER_PODS
    size = ours["bytes"][0] / PODS
    how = (
        f"CPU time of monitoring.kube.lists.decode for {PODS:,} pods in pages of 500 ({size:,.0f} bytes each with managedFields, two containers, "
        "conditions and statuses, as a Deployment's pods look in the API), from raw body to values, garbage collection as it comes. Peer: "
        f"ApiClient.deserialize of the official client into V1PodList, pages of the same bytes, {PEER_PODS:,} pods, scaled by {scale:g}. Each in "
        "a process of its own, three rounds."
    )
    return [
        Outcome(
            "LIST of 150,000 pods: CPU",
            mine.shown("s"),
            measure.Spread(*(each * scale for each in msgspec.structs.astuple(theirs))).shown("s", 1, 0),
            mine.median / (theirs.median * scale),
            GOAL,
            how=how,
        ),
        Outcome(
            "LIST of 150,000 pods: memory",
            f"{ours['peak'][0] / 2**20:.0f} MiB",
            "-",
            ours["peak"][0] / 2**20,
            600,
            "MiB",
            "Peak resident memory of the process of the line above, interpreter and libraries included. A page is dropped when the next one "
            "comes, as a sink that writes into a database does.",
        ),
    ]


def asked(side: str, pods: int) -> dict[str, list[float]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.listing", side, str(pods)],
        cwd=servers.ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-1000:])
    return msgspec.json.decode(done.stdout, type=dict[str, list[float]])
