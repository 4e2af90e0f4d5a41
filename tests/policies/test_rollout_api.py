"""Rollouts by REST: planned by operators, confirmed by administrators who name what they have seen, every node and act to be read."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring.models import Cluster
from numacore.diagnosis import Reason
from policies import tasks
from policies.models import Act, Rollout
from policies.plan import LeftOut, Options, Window
from policies.services.policy import Target
from policies.services.rollout import control
from policies.services.rollout.error import RolloutError
from tests.policies import rollouts
from tests.policies.rollouts import Outcome, State
from tests.policies.test_policy import save

LIST = "/api/v1/clusters/west/rollouts/"


@pytest.fixture(autouse=True)
def switched_on(settings: Settings) -> None:
    settings.NUMAWEB_ROLLOUTS = True


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was put into the queue."""
    made: list[str] = []
    monkeypatch.setattr(tasks, "offer_plan", lambda number: made.append(f"plan {number}"))
    monkeypatch.setattr(tasks, "offer_rollout", lambda number: made.append(f"rollout {number}"))
    return made


def send(client: Client, address: str, body: Any = None, **headers: str) -> Any:
    return client.post(address, data=json.dumps(body or {}), content_type="application/json", headers=headers)


def address(of: Rollout, way: str = "") -> str:
    return f"{LIST}{of.pk}/{way}"


def steered(monkeypatch: pytest.MonkeyPatch, way: str) -> list[tuple[Any, ...]]:
    """The calls of a step of `control`, without who and when."""
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(control, way, lambda rollout, *rest: made.append((rollout.pk, *rest[:-2])))
    return made


