"""The exporter against Debian's node_exporter on the same tree: CPU of one answer, and resident memory."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import measure
from benchmarks.outcome import Outcome
from tests import servers

MODEL, CONTAINERS = "epyc-nps4", 250
REQUESTS = 4
"""Answers per round and side."""
PAUSE = 0.65
"""Seconds between two questions to the exporter: longer than it keeps a reading, so that each answer is a new one."""
SETTLE = 0.05
"""Seconds after an answer that still count: what a server does after it has answered is its work too."""

TREE = f"a generated tree of the server model {MODEL} (8 NUMA nodes, 384 CPUs) with {CONTAINERS} containers"
HOW = (
    f"CPU of the exporter's process per answer on {TREE}, {REQUESTS} answers a round, each at least {PAUSE} s after the "
    "one before so that every answer is a fresh reading. Peer: prometheus-node-exporter with --collector.cpu and "
    "--collector.meminfo_numa only, --path.procfs and --path.sysfs at the same tree, /metrics. Both ends keep the "
    "connection open; /metrics is asked for with gzip as Prometheus does"
)


@contextlib.contextmanager
def tree() -> Iterator[Path]:
    """The machine's files, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="numaweb-bench-") as name:
        folder = Path(name, "tree")
        command = [sys.executable, "-m", "numasim", "tree", "--model", MODEL, "--dir", str(folder)]
        done = subprocess.run(
            [*command, "--containers", str(CONTAINERS)], cwd=servers.ROOT, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"no tree: {done.stderr.strip().splitlines()[-1:]}")
        yield folder


def ours(folder: Path, root: Path, port: int) -> servers.Server:
    command = [
        sys.executable,
        "-m",
        "numaagent",
        "exporter",
        "--root",
        str(root),
        "--listen",
        f"127.0.0.1:{port}",
    ]
    environment = {**os.environ, "NODE_NAME": "bench"}
    return servers.Server(
        command,
        folder,
        lambda _: servers.answers(f"http://127.0.0.1:{port}/healthz"),
        environment=environment,
    )


def peer(folder: Path, root: Path, port: int) -> servers.Server:
    command = [
        str(servers.program("prometheus-node-exporter")),
        "--collector.disable-defaults",
        "--collector.cpu",
        "--collector.meminfo_numa",
        f"--path.procfs={root / 'proc'}",
        f"--path.sysfs={root / 'sys'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    return servers.Server(command, folder, lambda _: servers.listens(port))


class Client:
    """One kept connection to a server of this machine."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def get(self, path: str, **headers: str) -> bytes:
        self.connection.request("GET", path, headers=headers)
        response = self.connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} answered {response.status}: {body[:200]!r}")
        return body


def cost(pid: int, ask: Callable[[], object]) -> Callable[[], float]:
    """CPU seconds per answer of one process, as one side of a comparison."""

    def once() -> float:
        total = 0.0
        for _ in range(REQUESTS):
            time.sleep(PAUSE)
            with measure.spent(pid) as used:
                ask()
                time.sleep(SETTLE)
            total += used.seconds
        return total / REQUESTS

    return once


def process(server: servers.Server) -> int:
    assert server.process is not None
    return server.process.pid


def known(snapshot: bytes) -> str:
    """The hashes of an answer as the next question names them, but for what moves always on a real machine."""
    sections = json.loads(snapshot)["sections"]
    return ",".join(f"{name}:{section['hash']}" for name, section in sections.items() if name != "usage")


def run() -> list[Outcome]:
    with tree() as root, contextlib.ExitStack() as stack:
        folder = root.parent
        our_port, peer_port = servers.free_port(), servers.free_port()
        exporter = stack.enter_context(servers.running(ours(folder, root, our_port)))
        node_exporter = stack.enter_context(servers.running(peer(folder, root, peer_port)))
        us, them = Client(our_port), Client(peer_port)
        snapshot = us.get("/v1/snapshot")
        path = f"/v1/snapshot?have={known(snapshot)}"
        text = {"Accept-Encoding": "gzip"}
        full, delta, metrics, reference = measure.in_turns(
            [
                cost(process(exporter), lambda: us.get("/v1/snapshot")),
                cost(process(exporter), lambda: us.get(path)),
                cost(process(exporter), lambda: us.get("/metrics", **text)),
                cost(process(node_exporter), lambda: them.get("/metrics", **text)),
            ]
        )
        sizes = f"{len(snapshot)} bytes whole, {len(us.get(path))} bytes of usage when the other sections are left out as unchanged"
        memory = measure.resident(process(exporter)) / 2**20
        peer_memory = measure.resident(process(node_exporter)) / 2**20
    base = reference.shown("ms", 1e3)
    return [
        Outcome(
            "exporter: CPU per /v1/snapshot",
            delta.shown("ms", 1e3),
            base,
            delta.median / reference.median,
            0.15,
            how=f"{HOW}. The question names the hashes that it has, as the collector's does ({sizes}); "
            f"without them: {full.shown('ms', 1e3)}.",
        ),
        Outcome(
            "exporter: CPU per /metrics",
            metrics.shown("ms", 1e3),
            base,
            metrics.median / reference.median,
            0.5,
            how=f"{HOW}.",
        ),
        Outcome(
            "exporter: resident memory",
            f"{memory:.1f} MiB",
            f"{peer_memory:.1f} MiB",
            memory * 2**20 / 1e6,
            64,
            "MB",
            how="Resident memory after all answers of the lines above.",
        ),
    ]
