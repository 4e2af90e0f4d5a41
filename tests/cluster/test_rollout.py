"""Rollouts on a real API server: real cordons, evictions, budgets and Jobs, with the rights of rollouts.yaml; nodes and appliers are played."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring.models import Cluster, Node
from numacore.change.wish import Wish
from policies import audit
from policies.models import Rollout
from policies.plan import Options
from policies.services import policy as policies
from policies.services.policy import Target
from policies.services.rollout import control, planning, reach, signing, work
from policies.services.rollout.error import RolloutError
from policies.services.who import Who
from tests.cluster import rights, things
from tests.cluster.controlplane import ControlPlane, until
from tests.cluster.played import PODS, PlayedAppliers
from tests.cluster.test_cleanup import connect
from tests.monitoring.pages import seeds
from tests.policies.playedcluster import TEXT, Machine

ADA = Who("ada", "10.0.0.4")
NODES = "/api/v1/nodes"
JOBS = f"/apis/batch/v1/namespaces/{rights.NAMESPACE}/jobs"


class Site:
    """A cluster whose nodes stand on the real API server and in numaweb's tables; `down`: the most that were away at once."""

    def __init__(self, plane: ControlPlane, settings: Settings, names: list[str]) -> None:
        settings.NUMAWEB_ROLLOUTS = True
        settings.NUMAWEB_ROLLOUT_LOOK, settings.NUMAWEB_ROLLOUT_READY, settings.NUMAWEB_ROLLOUT_GATE = (
            0.1,
            0.1,
            20,
        )
        self.plane = plane
        self.cluster: Cluster = seeds.cluster("real", "Real")
        connect(self.cluster, rights.kubeconfig(plane, "rollouts"))
        self.appliers = PlayedAppliers(plane, signing.signer().public_pem)
        self.rows: dict[str, Node] = {}
        self.down = 0
        for name in names:
            self._add(name)
        until(lambda: all(map(self._is_ready, names)), "nodes that are Ready")

    def _add(self, name: str) -> None:
        node = things.node(name, machine_id=f"machine-{name}")
        self.plane.api.apply(node)
        uid = self.plane.api.get(f"{NODES}/{name}")["metadata"]["uid"]
        machine = Machine(name)
        machine.applier = self.appliers.add(name, TEXT, f"machine-{name}")
        self.rows[name] = seeds.node(self.cluster, name, machine.told()[0], uid=uid)
        seeds.in_kubernetes(self.rows[name], machine_id=f"machine-{name}", labels={})

    def _is_ready(self, name: str) -> bool:
        conditions = self.plane.api.get(f"{NODES}/{name}")["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def tell(self) -> None:
        """What exporters say of the files as they are now arrives."""
        for name, row in self.rows.items():
            machine = Machine(name)
            machine.applier = self.appliers.nodes[name]
            seeds.live(row, *machine.told(), time.time())

    def planned(self, **options: Any) -> Rollout:
        self.tell()
        wish = Wish(topology_policy="single-numa-node")
        policy = policies.save(self.cluster, Target("cluster"), wish, True, ADA, timezone.now())
        made = control.create(self.cluster, policy, Options(**options), ADA, timezone.now())
        planning.plan_work(made.pk)
        made.refresh_from_db()
        assert made.state == "planned", made.cause
        return made

    def confirmed(self, **options: Any) -> Rollout:
        made = self.planned(**options)
        control.confirm(made, made.plan_hash, made.nodes.count(), ADA, timezone.now())
        return made

    def through(self, rollout: Rollout, until_so: Callable[[], object] | None = None) -> Rollout:
        """Rounds until it rests, or something is so."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            rollout.refresh_from_db()
            if not rollout.is_active or (until_so and until_so()):
                return rollout
            self.appliers.step()
            self.tell()
            work.work(rollout.pk)
            self.down = max(self.down, len(self.cordoned()))
            time.sleep(0.06)
        stands = list(rollout.nodes.values_list("name", "step", "outcome"))
        pytest.fail(f"it does not come to rest: {rollout.state} {stands} {rollout.waits_for}")

    def cordoned(self) -> list[str]:
        nodes = self.plane.api.items(NODES)
        return [each["metadata"]["name"] for each in nodes if each["spec"].get("unschedulable")]

    def marked(self) -> list[str]:
        nodes = self.plane.api.items(NODES)
        mark = "numaweb.io/rollout"
        return [each["metadata"]["name"] for each in nodes if mark in each["metadata"].get("annotations", {})]

    def text(self, name: str) -> str:
        return self.appliers.nodes[name].text or ""


def outcomes(rollout: Rollout) -> dict[str, str]:
    return dict(rollout.nodes.values_list("name", "outcome"))


def check(site: Site, most: int) -> None:
    assert site.down <= most
    assert site.cordoned() == []
    assert site.marked() == []
    assert site.plane.api.items(JOBS) == []
    until(lambda: site.plane.api.items(PODS, labelSelector="app=numaweb-applier") == [], "no applier")
    for node in site.appliers.nodes.values():
        epochs = [epoch for epoch, _act in node.changes]
        assert len(epochs) == len(set(epochs))
    assert audit.verify() is None


@pytest.mark.django_db
def test_six_nodes_with_a_canary_two_at_a_time(
    plane: ControlPlane, namespace: str, settings: Settings
) -> None:
    names = [f"roll-{number}" for number in range(6)]
    site = Site(plane, settings, names)
    plane.api.create(things.deployment("web", namespace, replicas=6, tolerations=[]))
    until(lambda: _running(plane, namespace) == 6, "pods that run")
    rollout = site.confirmed(canary=1, batch="2", max_unavailable="2")
    site.through(rollout, lambda: rollout.nodes.exclude(step="waiting").count() > 1)
    assert rollout.nodes.get(batch=0).outcome == "changed", "nobody is begun before the canary is through"
    site.through(rollout)
    assert (rollout.state, outcomes(rollout)) == ("done", dict.fromkeys(names, "changed"))
    assert all("single-numa-node" in site.text(name) for name in names)
    check(site, most=2)
    until(lambda: _running(plane, namespace) == 6, "pods that came back elsewhere")


def _running(plane: ControlPlane, namespace: str) -> int:
    pods = plane.api.items(f"/api/v1/namespaces/{namespace}/pods")
    return sum(
        1
        for each in pods
        if each.get("status", {}).get("phase") == "Running" and not each["metadata"].get("deletionTimestamp")
    )


@pytest.mark.django_db
def test_a_budget_that_really_allows_nothing_holds_the_drain_up(
    plane: ControlPlane, namespace: str, settings: Settings
) -> None:
    site = Site(plane, settings, ["held"])
    plane.api.create(things.pod("guarded", namespace, node="held", labels={"app": "guarded"}))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "none", "namespace": namespace},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    path = plane.api.path(plane.api.create(budget))
    until(lambda: plane.api.get(path).get("status", {}).get("observedGeneration"), "a budget that counts")
    until(lambda: _running(plane, namespace) == 1, "a pod that runs")
    rollout = site.confirmed(drain_within=10)
    warned = {each.code: each.values for each in control.plan_of(rollout).warnings}
    assert warned["blocking-budget"] == {"budget": f"{namespace}/none", "pods": f"{namespace}/guarded"}
    assert {"bare-pods", "single-node"} <= warned.keys()
    site.through(rollout, lambda: rollout.nodes.filter(acts__kind="evict", acts__tries__gt=2).exists())
    act = rollout.nodes.get().acts.get(kind="evict")
    assert (act.state, act.said["code"]) == ("begun", "blocked")
    assert "disruption budget" in act.said["values"]["words"]
    assert (site.cordoned(), site.marked()) == (["held"], ["held"])
    control.stop(rollout, ADA, timezone.now())
    site.through(rollout)
    assert (rollout.state, outcomes(rollout)) == ("stopped", {"held": "skipped"})
    assert _running(plane, namespace) == 1
    check(site, most=1)


@pytest.mark.django_db
def test_a_node_is_changed_and_comes_back_byte_by_byte(plane: ControlPlane, settings: Settings) -> None:
    site = Site(plane, settings, ["there"])
    rollout = site.through(site.confirmed())
    assert (rollout.state, "single-numa-node" in site.text("there")) == ("done", True)
    control.roll_back(rollout, ADA, timezone.now())
    site.through(rollout)
    assert (rollout.state, outcomes(rollout), site.text("there")) == ("returned", {"there": "returned"}, TEXT)
    check(site, most=1)


@pytest.mark.django_db
def test_a_node_that_went_back_by_itself_stops_the_others(
    plane: ControlPlane, namespace: str, settings: Settings
) -> None:
    site = Site(plane, settings, ["good", "worse", "zero"])
    site.appliers.nodes["worse"].fails = ("restored", "kubelet-dies")
    rollout = site.through(site.confirmed())
    assert (rollout.state, outcomes(rollout)) == (
        "stopped",
        {"good": "changed", "worse": "failed", "zero": ""},
    )
    assert (site.text("worse"), site.text("zero")) == (TEXT, TEXT)
    assert rollout.nodes.get(name="worse").cause["code"] == "kubelet-dies"
    check(site, most=1)
    site.appliers.nodes["worse"].fails = None
    control.retry(rollout, "worse", ADA, timezone.now())
    site.through(rollout)
    assert (rollout.state, set(outcomes(rollout).values())) == ("done", {"changed"})
    check(site, most=1)


@pytest.mark.django_db
def test_every_rule_that_is_left_out_is_named_before_anything_is_done(
    plane: ControlPlane, settings: Settings
) -> None:
    site = Site(plane, settings, ["lone"])
    rollout = site.planned()
    for rule in rights.rules("rollouts"):
        connect(site.cluster, rights.kubeconfig(plane, "rollouts", without=rule))
        left_out = {_written(right) for right in rule.rights}
        hands = reach.opened(site.cluster)
        until(
            lambda hands=hands, left_out=left_out: (
                {str(each) for each in hands.missing(rights.NAMESPACE)} == left_out
            ),  # type: ignore[misc]
            f"an end of {left_out}",
        )
        with pytest.raises(RolloutError, match=r"^missing-right") as refusal:
            control.confirm(rollout, rollout.plan_hash, 1, ADA, timezone.now())
        assert set(refusal.value.cause.split(", ")) == left_out
    rollout.refresh_from_db()
    assert rollout.state == "planned"
    assert site.marked() == []


def _written(right: rights.Right) -> str:
    there = f" in {rights.NAMESPACE}" if right.resource == "jobs" else ""
    return f"{right}{there}"
