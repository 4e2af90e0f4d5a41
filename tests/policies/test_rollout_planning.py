"""A plan: which nodes, in which order and batches, what becomes of each, who is left out and why, what it warns of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from monitoring import hot
from monitoring.models import Cluster, KubernetesNode
from numacore.change import order as orders
from numacore.change.wish import Wish
from policies import plan as plans
from policies.gateway.drains import Budget, LivePod, _Selector
from policies.models import Original, Rollout, RolloutNode
from policies.plan import LeftOut, Options, PlannedNode
from policies.selectors.exported import exported
from policies.services import policy as policies
from policies.services.policy import Target
from policies.services.rollout import control, planning, targets
from tests.monitoring.pages import seeds
from tests.policies import driving
from tests.policies.driving import OTTO
from tests.policies.playedcluster import PATH, TEXT, PlayedCluster


def left_out(rollout: Rollout) -> dict[str, str]:
    return {each.name: each.reason.code for each in control.plan_of(rollout).left_out}


def test_it_says_what_becomes_of_each_node(played: PlayedCluster) -> None:
    rollout = driving.planned(played, batch="2", max_unavailable="50%")
    plan = control.plan_of(rollout)
    assert (rollout.state, rollout.looked_at, rollout.nodes_total) == ("planned", 3, 3)
    assert rollout.plan_hash == plans.digest(plan)
    assert [(each.name, each.batch) for each in plan.nodes] == [("n0", 0), ("n1", 1), ("n2", 1)]
    node = plan.nodes[0]
    assert (node.uid, node.machine_id, node.path) == ("uid-n0", "machine-n0", PATH)
    assert (node.before, node.drop_in, node.act) == (orders.sha256(TEXT), False, "apply")
    assert node.keys == {"cpuManagerPolicy": "static", "topologyManagerPolicy": "single-numa-node"}
    assert node.present == {"cpuManagerPolicy": "none", "topologyManagerPolicy": None}
    assert node.state_files == ("cpu_manager_state",)
    assert (node.moved, node.topology) == (1, played.machines["n0"].row.topology_id)
    assert list(rollout.nodes.values_list("position", "name", "batch", "step")) == [
        (0, "n0", 0, "waiting"),
        (1, "n1", 1, "waiting"),
        (2, "n2", 1, "waiting"),
    ]


def test_who_is_left_out_and_why(played: PlayedCluster) -> None:
    played.machines["n0"].control_plane = True
    played.add("broken", TEXT + "cpuManagerPolicy: none\n")
    seeds.unheard(played.cluster, "silent")
    old = played.add("old")
    assert old.row is not None
    seeds.live(old.row, *old.told(), (timezone.now() - timedelta(minutes=5)).timestamp())
    rollout = driving.planned(played)
    assert left_out(rollout) == {
        "n0": "control-plane",
        "broken": "edit-duplicates",
        "silent": "no-data",
        "old": "old-data",
    }
    assert [each.name for each in control.plan_of(rollout).nodes] == ["n1", "n2"]
    taken = driving.planned(played, control_plane=True)
    assert "n0" in {each.name for each in control.plan_of(taken).nodes}


def test_without_a_node_to_change_nothing_can_be_confirmed(played: PlayedCluster) -> None:
    policy = driving.policy(played, Wish(cpu_policy="none"))
    rollout = driving.planned(played, policy)
    assert (rollout.state, rollout.cause) == ("discarded", {"code": "nothing"})
    assert left_out(rollout) == {"n0": "already", "n1": "already", "n2": "already"}


def test_what_it_warns_of(played: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("n1", "n2"):
        row = played.machines.pop(name).row
        assert row is not None
        row.delete()
    played.run("db-0", "n0", labels={"app": "db"}, owner="StatefulSet", local=("emptyDir data",))
    played.run("alone", "n0", owner="")
    guard = Budget(namespace="shop", name="db", allows=0, selector=_Selector(match_labels={"app": "db"}))
    other = Budget(namespace="else", name="db", allows=0, selector=_Selector())
    monkeypatch.setattr(played, "budgets", lambda: [guard, other])
    warned = {each.code: each.values for each in control.plan_of(driving.planned(played)).warnings}
    assert warned == {
        "single-node": {},
        "blocking-budget": {"budget": "shop/db", "pods": "shop/db-0"},
        "local-data": {"pods": "shop/db-0"},
        "bare-pods": {"pods": "shop/alone"},
    }


def test_room_that_is_missing_while_a_batch_is_away(played: PlayedCluster) -> None:
    KubernetesNode.objects.update(allocatable={"cpu": "4", "memory": "8Gi"})
    for number, cpus in enumerate((3.0, 3.0, 1.0)):
        played.cluster.pods.create(
            uid=f"p{number}",
            namespace="shop",
            name=f"p{number}",
            node_name=f"n{number}",
            phase="Running",
            cpu_request=cpus,
        )
    alone = control.plan_of(driving.planned(played))
    assert "capacity" not in {each.code for each in alone.warnings}
    together = control.plan_of(driving.planned(played, canary=0, batch="2", max_unavailable="2"))
    warned = {each.code: each.values for each in together.warnings}
    assert warned["capacity"] == {"resource": "cpu", "batch": 1, "missing": 3.0}


def test_a_policy_that_was_never_rolled_out_has_nothing_to_take_back(played: PlayedCluster) -> None:
    off = driving.policy(played, on=False)
    rollout = driving.planned(played, off)
    assert (rollout.state, rollout.cause) == ("discarded", {"code": "nothing"})


def test_where_another_policy_counts_its_wish_comes_instead_of_the_original(played: PlayedCluster) -> None:
    driving.through(played, driving.confirmed(played))
    node = policies.save(
        played.cluster, Target("node", "n0"), Wish(topology_policy="restricted"), True, OTTO, timezone.now()
    )
    driving.through(played, driving.confirmed(played, node))
    off = policies.save(
        played.cluster,
        Target("node", "n0"),
        Wish(topology_policy="restricted"),
        False,
        OTTO,
        timezone.now(),
        1,
    )
    (planned,) = control.plan_of(driving.planned(played, off)).nodes
    assert (planned.act, planned.keys) == ("apply", {"topologyManagerPolicy": "single-numa-node"})


def test_the_original_of_a_drop_in_is_no_file(played: PlayedCluster) -> None:
    original = Original(
        cluster=played.cluster,
        node_name="n0",
        path="/etc/kubernetes/kubelet.d/90-numa.conf",
        drop_in=True,
        sha256="",
        fields={"topologyManagerPolicy": None, "cpuManagerPolicy": "none"},
        taken=timezone.now(),
    )
    now = exported(played.cluster, ["n0"])["n0"]
    left = targets.restored(original, now, None)
    assert isinstance(left, LeftOut)
    assert left.reason.code == "already"
    original.path, original.sha256 = PATH, "f" * 64
    found = targets.restored(original, now, None)
    assert isinstance(found, PlannedNode)
    assert (found.act, found.after, found.keys, found.removed) == ("restore", "f" * 64, original.fields, ())


def test_when_the_store_does_not_answer_the_plan_is_discarded_with_the_cause(
    played: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise hot.StoreError("connection refused")

    policy = driving.policy(played)
    made = control.create(played.cluster, policy, Options(), OTTO, timezone.now())
    monkeypatch.setattr("policies.services.rollout.planning.exported", away)
    planning.plan_work(made.pk)
    made.refresh_from_db()
    assert (made.state, made.cause) == (
        "discarded",
        {"code": "store", "values": {"words": "connection refused"}},
    )


def test_a_plan_that_nobody_makes_is_offered_again(played: PlayedCluster) -> None:
    made = control.create(played.cluster, driving.policy(played), Options(), OTTO, timezone.now())
    assert planning.unfinished() == [made.pk]
    planning.plan_work(made.pk)
    assert planning.unfinished() == []


@pytest.mark.django_db
def test_the_rows_of_a_large_plan_are_written_many_at_a_time(
    django_assert_max_num_queries: Any,
) -> None:
    cluster: Cluster = seeds.cluster("west", "West")
    nodes = [
        PlannedNode(name=f"n{i:05}", uid="", batch=0, path=PATH, before="", after="") for i in range(2000)
    ]
    rollout = Rollout.objects.create(
        cluster=cluster, version=1, made=timezone.now(), made_by="otto", changed=timezone.now()
    )
    plan = plans.Plan(
        cluster="west",
        rollout=1,
        wish=None,
        options=Options(),
        nodes=planning.in_batches(nodes, Options(batch="10%")),
    )
    with django_assert_max_num_queries(80):
        planning.write_nodes(rollout, plan)
    assert rollout.nodes.count() == 2000
    last = rollout.nodes.order_by("-position")[0]
    meant = RolloutNode(rollout=rollout, position=1999, batch=10, name="n01999", uid="")
    columns = [field.attname for field in RolloutNode._meta.concrete_fields if not field.primary_key]
    assert {name: getattr(last, name) for name in columns} == {name: getattr(meant, name) for name in columns}
    assert msgspec.convert(msgspec.to_builtins(plan), plans.Plan) == plan


def test_labels_are_compared_as_kubernetes_does() -> None:
    pod = LivePod(
        namespace="a", name="x", uid="u", node="n", phase="Running", labels={"app": "db", "tier": "gold"}
    )

    def holds(**selector: Any) -> bool:
        return msgspec.convert(selector, _Selector).holds(pod.labels)

    assert holds()
    assert holds(matchLabels={"app": "db"})
    assert not holds(matchLabels={"app": "db", "tier": "iron"})
    assert holds(matchExpressions=[{"key": "tier", "operator": "In", "values": ["gold"]}])
    assert not holds(matchExpressions=[{"key": "tier", "operator": "NotIn", "values": ["gold"]}])
    assert holds(matchExpressions=[{"key": "zone", "operator": "DoesNotExist"}])
    assert not holds(matchExpressions=[{"key": "zone", "operator": "Exists"}])
