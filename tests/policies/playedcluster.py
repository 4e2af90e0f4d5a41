"""A cluster that is played for rollouts: nodes, pods, budgets, Jobs with their appliers, exporters, and a clock that tests turn.

It stands where `policies.gateway.Hands` would (`reach.enter`), and may kill the worker after anything that it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from monitoring.kube.access import Access
from monitoring.kube.errors import Unreachable
from monitoring.kube.rights import Right
from monitoring.models import Cluster, Node
from numacore import report
from numacore.change import order as orders
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubelet.checks import documents
from numacore.kubeletstate import CpuManagerState, KubeletFile, Setting
from numacore.report import NodeReport
from policies.gateway.drains import Budget, Evicted, LivePod
from policies.gateway.jobs import Applied, order_of
from policies.gateway.nodes import LiveNode
from policies.services.rollout import signing
from tests.appliers.played import PlayedNode
from tests.monitoring.pages import machines, seeds

PATH = "/var/lib/kubelet/config.yaml"
TEXT = """# ours
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: none  # since May
systemReserved:
  cpu: "1"
"""
_TOPOLOGY = machines.topology(sockets=1, numa=2, cores=4, threads=1)
_told: dict[tuple[str | None, str | None, bytes | None], tuple[Facts, NodeReport]] = {}


class KilledError(BaseException):
    """The worker's process is gone."""


def die() -> None:
    raise KilledError


class Machine:
    """One node: what Kubernetes knows of it, its file and its applier."""

    def __init__(self, name: str, text: str | None = TEXT) -> None:
        self.name, self.uid = name, f"uid-{name}"
        self.version = 1
        self.ready, self.cordoned, self.mark = True, False, ""
        self.control_plane = False
        self.applier = PlayedNode(name, text, machine_id=f"machine-{name}")
        self.answers = True
        """Whether its applier ever says anything."""
        self.carries_out = True
        """Whether its Job is started at all."""
        self.heals = True
        """Whether its kubelet is Ready again after a change."""
        self.reports = True
        self.settings: dict[str, Any] | None = None
        """What its exporter tells instead of what its file says."""
        self.crossing: int | None = 0
        self.row: Node | None = None

    @property
    def live(self) -> LiveNode:
        return LiveNode(
            name=self.name,
            uid=self.uid,
            version=str(self.version),
            ready=self.ready,
            cordoned=self.cordoned,
            mark=self.mark,
            control_plane=self.control_plane,
        )

    def told(self) -> tuple[Facts, NodeReport]:
        """What its exporter tells, and what is made of that; of equal nodes once."""
        shown = None if self.settings is None else msgspec.json.encode(self.settings)
        key = (self.applier.text, self.applier.cpu_policy, shown)
        if key not in _told:
            facts = self._facts()
            _told[key] = (facts, report.node_report(facts))
        return _told[key]

    def _facts(self) -> Facts:
        made = machines.server(_TOPOLOGY)
        assert made.kubelet is not None
        text = self.applier.text
        value = documents.read(text).value if text else {}
        fields = {name: each for name, each in (value or {}).items() if name not in ("apiVersion", "kind")}
        shown = fields if self.settings is None else self.settings
        files = (
            (KubeletFile(path=PATH, kind="file", sha256=orders.sha256(text), text=text),)
            if text is not None
            else ()
        )
        state = self.applier.cpu_policy
        kubelet = msgspec.structs.replace(
            made.kubelet,
            version="v1.37.2",
            settings={name: Setting(each, "file", PATH) for name, each in shown.items()},
            config_path=PATH,
            files=files,
            cpu_state=CpuManagerState(state, CpuSet.parse("0-7"), {}) if state else None,
            memory_state=None,
        )
        return msgspec.structs.replace(made, kubelet=kubelet, containers=())


