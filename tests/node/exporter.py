"""Our exporter as a cluster runs it: the DaemonSet of the documentation on the real node, asked at its pod's address."""

import urllib.request

import msgspec

from numacore import wire
from numacore.kubeletstate import Kubelet
from numacore.wire import Containers, Machine, Problem
from numacore.workload import Container
from tests.cluster.api import Object
from tests.cluster.controlplane import condition, until
from tests.node.lab import READY_SECONDS, Lab
from tests.servers import ROOT

MANIFEST = ROOT / "docs" / "kubernetes" / "numa-exporter.yaml"
NAMESPACE = "numaweb"
PORT = 9797
TIMEOUT_SECONDS = 60


class Told(msgspec.Struct, frozen=True):
    """What the exporter says, as numaweb reads it."""

    exporter: wire.Exporter
    machine: Machine
    kubelet: Kubelet
    containers: tuple[Container, ...]
    problems: tuple[Problem, ...]

    def of(self, pod: str) -> Container:
        """The one container of this pod."""
        [found] = [each for each in self.containers if each.pod == pod]
        return found


def deploy(lab: Lab) -> Object:
    """Its pod, which is ready."""
    lab.plane.api.apply(MANIFEST)
    until(lambda: ready_pod(lab), "an exporter that runs", READY_SECONDS)
    pod = ready_pod(lab)
    assert pod is not None
    return pod


def ready_pod(lab: Lab) -> Object | None:
    found = lab.plane.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector="app=numa-exporter")
    return next((pod for pod in found if condition(pod, "Ready") == "True"), None)


def ask(pod: Object) -> Told:
    """Everything that this exporter tells now."""
    address = f"http://{pod['status']['podIP']}:{PORT}/v1/snapshot"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=TIMEOUT_SECONDS) as answer:
        snapshot = wire.decode(answer.read())
    data = {name: section.data for name, section in snapshot.sections.items()}

    def part(name: str) -> msgspec.Raw:
        found = data[name]
        assert found is not None
        return found

    return Told(
        exporter=snapshot.exporter,
        machine=wire.decode_section(Machine, part("machine")),
        kubelet=wire.decode_section(Kubelet, part("kubelet")),
        containers=wire.decode_section(Containers, part("containers")).containers,
        problems=snapshot.problems,
    )
