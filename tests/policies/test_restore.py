"""The way back of everything, before the product is removed: by whom it is planned, what it takes along, what it says stays behind."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from policies import selectors, tasks
from policies.models import Original, Policy, Pool, Rollout
from policies.plan import Options
from policies.services.rollout import control, planning
from policies.services.rollout.error import RolloutError
from tests.policies import driving
from tests.policies.driving import ADA, OTTO
from tests.policies.playedcluster import PATH, TEXT, PlayedCluster
from tests.policies.test_rollout_pages import text

PAGE, LIST = "/c/west/policies/restore/", "/api/v1/clusters/west/rollouts/"


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was put into the queue."""
    made: list[str] = []
    monkeypatch.setattr(tasks, "offer_plan", lambda number: made.append(f"plan {number}"))
    monkeypatch.setattr(tasks, "offer_rollout", lambda number: made.append(f"rollout {number}"))
    return made


@pytest.fixture
def changed(played: PlayedCluster) -> PlayedCluster:
    """A policy went through all three nodes and is still on."""
    driving.through(played, driving.confirmed(played, batch="3", max_unavailable="3"))
    assert Original.objects.filter(restored=None).count() == 3
    played.peak = 0
    return played


def planned(played: PlayedCluster, **options: Any) -> Rollout:
    made = control.restore_all(played.cluster, Options(**options), OTTO, timezone.now())
    planning.plan_work(made.pk)
    made.refresh_from_db()
    return made


def left_out(rollout: Rollout) -> dict[str, str]:
    return {each.name: each.reason.code for each in control.plan_of(rollout).left_out}


def warned(rollout: Rollout) -> dict[str, dict[str, Any]]:
    return {each.code: dict(each.values) for each in control.plan_of(rollout).warnings}


