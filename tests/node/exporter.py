"""Our exporter as a cluster runs it: the DaemonSet of the documentation on the real node, asked at its pod's address."""

import contextlib
import urllib.request
from datetime import datetime

import msgspec

from numacore import wire
from numacore.change.managed import NodeInfo
from numacore.change.wish import Wish
from numacore.facts import Facts
from numacore.kubeletstate import Kubelet
from numacore.whatif import changing
from numacore.whatif.changing import Change
from numacore.wire import Containers, Machine, Problem
from numacore.workload import Container
from tests.cluster.api import Object
from tests.cluster.controlplane import condition
from tests.node.lab import NODE, Lab, until
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
    until(lambda: ready_pod(lab), "an exporter that runs")
    pod = ready_pod(lab)
    assert pod is not None
    return pod


def ready_pod(lab: Lab) -> Object | None:
    found = lab.plane.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector="app=numa-exporter")
    return next((pod for pod in found if condition(pod, "Ready") == "True"), None)


def knowing(exporter: Object, *pods: str) -> Told:
    """What this exporter tells when it knows these pods too."""
    found: list[Told] = []

    def knows_all() -> bool:
        # It runs before it answers.
        with contextlib.suppress(OSError):
            found[:] = [ask(exporter)]
        return bool(found) and all(_is_whole(found[0], pod) for pod in pods)

    until(knows_all, f"an exporter that knows {pods}")
    return found[0]


def _is_whole(told: Told, pod: str) -> bool:
    """While a pod starts, its sandbox and what the kubelet promised to its container stand beside each other."""
    found = [each for each in told.containers if each.pod == pod]
    return len(found) == 1 and found[0].cgroup is not None and found[0].name is not None


def preview(lab: Lab, told: Told, wish: Wish) -> Change:
    """What numaweb would say before this wish is carried out, from what the exporter and the API server tell."""
    node = lab.plane.api.get(NODE)
    info = node["status"]["nodeInfo"]
    seen = NodeInfo(
        labels=node["metadata"]["labels"], os_image=info["osImage"], version=info["kubeletVersion"]
    )
    facts = Facts(
        topology=told.machine.topology,
        attributes=told.machine.attributes,
        kubelet=msgspec.structs.replace(told.kubelet, version=info["kubeletVersion"]),
        containers=told.containers,
    )
    ages = {
        pod["metadata"]["uid"]: datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).timestamp()
        for pod in lab.plane.api.items("/api/v1/pods")
    }
    return changing.preview(facts, wish, seen, ages)


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