def test_a_plan_is_asked_for_and_made_in_the_background(
    as_operator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, offered: list[str]
) -> None:
    policy, asked = save(west, Target("cluster")), []

    def create(cluster: Cluster, of: Any, options: Options, who: Any, _now: Any) -> Rollout:
        asked.append((of, options, who.name))
        return rollouts.rollout(cluster, State.PLANNING, policy=of)

    monkeypatch.setattr(control, "create", create)
    window = {"start": "22:00", "end": "02:00", "days": ["sat"]}
    answer = send(as_operator, LIST, {"policy": policy.pk, "options": {"batch": "10%", "window": window}})
    assert answer.status_code == 201, answer.content
    made = Rollout.objects.get()
    assert answer["Location"] == address(made)
    assert (answer.json()["state"], answer.json()["plan_hash"]) == ("planning", None)
    wanted = Options(batch="10%", window=Window(start="22:00", end="02:00", days=("sat",)))
    assert asked == [(policy, wanted, "otto")]
    assert offered == [f"plan {made.pk}"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "policy"),
        ({"policy": 9999}, "policy"),
        ({"policy": "first"}, "policy"),
        ({"policy": None, "options": {"batches": "1"}}, "options"),
        ({"policy": None, "options": {"canary": "one"}}, "options"),
        ({"policy": None, "options": {"batch": "0"}}, "options.batch"),
        ({"policy": None, "option": {}}, "option"),
    ],
)
def test_what_cannot_be_is_told_at_its_field(
    as_operator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], field: str
) -> None:
    policy = save(west, Target("cluster"))

    def create(*_: object) -> Rollout:
        raise RolloutError("option", "batch", "no-amount")

    monkeypatch.setattr(control, "create", create)
    answer = send(as_operator, LIST, {**body, "policy": policy.pk} if body.get("policy", 0) is None else body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert field in answer.content.decode()
    assert not Rollout.objects.exists()


def test_a_rollout_tells_its_plan_and_how_far_it_is(as_viewer: Client, west: Cluster) -> None:
    cause = Reason("kubelet-dies", {"times": 3, "status": 255})
    made = rollouts.rollout(
        west,
        State.STOPPED,
        left_out=(LeftOut("done-0", Reason("already")),),
        cause=msgspec.to_builtins(cause),
    )
    rollouts.settle(made, "node-0", Outcome.CHANGED)
    rollouts.settle(made, "node-1", Outcome.FAILED, cause)
    found = as_viewer.get(address(made)).json()
    assert (found["state"], found["nodes"], found["waiting"], found["at_work"]) == ("stopped", 4, 2, 0)
    assert (found["outcomes"]["changed"], found["outcomes"]["failed"]) == (1, 1)
    assert [(each["number"], each["bad"]) for each in found["batches"]] == [(0, 0), (1, 1), (2, 0), (3, 0)]
    assert found["cause"]["code"] == "kubelet-dies"
    assert "ended 3 times" in found["cause"]["text"]
    assert [(each["node"], each["why"]["code"]) for each in found["left_out"]] == [("done-0", "already")]
    assert found["plan_hash"] == made.plan_hash
    assert found["options"]["canary"] == 1


def test_the_list_is_filtered_by_state(as_viewer: Client, west: Cluster) -> None:
    rollouts.rollout(west, State.DONE)
    waits = rollouts.rollout(west, State.PLANNED)
    found = as_viewer.get(LIST, {"state": "planned"}).json()["results"]
    assert [each["id"] for each in found] == [waits.pk]
    assert [each["state"] for each in as_viewer.get(LIST).json()["results"]] == ["planned", "done"]
    assert as_viewer.get(LIST, {"state": "asleep"}).status_code == 400


def test_nodes_come_with_what_is_planned_and_what_came_of_them(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, State.STOPPED)
    node = rollouts.settle(made, "node-1", Outcome.LOST, Reason("no-dbus"))
    node.answer = {"words": "dbus is away"}
    node.save()
    found = as_viewer.get(address(made, "nodes/")).json()["results"]
    assert [each["name"] for each in found] == ["node-0", "node-1", "node-2", "node-3"]
    assert found[0]["intended"] == {"topologyManagerPolicy": "single-numa-node"}
    assert found[0]["present"] == {"topologyManagerPolicy": None}
    assert (found[0]["outcome"], found[0]["cause"], found[0]["words"]) == (None, None, None)
    assert (found[1]["outcome"], found[1]["cause"]["code"], found[1]["words"]) == (
        "lost",
        "no-dbus",
        "dbus is away",
    )
    (bad,) = as_viewer.get(address(made, "nodes/"), {"outcome": "lost"}).json()["results"]
    assert bad["name"] == "node-1"
    narrow = as_viewer.get(address(made, "nodes/"), {"fields": "name,moved"}).json()["results"]
    assert narrow[0] == {"name": "node-0", "moved": 3}


def test_nodes_come_a_page_at_a_time(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, nodes=7)
    names: list[str] = []
    where: str | None = address(made, "nodes/?page_size=3")
    while where:
        page = as_viewer.get(where).json()
        names += [each["name"] for each in page["results"]]
        where = page["next"]
    assert names == [f"node-{number}" for number in range(7)]


def test_every_act_on_a_node_is_there(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, State.RUNNING)
    node = made.nodes.get(name="node-0")
    Act.objects.create(node=node, kind="cordon", state="done", at=timezone.now(), epoch=7)
    Act.objects.create(
        node=node, kind="note", at=timezone.now(), said={"code": "kubelet-silent", "values": {"seconds": 61}}
    )
    found = as_viewer.get(address(made, "nodes/node-0/acts/")).json()["results"]
    assert [(each["kind"], each["state"], each["epoch"]) for each in found] == [
        ("cordon", "done", 7),
        ("note", "begun", 0),
    ]
    assert "61 s" in found[1]["said"]["text"]
    assert as_viewer.get(address(made, "nodes/nobody/acts/")).status_code == 404


def test_a_plan_is_confirmed_by_its_hash_and_number(
    as_administrator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, offered: list[str]
) -> None:
    made, asked = rollouts.rollout(west), steered(monkeypatch, "confirm")
    body = {"plan_hash": made.plan_hash, "nodes": 4}
    tag = as_administrator.get(address(made))["ETag"]
    answer = send(as_administrator, address(made, "confirm/"), body, **{"If-Match": tag})
    assert answer.status_code == 200, answer.content
    assert asked == [(made.pk, made.plan_hash, 4)]
    assert offered == [f"rollout {made.pk}"]


@pytest.mark.parametrize("way", ["pause", "resume", "stop", "discard", "roll-back"])
def test_it_is_steered_by_who_has_seen_its_state(
    as_administrator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, offered: list[str], way: str
) -> None:
    made, asked = rollouts.rollout(west, State.RUNNING), steered(monkeypatch, way.replace("-", "_"))
    assert send(as_administrator, address(made, f"{way}/")).status_code == 428
    tag = as_administrator.get(address(made))["ETag"]
    rollouts.settle(made, "node-0", Outcome.CHANGED)
    assert as_administrator.get(address(made))["ETag"] != tag
    going = send(as_administrator, address(made, f"{way}/"), **{"If-Match": tag})
    assert going.status_code == 200, "progress alone is in nobody's way"
    Rollout.objects.filter(pk=made.pk).update(
        state=State.PAUSED, changed=timezone.now() + timedelta(seconds=1)
    )
    late = send(as_administrator, address(made, f"{way}/"), **{"If-Match": tag})
    assert late.status_code == 412
    assert send(as_administrator, address(made, f"{way}/"), **{"If-Match": "*"}).status_code == 200
    assert asked == [(made.pk,)] * 2
    assert len(offered) == (0 if way in ("pause", "discard") else 2)


def test_a_node_is_tried_once_more(
    as_administrator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, asked = rollouts.rollout(west, State.STOPPED), steered(monkeypatch, "retry")
    answer = send(as_administrator, address(made, "retry/"), {"node": "node-1"}, **{"If-Match": "*"})
    assert answer.status_code == 200
    assert asked == [(made.pk, "node-1")]
    assert send(as_administrator, address(made, "retry/"), {}, **{"If-Match": "*"}).status_code == 400


@pytest.mark.parametrize(
    ("code", "status"),
    [("busy", 409), ("old", 409), ("stale", 409), ("not-planned", 409), ("count", 400), ("hash", 400)],
)
def test_why_it_is_not_done_is_said(
    as_administrator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, code: Any, status: int
) -> None:
    def confirm(*_: object) -> None:
        raise RolloutError(code, cause="node-1")

    monkeypatch.setattr(control, "confirm", confirm)
    made = rollouts.rollout(west)
    body = {"plan_hash": made.plan_hash, "nodes": 4}
    answer = send(as_administrator, address(made, "confirm/"), body, **{"If-Match": "*"})
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    assert "node-1" in answer.content.decode()


def test_each_role_may_what_is_its(
    as_viewer: Client,
    as_operator: Client,
    as_stranger: Client,
    west: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = rollouts.rollout(west, State.RUNNING)
    asked = [steered(monkeypatch, way) for way in ("pause", "confirm", "roll_back", "retry")]
    star = {"If-Match": "*"}
    assert as_viewer.get(address(made)).status_code == 200
    assert as_stranger.get(address(made)).status_code == 403
    assert send(as_viewer, LIST, {"policy": 1}).status_code == 403
    assert send(as_viewer, address(made, "pause/"), **star).status_code == 403
    assert send(as_operator, address(made, "pause/"), **star).status_code == 200
    body = {"plan_hash": made.plan_hash, "nodes": 4}
    assert send(as_operator, address(made, "confirm/"), body, **star).status_code == 403
    assert send(as_operator, address(made, "roll-back/"), **star).status_code == 403
    assert send(as_operator, address(made, "retry/"), {"node": "node-1"}, **star).status_code == 403
    assert [len(each) for each in asked] == [1, 0, 0, 0]


def test_who_has_it_gets_it_once(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, State.RUNNING)
    tag = as_viewer.get(address(made))["ETag"]
    assert as_viewer.get(address(made), headers={"If-None-Match": tag}).status_code == 304
    rollouts.settle(made, "node-0", Outcome.CHANGED)
    assert as_viewer.get(address(made), headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    "where", [f"{LIST}99999/", f"{LIST}99999/nodes/", "/api/v1/clusters/nowhere/rollouts/"]
)
def test_what_is_not_there_is_said(as_viewer: Client, west: Cluster, where: str) -> None:
    assert as_viewer.get(where).status_code == 404