class PlayedCluster:
    """`events`: what happened, in order. `boundary` is called after each thing that changes the cluster."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self.cluster, self.now = cluster, now
        self.machines: dict[str, Machine] = {}
        self.pods: dict[str, LivePod] = {}
        self.blocked: set[str] = set()
        self.lacking: list[Right] = []
        self.made: dict[str, tuple[str, bytes]] = {}
        """Jobs by name: for which node, and its signed order."""
        self.messages: dict[str, str] = {}
        self.events: list[tuple[str, str]] = []
        self.peak = 0
        self.away = False
        self.boundaries, self.at = 0, 0
        self.do: Callable[[], None] = die
        self.before: Callable[[], None] = lambda: None
        """Called when something is about to be changed here."""
        self.nodes = self.drains = self.jobs = self

    # ------------------------------------------------------------ how a test sets it up

    def add(self, name: str, text: str | None = TEXT) -> Machine:
        machine = self.machines[name] = Machine(name, text)
        machine.row = seeds.node(
            self.cluster, name, machine.told()[0], heard=self.now.timestamp(), uid=machine.uid
        )
        seeds.in_kubernetes(machine.row, machine_id=machine.applier.machine_id, labels={})
        return machine

    def run(self, name: str, node: str, namespace: str = "shop", **known: Any) -> LivePod:
        """A pod on a node."""
        values = {"uid": f"pod-{namespace}-{name}", "phase": "Running", "owner": "ReplicaSet", **known}
        pod = LivePod(namespace=namespace, name=name, node=node, **values)
        self.pods[pod.key] = pod
        return pod

    def enter(self, _access: Access) -> Any:
        return self

    def boundary(self) -> None:
        """Counts one; at the chosen one something is done: the worker dies, somebody stops the rollout."""
        self.boundaries += 1
        if self.boundaries == self.at:
            self.do()

    def seize(self, at: int, do: Callable[[], None]) -> None:
        """Counts from anew; what happens at which boundary."""
        self.boundaries, self.at, self.do = 0, at, do

    def pass_time(self, seconds: float = 2.0) -> None:
        """Appliers work, kubelets come back, exporters tell."""
        self.now += timedelta(seconds=seconds)
        for name, (node, order) in list(self.made.items()):
            if name not in self.messages and self.machines[node].carries_out:
                self._carry_out(name, self.machines[node], order)
        for machine in self.machines.values():
            self.tell(machine)

    def _carry_out(self, name: str, machine: Machine, order: bytes) -> None:
        pem = signing.signer().public_pem
        before = len(machine.applier.changes)
        answer = machine.applier.give(order, pem, self.now.timestamp())
        if len(machine.applier.changes) != before:
            machine.ready = machine.heals
            machine.version += 1
        self._note(f"applier {answer.outcome}", machine.name)
        self.messages[name] = orders.encode_answer(answer).decode() if machine.answers else ""

    def tell(self, machine: Machine) -> None:
        """What its exporter says arrives."""
        if not machine.reports or machine.row is None:
            return
        seeds.live(machine.row, *machine.told(), self.now.timestamp())
        if machine.row.crossing != machine.crossing:
            machine.row.crossing = machine.crossing
            machine.row.save(update_fields=["crossing"])

    def ours(self) -> list[str]:
        """Nodes that stand cordoned with a mark of a rollout."""
        return [each.name for each in self.machines.values() if each.mark]

    def count(self, event: str) -> Counter[str]:
        """How often it happened, by what it happened to."""
        return Counter(subject for kind, subject in self.events if kind == event)

    def _note(self, event: str, subject: str) -> None:
        self.events.append((event, subject))
        down = sum(1 for each in self.machines.values() if each.cordoned or not each.ready)
        self.peak = max(self.peak, down)

    def _change(self) -> None:
        if self.away:
            raise Unreachable(0, "Unreachable", "connection refused")
        self.before()

    # ------------------------------------------------------------ as `policies.gateway.Hands`

    def missing(self, _namespace: str) -> list[Right]:
        return self.lacking

    def read(self, name: str) -> LiveNode | None:
        if self.away:
            raise Unreachable(0, "Unreachable", "connection refused")
        return self.machines[name].live if name in self.machines else None

    def all(self) -> Iterator[LiveNode]:
        return (each.live for each in self.machines.values())

    def cordon(self, node: LiveNode, mark: str) -> str:
        return self._patch(node, True, mark, "cordon")

    def uncordon(self, node: LiveNode) -> str:
        return self._patch(node, False, "", "uncordon")

    def _patch(self, node: LiveNode, cordoned: bool, mark: str, event: str) -> str:
        self._change()
        machine = self.machines.get(node.name)
        if machine is None:
            return "gone"
        if str(machine.version) != node.version or machine.uid != node.uid:
            return "changed"
        machine.cordoned, machine.mark, machine.version = cordoned, mark, machine.version + 1
        self._note(event, f"{node.name} {mark}".rstrip())
        self.boundary()
        return "done"

    def pods_on(self, node: str) -> list[LivePod]:
        return [each for each in self.pods.values() if each.node == node]

    def every_pod(self) -> Iterator[LivePod]:
        return iter(list(self.pods.values()))

    def evict(self, pod: LivePod) -> Evicted:
        self._change()
        there = self.pods.get(pod.key)
        if there is None or there.uid != pod.uid:
            return Evicted("gone", "not found")
        if pod.key in self.blocked:
            return Evicted("blocked", "Cannot evict pod as it would violate the pod's disruption budget.")
        del self.pods[pod.key]
        self._note("evict", pod.key)
        self.boundary()
        return Evicted("evicted")

    def budgets(self) -> list[Budget]:
        return []

    def put(self, _namespace: str, manifest: Mapping[str, Any]) -> str:
        self._change()
        name, node = manifest["metadata"]["name"], manifest["spec"]["template"]["spec"]["nodeName"]
        job = (node, order_of(manifest).encode())
        if name in self.made:
            return "there" if self.made[name] == job else "other"
        self.made[name] = job
        self._note("job", name)
        self.boundary()
        return "made"

    def look(self, _namespace: str, name: str) -> Applied | None:
        if name not in self.made:
            return None
        message = self.messages.get(name, "")
        return Applied(message=message, ended=name in self.messages)

    def remove(self, _namespace: str, name: str) -> None:
        self._change()
        self.made.pop(name, None)
        self.messages.pop(name, None)
        self._note("remove", name)
        self.boundary()
