"""A worker of rollouts as a process that is really killed, on a real API server: another one goes on, and nothing is done twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests import stack
from tests.cluster import rights, things
from tests.cluster.controlplane import ControlPlane, until
from tests.cluster.played import PODS, PlayedAppliers
from tests.policies.playedcluster import TEXT

NODES = "/api/v1/nodes"
PATIENCE = 150.0
"""Seconds that a worker may take from its start; it takes some, on a machine that does nothing else."""


class Killable:
    """Workers as processes of their own on one SQLite file; what exporters tell of the nodes stands in files beside it."""

    def __init__(self, plane: ControlPlane, folder: Path, names: list[str]) -> None:
        self.plane, self.folder, self.names = plane, folder, names
        (folder / "nodes").mkdir()
        (folder / "kubeconfig").write_text(rights.kubeconfig(plane, "rollouts"))
        self._surroundings = stack.environment(
            NUMAWEB_STATE_DIR=str(folder / "state"),
            NUMAWEB_SECRET_KEY="only-for-tests-" * 5,
            NUMAWEB_ROLLOUTS="1",
            NUMAWEB_ROLLOUT_LOOK="0.1",
            NUMAWEB_ROLLOUT_READY="0.1",
        )
        for name in names:
            plane.api.apply(things.node(name))
        self.uids = {name: plane.api.get(f"{NODES}/{name}")["metadata"]["uid"] for name in names}
        self.appliers: PlayedAppliers | None = None
        for name in names:
            self._tell(name, TEXT, "none")
        self.number = int(self.asked("setup"))
        self.appliers = PlayedAppliers(plane, self.asked("key"))
        for name in names:
            self.appliers.add(name, TEXT)

    def _tell(self, name: str, text: str | None, cpu_policy: str | None) -> None:
        told = {"name": name, "uid": self.uids[name], "text": text, "cpu_policy": cpu_policy}
        file = self.folder / "nodes" / f"{name}.json"
        (made := file.with_suffix(".new")).write_text(json.dumps(told))
        made.rename(file)

    def step(self) -> None:
        assert self.appliers is not None
        for answer in self.appliers.step():
            node = self.appliers.nodes[answer.node]
            self._tell(answer.node, node.text, node.cpu_policy)
        time.sleep(0.05)

    def has_ended(self, worker: subprocess.Popen[bytes]) -> Callable[[], bool]:
        def look() -> bool:
            self.step()
            return worker.poll() is not None

        return look

    def asked(self, *arguments: str) -> str:
        done = subprocess.run(
            self._command(*arguments), env=self._surroundings, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def worker(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command("work", str(self.number)), env=self._surroundings)

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tests.cluster.rollingworker", str(self.folder), *arguments]


def test_a_worker_that_is_killed_midway_is_followed_by_another(plane: ControlPlane, tmp_path: Path) -> None:
    site = Killable(plane, tmp_path, ["first", "other"])
    assert site.appliers is not None
    worker = site.worker()
    try:
        until(lambda: plane.api.items(PODS, labelSelector="app=numaweb-applier"), "a Job's pod", PATIENCE)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    worker = site.worker()
    try:
        until(site.has_ended(worker), "the end of the rollout", PATIENCE)
    finally:
        worker.kill()
        worker.wait()
    found = json.loads(site.asked("result", str(site.number)))
    assert (found["state"], found["outcomes"]) == ("done", {"first": "changed", "other": "changed"})
    kinds = ("cordon", "job", "uncordon", "tidy")
    assert found["acts"] == [f"{name} {kind}" for name in ("first", "other") for kind in kinds]
    assert (found["unfinished"], found["audit"]) == (0, True)
    assert [len(node.changes) for node in site.appliers.nodes.values()] == [1, 1]
    marked = [each for each in plane.api.items(NODES) if each["spec"].get("unschedulable")]
    assert marked == []
