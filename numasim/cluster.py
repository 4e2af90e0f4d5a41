"""Runs a simulated cluster: trees that move, sockets that answer, and the real exporter on each tree."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from numasim import announce, leash, place, podresources
from numasim.node import Node
from numasim.spec import Spec
from numasim.trees import NodeTree

READY_SECONDS = 90.0
STOP_SECONDS = 5.0


class ClusterError(Exception):
    """The cluster cannot run; the message says why and what helps."""


class Exporter:
    """The real exporter on one tree, as a child process."""

    def __init__(self, root: Path, name: str, log: Path) -> None:
        self.name, self._log = name, log
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        command = [sys.executable, "-m", "numaagent", "exporter", "--root", str(root)]
        self.process = leash.start([*command, "--listen", f"127.0.0.1:{self._port}"], log)

    def wait(self, deadline: float) -> None:
        """Waits until it answers.

        Raises:
            ClusterError: it ended or stayed silent; with the end of its output.
        """
        while not _answers(f"{self.url}/healthz"):
            if self.process.poll() is not None:
                raise ClusterError(f"the exporter of {self.name} ended at once: {self._last_words()}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"the exporter of {self.name} does not answer on {self.url}: {self._last_words()}"
                )
            time.sleep(0.05)

    def _last_words(self) -> str:
        text = self._log.read_text(errors="replace").strip()
        return text[-500:] or "it printed nothing"


class Cluster:
    """Nodes below one directory. Use as a context: leaving it ends the children."""

    def __init__(self, directory: Path, specs: Sequence[Spec], seed: int) -> None:
        self.directory = directory
        self._nodes = [Node(spec, seed) for spec in specs]
        self._begun = time.monotonic()
        self._trees = [NodeTree(directory / node.spec.name, node, time.time()) for node in self._nodes]
        self._kubelets = podresources.Server()
        self.exporters: list[Exporter] = []

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        for tree in self._trees:
            podresources.check_path(tree.root)
        for tree, node in zip(self._trees, self._nodes, strict=True):
            tree.write()
            self._kubelets.add(tree.root, node)
            log = self.directory / f"{node.spec.name}.log"
            self.exporters.append(Exporter(tree.root, node.spec.name, log))

    def wait(self) -> None:
        """Waits until every exporter answers."""
        deadline = time.monotonic() + READY_SECONDS
        for exporter in self.exporters:
            exporter.wait(deadline)

    def tick(self) -> None:
        """Moves every node to the present."""
        now = time.monotonic() - self._begun
        for tree, node in zip(self._trees, self._nodes, strict=True):
            node.advance(now)
            if tree.update():
                self._kubelets.update(node)

    def run(self, period: float, stop: threading.Event) -> None:
        """Ticks until told to stop.

        Raises:
            ClusterError: an exporter ended by itself.
        """
        following = time.monotonic() + period
        while not stop.wait(max(0.0, following - time.monotonic())):
            self.tick()
            ended = next((each for each in self.exporters if each.process.poll() is not None), None)
            if ended is not None:
                ended.wait(0)
            # After a pause (a sleeping laptop) it goes on from now instead of catching up.
            following = max(following + period, time.monotonic())

    def close(self) -> None:
        """Ends the children and closes the sockets."""
        for exporter in self.exporters:
            exporter.process.terminate()
        for exporter in self.exporters:
            _end(exporter.process)
        self._kubelets.close()


def run(directory: Path | None, specs: Sequence[Spec], seed: int, file: Path, period: float) -> None:
    """Runs a cluster until SIGTERM or SIGINT; its exporters stand in `file` meanwhile."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    file.unlink(missing_ok=True)
    with place.claimed(directory) as claimed, Cluster(claimed, specs, seed) as cluster:
        try:
            cluster.wait()
            # Whoever reads next finds one period's worth of movement, not all of the time since the trees were made.
            cluster.tick()
            announce.write(file, [(each.name, each.url) for each in cluster.exporters])
            cluster.run(period, stop)
        finally:
            file.unlink(missing_ok=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310, an address of our own making
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