def command(*arguments: str) -> tuple[int, str]:
    """How `manage.py restore` ends, and what it says."""
    out = StringIO()
    try:
        call_command("restore", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_every_changed_node_goes_back_byte_by_byte_whatever_counts_for_it(changed: PlayedCluster) -> None:
    changed.machines["n0"].control_plane = True
    for name in ("gold", "old"):
        Pool.objects.create(cluster=changed.cluster, name=name, selector="!none", changed=timezone.now())
    assert selectors.frozen_pools(changed.cluster)
    rollout = planned(changed)
    assert (rollout.state, rollout.level, rollout.policy) == ("planned", "changed", None)
    assert [(each.name, each.act) for each in control.plan_of(rollout).nodes] == [
        (name, "restore") for name in ("n0", "n1", "n2")
    ]
    assert warned(rollout)["policies-on"] == {"number": 1}
    control.confirm(rollout, rollout.plan_hash, 3, ADA, timezone.now())
    driving.through(changed, rollout)
    assert rollout.state == "done", driving.stands(rollout)
    assert [each.applier.text for each in changed.machines.values()] == [TEXT] * 3
    assert not selectors.changed(changed.cluster).exists()
    assert changed.peak == 1, changed.events
    assert (changed.ours(), changed.made) == ([], {})
    with pytest.raises(RolloutError, match="nothing-changed"):
        control.restore_all(changed.cluster, Options(), OTTO, timezone.now())
    # The policy is still on: that is drift, and nothing more.
    Pool.objects.all().delete()
    assert selectors.counts(selectors.standing(changed.cluster))["differs"] == 3
    assert Policy.objects.get().on


def test_it_can_be_taken_back_itself(changed: PlayedCluster) -> None:
    first = [each.applier.text for each in changed.machines.values()]
    rollout = planned(changed, batch="3", max_unavailable="3")
    control.confirm(rollout, rollout.plan_hash, 3, ADA, timezone.now())
    driving.through(changed, rollout)
    control.roll_back(rollout, ADA, timezone.now())
    driving.through(changed, rollout)
    assert rollout.state == "returned", (driving.stands(rollout), rollout.cause)
    assert [each.applier.text for each in changed.machines.values()] == first
    assert selectors.changed_nodes(changed.cluster)[0] == 3


def test_what_cannot_go_back_is_named_and_what_somebody_brought_back_is_noted(changed: PlayedCluster) -> None:
    gone, other, back = (changed.machines[name] for name in ("n0", "n1", "n2"))
    assert gone.row is not None
    assert other.row is not None
    gone.row.gone_at = timezone.now()
    gone.row.save()
    other.row.uid = "another-machine"
    other.row.save()
    back.applier.text = TEXT
    changed.pass_time()
    rollout = planned(changed)
    assert left_out(rollout) == {"n0": "gone", "n1": "replaced", "n2": "file-alone"}
    assert (rollout.state, rollout.cause) == ("discarded", {"code": "nothing-back"})
    where = {each.node_name: each.__dict__["where"] for each in selectors.changed(changed.cluster)}
    assert where == {"n0": "gone", "n1": "replaced", "n2": "there"}


def test_a_second_changed_file_of_a_node_is_left_for_a_second_plan(changed: PlayedCluster) -> None:
    Original.objects.create(
        cluster=changed.cluster, node_name="n1", uid="uid-n1", path="/etc/kubernetes/kubelet.conf.d/90-numa.conf",
        drop_in=True, fields={"topologyManagerPolicy": None}, taken=timezone.now(),
    )  # fmt: skip
    assert warned(planned(changed))["second-file"] == {"nodes": "n1"}


def test_policies_that_are_off_are_no_contradiction(changed: PlayedCluster) -> None:
    Policy.objects.update(on=False)
    assert "policies-on" not in warned(planned(changed))


# ---------------------------------------------------------------- pages


def test_the_page_of_policies_says_what_has_to_go_back_before_removal(
    as_viewer: Client, changed: PlayedCluster
) -> None:
    found = text(as_viewer.get("/c/west/policies/"))
    assert "3 nodes stand as numaweb changed them, the first since" in found
    Original.objects.update(restored=timezone.now())
    found = text(as_viewer.get("/c/west/policies/"))
    assert "No node of this cluster stands as numaweb changed it." in found
    assert "No node of this cluster stands as numaweb changed it." in text(as_viewer.get(PAGE))


def test_what_stands_changed_is_listed_with_where_it_goes_back_to(
    as_viewer: Client, changed: PlayedCluster
) -> None:
    found = text(as_viewer.get(PAGE))
    assert "3 files stand as numaweb changed them." in found
    assert PATH in found
    assert "topologyManagerPolicy single-numa-node → default" in found
    assert "1 policy is switched on." in found
    assert "needs the role operator" in found
    assert as_viewer.post(PAGE, {"canary": "1"}).status_code == 403


def test_an_operator_has_it_planned_and_the_plan_says_what_it_is(
    as_operator: Client, changed: PlayedCluster, offered: list[str]
) -> None:
    form = {"canary": "1", "batch": "1", "max_unavailable": "1", "pause_minutes": "0", "drain_minutes": "15"}
    answer = as_operator.post(PAGE, form)
    made = Rollout.objects.get(level="changed")
    assert (answer.status_code, answer["Location"]) == (302, f"/c/west/rollouts/{made.pk}/")
    assert offered[-1] == f"plan {made.pk}"
    planning.plan_work(made.pk)
    found = text(as_operator.get(answer["Location"]))
    assert "all nodes that numaweb changed" in found
    assert "Version of the policy" not in found
    assert "back to the original file" in found
    assert "needs the role administrator" in found
    wrong = text(as_operator.post(PAGE, {**form, "batch": "none"}))
    assert "This is a number of nodes, or a share such as 10%." in wrong


# ---------------------------------------------------------------- REST


def send(client: Client, body: Any) -> Any:
    return client.post(LIST, data=json.dumps(body), content_type="application/json")


def test_it_is_planned_by_rest(as_operator: Client, changed: PlayedCluster) -> None:
    answer = send(as_operator, {"restore": True, "options": {"batch": "2"}})
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert (told["level"], told["target"], told["version"]) == ("changed", None, 0)
    assert told["options"]["control_plane"] is True
    both = send(as_operator, {"restore": True, "policy": Policy.objects.get().pk})
    assert (both.status_code, list(both.json()["errors"])) == (400, ["restore"])
    Original.objects.update(restored=timezone.now())
    none = send(as_operator, {"restore": True})
    assert none.status_code == 409
    assert "No node of this cluster stands as numaweb changed it." in none.json()["detail"]


def test_what_stands_changed_by_rest(as_viewer: Client, changed: PlayedCluster) -> None:
    Original.objects.filter(node_name="n2").update(restored=timezone.now())
    changed.cluster.nodes.filter(name="n1").update(gone_at=timezone.now())
    address = "/api/v1/clusters/west/changed-nodes/"
    rows = as_viewer.get(address).json()["results"]
    assert [(each["node"], each["where"], each["path"]) for each in rows] == [
        ("n0", "there", PATH),
        ("n1", "gone", PATH),
    ]
    assert rows[0]["present_before"] == {"cpuManagerPolicy": "none", "topologyManagerPolicy": None}
    assert [each["node"] for each in as_viewer.get(f"{address}?where=gone").json()["results"]] == ["n1"]


# ---------------------------------------------------------------- from a terminal


def test_the_command_says_node_by_node_what_stands_changed(changed: PlayedCluster) -> None:
    ended, said = command()
    assert ended == 3
    for name in ("n0", "n1", "n2"):
        assert f"west {name} {PATH} since " in said
    assert "cpuManagerPolicy was none, topologyManagerPolicy was the default" in said
    assert "/var/lib/numaweb stays" in said
    Original.objects.update(restored=timezone.now())
    assert command() == (0, "No node stands as numaweb changed it.\n")
    assert command("--plan") == (0, "No node stands as numaweb changed it.\n")


def test_from_a_terminal_it_takes_the_number_of_nodes_and_the_hash_too(
    changed: PlayedCluster, offered: list[str]
) -> None:
    ended, said = command("--plan", "--batch", "3", "--max-unavailable", "3")
    rollout = Rollout.objects.get(level="changed")
    assert (ended, rollout.state) == (0, "planned")
    assert "topologyManagerPolicy: single-numa-node -> default" in said
    assert "Policies that are switched on: 1." in said
    assert said.splitlines()[-1] == f"manage.py restore --cluster west --confirm 3 --hash {rollout.plan_hash}"
    with pytest.raises(CommandError, match="not that of the nodes"):
        command("--confirm", "2", "--hash", rollout.plan_hash)
    with pytest.raises(CommandError, match="no plan waits that has this hash"):
        command("--confirm", "3")
    ended, said = command("--confirm", "3", "--hash", rollout.plan_hash)
    assert (ended, offered[-1]) == (0, f"rollout {rollout.pk}")
    rollout.refresh_from_db()
    assert rollout.state == "running"
    assert rollout.confirmed_by.startswith("manage.py restore")
    ended, said = command()
    assert ended == 3
    driving.through(changed, rollout)
    assert command()[0] == 0


def test_an_unknown_cluster_is_named_with_those_there_are(changed: PlayedCluster) -> None:
    with pytest.raises(CommandError, match="one of west"):
        command("--plan", "--cluster", "wset")
