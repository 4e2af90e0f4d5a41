"""A real node in a real cluster: the emulated machine with its kubelet, joined to a control plane outside of it.

lab.plane.api.create(pods.pinned("one", cpus=2))
lab.until_phase("one", "Running")
lab.state("cpu_manager_state")["entries"]
lab.restart_kubelet()
"""

import contextlib
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import kubeconfig
from tests.cluster.api import Api, Object
from tests.cluster.commandlines import ADMINISTRATORS
from tests.cluster.controlplane import ControlPlane, condition
from tests.node import network
from tests.node.machine import BOOT_SECONDS, Machine
from tests.node.ssh import CommandError

NAME = "numa-1"
"""Of the node."""
KUBELET_PORT = 10250
SETTINGS = "/var/lib/kubelet/config.yaml"
STATE = "/var/lib/kubelet"
READY_SECONDS = 900.0
"""How long a step of the node may take. It takes seconds, on a machine that does nothing else."""
LOOK_SECONDS = 0.5
"""Between two looks. Each one takes processors from those that are emulated."""
_SAVED = "member"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NAME}"
NODE = f"/api/v1/nodes/{NAME}"


def until(
    true: Callable[[], object],
    wanted: str,
    seconds: float = READY_SECONDS,
    *,
    words: Callable[[], str] = lambda: "",
) -> None:
    """Returns when it is true; fails, and says what was wanted, when it does not become true. `words`: what else to say then."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:.0f} s for {wanted}\n{words()}")
        time.sleep(LOOK_SECONDS)


class Lab:
    """The node as tests see it; `machine` has what is below the kubelet, `plane` the cluster."""

    def __init__(self, plane: ControlPlane, machine: Machine) -> None:
        self.plane, self.machine = plane, machine
        self._untouched = False
        self.kubelet = Api(self._kubelet_access())
        """The kubelet's own HTTP server, as administrator: `lab.kubelet.get("/configz")`."""
        # Shorter words for what nearly every test says.
        self.run, self.put, self.get = machine.shell.run, machine.shell.put, machine.shell.get

    # ------------------------------------------------------------ life

    def join(self, *archives: Path) -> None:
        """Gives the machine its place in the cluster and these container images, once, and saves it so for `fresh`. Its kubelet has yet to start."""
        authority = self.plane.authority
        user, groups = f"system:node:{NAME}", ["system:nodes"]
        serving = authority.server([NAME], [network.NODE])
        self.put("/etc/kubernetes/pki/ca.crt", authority.pem)
        self.put("/etc/kubernetes/kubelet.conf", self.plane.kubeconfig(user, groups), 0o600)
        self.put("/var/lib/kubelet/pki/kubelet.crt", serving.certificate)
        self.put("/var/lib/kubelet/pki/kubelet.key", serving.key, 0o600)
        for archive in archives:
            self.load(archive)
        # `systemctl enable` would read all units anew.
        units = "/etc/systemd/system"
        self.run(f"ln -s {units}/kubelet.service {units}/multi-user.target.wants/ && sync")
        self.machine.save(_SAVED)
        self._untouched = True

    def fresh(self, *changes: tuple[str, str]) -> None:
        """A node that has just joined: default settings but for these words (`configure`), no pods, and a kubelet that was started for the first time."""
        if not self._untouched:
            self._clear()
            self.machine.resume(_SAVED)
        self._untouched = False
        if changes:
            self.configure(*changes)
        self.restart_kubelet()

    def load(self, archive: Path) -> None:
        """A container image into the node's containerd."""
        self.run("ctr --namespace k8s.io images import -", given=archive.read_bytes(), timeout=READY_SECONDS)

    def restart_kubelet(self) -> None:
        """Returns when the node is Ready and its lease was renewed since. Whether the kubelet stays up is another question:
        one that is doomed answers for some seconds (`kubelet_process`)."""
        begun = time.time()
        self.run("systemctl restart kubelet.service")
        self.until_ready(begun)

    def reboot(self) -> None:
        """Returns when the system that was started anew answers; its kubelet may still be on its way."""
        before = self.get(_BOOT_ID)
        self.run("systemctl --no-block reboot")

        def is_another() -> bool:
            # The old one answers for a while, and a connection to it would hang.
            self.machine.wait_for_boot()
            with contextlib.suppress(CommandError, subprocess.TimeoutExpired):
                return self.machine.shell.raw(f"cat {_BOOT_ID}", timeout=30) != before
            return False

        until(is_another, "another boot", BOOT_SECONDS, words=self.machine.console)

    def until_ready(self, since: float) -> None:
        """`since`: seconds since the epoch, before the kubelet began."""
        until(
            lambda: self._is_ready(since),
            "a Ready node",
            words=lambda: f"{self.machine.console(10)}\n{self.journal(20)}",
        )

    # ------------------------------------------------------------ the kubelet

    @property
    def machine_id(self) -> str:
        return self.get("/etc/machine-id").decode().strip()

    def configz(self) -> dict[str, Any]:
        """What the kubelet says is in force."""
        return dict(self.kubelet.get("/configz")["kubeletconfig"])

    def settings(self) -> str:
        """Its configuration file."""
        return self.get(SETTINGS).decode()

    def configure(self, *changes: tuple[str, str], more: str = "") -> None:
        """Replaces words in the configuration file, each of which has to be there, and adds lines. The kubelet is left alone."""
        text = self.settings()
        for old, new in changes:
            assert old in text, f"{old!r} is not in {SETTINGS}"
            text = text.replace(old, new)
        self.put(SETTINGS, text + more)

    def state(self, name: str) -> dict[str, Any]:
        """`cpu_manager_state` or `memory_manager_state` as they lie on the node."""
        return dict(json.loads(self.get(f"{STATE}/{name}")))

    def kubelet_process(self) -> tuple[int, int]:
        """Its process, 0 = there is none, and how often systemd started it again by itself: two equal answers 20 s apart say that it stays."""
        told = self.run("systemctl show kubelet.service --property=MainPID --property=NRestarts")
        found = dict(line.split("=", 1) for line in told.split())
        return int(found["MainPID"]), int(found["NRestarts"])

    def journal(self, lines: int = 40, unit: str = "kubelet") -> str:
        return self.run(f"journalctl --unit={unit} --no-pager --output=cat --lines={lines}")

    # ------------------------------------------------------------ pods

    def pod(self, name: str, namespace: str = "default") -> Object:
        return self.plane.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def until_phase(self, name: str, phase: str, namespace: str = "default") -> Object:
        """The pod, when it is in this phase."""
        until(
            lambda: self.pod(name, namespace)["status"].get("phase") == phase,
            f"{name} to be {phase}",
        )
        return self.pod(name, namespace)

    def containers(self, *pods: str) -> dict[str, str]:
        """The id of each pod's one container, of those that run: equal twice, and nobody was started anew."""
        found = {name: self.pod(name)["status"] for name in pods}
        return {
            name: status["containerStatuses"][0]["containerID"]
            for name, status in found.items()
            if status["phase"] == "Running" and "running" in status["containerStatuses"][0]["state"]
        }

    def events(self, name: str, namespace: str = "default") -> list[Object]:
        """What the cluster heard about an object of this name."""
        query = f"involvedObject.name={name}"
        return self.plane.api.items(f"/api/v1/namespaces/{namespace}/events", fieldSelector=query)

    # ------------------------------------------------------------ inner parts

    def _is_ready(self, since: float) -> bool:
        api = self.plane.api
        if not (api.exists(NODE) and api.exists(_LEASE)):
            return False
        renewed = api.get(_LEASE)["spec"]["renewTime"]
        # The lease and not lastHeartbeatTime: that one moves every five minutes when nothing changes.
        asked = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))
        return condition(api.get(NODE), "Ready") == "True" and renewed[: len(asked)] > asked

    def _clear(self) -> None:
        """Nothing of an earlier test is left in the cluster, and what it ran is not waited for: its node is about to be another."""
        api = self.plane.api
        for kind in ("apps/v1/daemonsets", "apps/v1/deployments", "batch/v1/jobs"):
            group, _, name = kind.rpartition("/")
            for each in api.items(f"/apis/{kind}"):
                api.delete(
                    f"/apis/{group}/namespaces/{each['metadata']['namespace']}/{name}/{each['metadata']['name']}",
                    propagationPolicy="Background",
                )
        until(self._has_no_pods, "a cluster without pods")
        # With what a test did to it, such as a cordon; the kubelet makes another.
        api.delete("/api/v1/nodes")
        for namespace in {each["metadata"]["namespace"] for each in api.items("/api/v1/events")}:
            api.delete(f"/api/v1/namespaces/{namespace}/events")

    def _has_no_pods(self) -> bool:
        found = self.plane.api.items("/api/v1/pods")
        for namespace in {each["metadata"]["namespace"] for each in found}:
            self.plane.api.delete(f"/api/v1/namespaces/{namespace}/pods", gracePeriodSeconds=0)
        return not found

    def _kubelet_access(self) -> str:
        authority = self.plane.authority
        proof = authority.client("administrator", [ADMINISTRATORS])
        url = f"https://{network.NODE}:{KUBELET_PORT}"
        return kubeconfig.text(url, authority.pem, "administrator", proof)
