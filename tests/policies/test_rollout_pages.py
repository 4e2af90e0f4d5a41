"""Rollouts on their pages: the plan and its confirmation, how far it is in each state, what each role may do, and what each node says."""

from __future__ import annotations

import re
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
from policies.models import Act, Policy, Rollout
from policies.plan import LeftOut, Options, Window
from policies.services.policy import Target
from policies.services.rollout import control
from policies.services.rollout.error import RolloutError
from tests.monitoring.pages import seeds
from tests.policies import rollouts
from tests.policies.rollouts import Outcome, State, Step
from tests.policies.test_policy import save
from tests.policies.test_preview import told

LIST = "/c/west/rollouts/"
STATES: list[tuple[str, str, set[str]]] = [
    (State.PLANNING, "The plan is being made.", {"discard"}),
    (State.PLANNED, "A plan waits to be confirmed", {"confirm", "discard"}),
    (State.DISCARDED, "Nothing came of this plan", set()),
    (State.RUNNING, "It goes through its nodes.", {"pause", "stop", "roll_back"}),
    (State.PAUSED, "It is paused", {"resume", "stop", "roll_back", "retry"}),
    (State.STOPPING, "It is stopping", {"roll_back"}),
    (State.STOPPED, "It was stopped.", {"roll_back", "retry"}),
    (State.RETURNING, "It is rolled back: nodes", {"pause", "stop"}),
    (State.RETURNED, "It was rolled back:", set()),
    (State.DONE, "It is through.", {"roll_back"}),
]


@pytest.fixture(autouse=True)
def switched_on(settings: Settings) -> None:
    settings.NUMAWEB_ROLLOUTS = True


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was put into the queue."""
    made: list[str] = []
    monkeypatch.setattr(tasks, "offer_plan", lambda number: made.append(f"plan {number}"))
    monkeypatch.setattr(tasks, "offer_rollout", lambda number: made.append(f"rollout {number}"))
    return made


@pytest.fixture
def policy(west: Cluster) -> Policy:
    return save(west, Target("cluster"))


def address(of: Rollout) -> str:
    return f"{LIST}{of.pk}/"


def text(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.content.decode()))


def test_a_list_without_rollouts_says_where_they_come_from(as_viewer: Client, west: Cluster) -> None:
    found = text(as_viewer.get(LIST))
    assert "Nobody has planned a rollout here yet." in found
    assert "Write a policy, look at its preview, and plan from there." in found


def test_a_switch_that_is_off_is_said_with_its_setting(
    as_viewer: Client, west: Cluster, settings: Settings
) -> None:
    settings.NUMAWEB_ROLLOUTS = False
    assert "Set NUMAWEB_ROLLOUTS=1" in text(as_viewer.get(LIST))


def test_the_list_has_each_with_how_far_it_is(as_viewer: Client, west: Cluster, policy: Policy) -> None:
    one = rollouts.rollout(
        west,
        State.STOPPED,
        policy=policy,
        cause={"code": "kubelet-dies", "values": {"times": 3, "status": 1}},
    )
    rollouts.settle(one, "node-0", Outcome.CHANGED)
    rollouts.rollout(west, State.PLANNED, policy=policy)
    found = text(as_viewer.get(LIST))
    assert "1 of 4" in found
    assert "The kubelet ended 3 times after its start" in found
    assert found.index("waits for confirmation") < found.index("stopped"), "the newest first"


def test_the_list_asks_as_much_for_many_as_for_one(
    as_viewer: Client, west: Cluster, django_assert_max_num_queries: Any
) -> None:
    rollouts.rollout(west, State.PLANNED)
    as_viewer.get(LIST)
    for _ in range(15):
        rollouts.rollout(west, State.DISCARDED, nodes=2)
    with django_assert_max_num_queries(14):
        as_viewer.get(LIST)


def test_a_plan_shows_what_it_would_touch_and_what_that_means(
    as_administrator: Client, west: Cluster
) -> None:
    made = rollouts.rollout(
        west,
        left_out=(
            LeftOut("done-0", Reason("already")),
            LeftOut("other-0", Reason("managed-openshift", {"by": "label"})),
        ),
        options=Options(
            window=Window(start="22:00", end="02:00", zone="Asia/Shanghai", days=("sat", "sun")), batch="50%"
        ),
    )
    found = text(as_administrator.get(address(made)))
    assert "A plan waits to be confirmed; no node has changed." in found
    assert "the kubelet is stopped and started with other settings" in found
    assert "Pods may be moved to other nodes" in found
    assert "Choose a time with little traffic" in found
    assert "To change 4 nodes, type this number:" in found
    assert "topologyManagerPolicy default → single-numa-node" in found
    assert "removed: cpu_manager_state" in found
    assert "3 pods move away" in found
    assert "2 nodes are left out" in found
    assert "Its file already says what is wanted." in found
    assert "Use a KubeletConfig or a PerformanceProfile" in found
    assert "22:00–02:00 Asia/Shanghai, Saturday, Sunday" in found


def test_a_plan_is_confirmed_with_its_hash_and_the_number_of_its_nodes(
    as_administrator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, offered: list[str]
) -> None:
    made, asked = rollouts.rollout(west), []
    monkeypatch.setattr(control, "confirm", lambda *given: asked.append(given))
    as_administrator.post(address(made), {"do": "confirm", "plan": made.plan_hash, "nodes": " 4 "})
    ((rollout, plan_hash, number, who, _now),) = asked
    assert (rollout, plan_hash, number, who.name) == (made, made.plan_hash, 4, "ada")
    assert offered == [f"rollout {made.pk}"]


@pytest.mark.parametrize("typed", ["", "four", "4.0", "-4", "四", "9" * 30])
def test_a_wrong_number_confirms_nothing(
    as_administrator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, offered: list[str], typed: str
) -> None:
    def confirm(_rollout: Rollout, _hash: str, number: int, *_: object) -> None:
        assert number != 4
        raise RolloutError("count", "number")

    monkeypatch.setattr(control, "confirm", confirm)
    made = rollouts.rollout(west)
    answer = as_administrator.post(
        address(made), {"do": "confirm", "plan": made.plan_hash, "nodes": typed}, follow=True
    )
    assert "Type the number of nodes that the plan shows." in text(answer)
    assert offered == []


def test_an_old_plan_cannot_be_confirmed_and_leads_to_a_new_one(
    as_administrator: Client, west: Cluster, policy: Policy
) -> None:
    made = rollouts.rollout(west, policy=policy)
    Rollout.objects.filter(pk=made.pk).update(planned=timezone.now() - timedelta(hours=1))
    answer = as_administrator.get(address(made))
    assert "This plan is too old to be confirmed." in text(answer)
    assert 'href="/c/west/policies/cluster/preview/"' in answer.content.decode()
    assert 'value="confirm"' not in answer.content.decode()


def test_another_one_at_work_stands_in_the_way_and_is_named(as_administrator: Client, west: Cluster) -> None:
    busy = rollouts.rollout(west, State.RUNNING)
    made = rollouts.rollout(west)
    answer = as_administrator.get(address(made))
    assert "Another rollout of this cluster is not finished:" in text(answer)
    assert f'href="{address(busy)}"' in answer.content.decode()


@pytest.mark.parametrize(("state", "headline", "ways"), STATES)
def test_each_state_says_what_it_is_and_offers_what_can_be_done(
    as_administrator: Client, as_viewer: Client, west: Cluster, state: str, headline: str, ways: set[str]
) -> None:
    made = rollouts.rollout(west, state)
    if state != State.PLANNING:
        rollouts.settle(made, "node-1", Outcome.FAILED)
    answer = as_administrator.get(address(made)).content.decode()
    assert headline in answer
    assert set(re.findall(r'name="do" value="(\w+)"', answer)) == ways
    locked = as_viewer.get(address(made)).content.decode()
    assert headline in locked
    buttons = re.findall(r"<button[^>]*name=\"do\"[^>]*>", locked)
    assert all("disabled" in each for each in buttons)
    assert bool(buttons) == ("needs the role" in locked.split("<main", 1)[1])
    assert ("data-refresh" in answer) == (state == State.PLANNING or state in Rollout.ACTIVE)


def test_every_state_is_tried_above() -> None:
    assert {state for state, _headline, _ways in STATES} == set(State)


@pytest.mark.parametrize("way", ["pause", "resume", "stop", "discard"])
def test_operators_steer_and_viewers_do_not(
    as_operator: Client,
    as_viewer: Client,
    west: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    offered: list[str],
    way: str,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(control, way, lambda _rollout, who, _now: asked.append(who.name))
    made = rollouts.rollout(west, State.RUNNING)
    assert as_viewer.post(address(made), {"do": way}).status_code == 403
    assert as_operator.post(address(made), {"do": way}).status_code == 302
    assert asked == ["otto"]


@pytest.mark.parametrize("way", ["confirm", "roll_back", "retry"])
def test_what_changes_nodes_needs_an_administrator(
    as_operator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(control, way, lambda *_: pytest.fail("an operator did it"))
    made = rollouts.rollout(west, State.STOPPED)
    assert as_operator.post(address(made), {"do": way, "number": str(made.pk)}).status_code == 403


def test_it_is_rolled_back_when_its_own_number_is_typed(
    as_administrator: Client, west: Cluster, monkeypatch: pytest.MonkeyPatch, offered: list[str]
) -> None:
    asked: list[Rollout] = []
    monkeypatch.setattr(control, "roll_back", lambda rollout, _who, _now: asked.append(rollout))
    made = rollouts.rollout(west, State.STOPPED)
    answer = as_administrator.post(address(made), {"do": "roll_back", "number": "0"}, follow=True)
    assert "This is not the number of this rollout." in text(answer)
    assert asked == []
    as_administrator.post(address(made), {"do": "roll_back", "number": str(made.pk)})
    assert asked == [made]


def test_a_node_says_what_came_of_it_and_its_log_what_was_done(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, State.STOPPED)
    cause = Reason("kubelet-silent", {"seconds": 61})
    node = rollouts.settle(made, "node-1", Outcome.LOST, cause)
    node.answer = {"words": "<b>no answer</b> of healthz"}
    node.save()
    now = timezone.now()
    Act.objects.create(node=node, kind="cordon", state="done", at=now, ended=now)
    Act.objects.create(
        node=node, kind="evict", subject="shop/db-0", tries=3, at=now, said=msgspec.to_builtins(cause)
    )
    answer = as_viewer.get(address(made), {"node": "node-1"})
    found = text(answer)
    assert "The kubelet ran and was not well after 61 s." in found
    assert "Look at this node by hand: it may be without a kubelet." in found
    assert "What was done on node-1" in found
    assert "evict shop/db-0 attempt 3" in found
    assert "&lt;b&gt;no answer&lt;/b&gt;" in answer.content.decode()
    assert "What was done on" not in text(as_viewer.get(address(made), {"node": "nobody"}))


def test_nodes_are_shown_by_state_and_a_page_at_a_time(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, State.RUNNING, nodes=120, options=Options(batch="10"))
    rollouts.settle(made, "node-7", Outcome.FAILED)
    made.nodes.filter(name="node-8").update(step=Step.DRAIN)
    assert text(as_viewer.get(address(made))).count("Log") == 50
    assert "node-119" in text(as_viewer.get(address(made), {"page": "3"}))
    failed = text(as_viewer.get(address(made), {"show": "failed"}))
    assert "node-7" in failed
    assert "node-8" not in failed
    assert "is drained" in text(as_viewer.get(address(made), {"show": "working"}))
    assert text(as_viewer.get(address(made), {"show": "no-such-state"})).count("Log") == 50
    assert "No node is in this state." in text(as_viewer.get(address(made), {"show": "lost"}))


def test_batches_stand_in_a_row_with_how_they_are(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, State.RUNNING, nodes=7, options=Options(batch="2"))
    rollouts.settle(made, "node-0", Outcome.CHANGED)
    rollouts.settle(made, "node-1", Outcome.FAILED)
    made.nodes.filter(name="node-3").update(step=Step.APPLY)
    tiles = re.findall(r'<li class="nw-batch nw-batch-(\w+)">', as_viewer.get(address(made)).content.decode())
    assert tiles == ["through", "failed", "working", "waiting"]


def test_only_the_part_comes_when_a_script_asks_for_it(as_viewer: Client, west: Cluster) -> None:
    made = rollouts.rollout(west, State.RUNNING)
    part = as_viewer.get(address(made), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "It goes through its nodes." in part


@pytest.mark.parametrize("where", ["/c/west/rollouts/99999/", "/c/nowhere/rollouts/"])
def test_what_is_not_there_is_said(as_viewer: Client, west: Cluster, where: str) -> None:
    assert as_viewer.get(where).status_code == 404


def test_a_rollout_of_another_cluster_is_not_shown_here(as_viewer: Client, west: Cluster) -> None:
    east = seeds.cluster("east", "East")
    made = rollouts.rollout(east)
    assert as_viewer.get(address(made)).status_code == 404


def test_strangers_see_nothing(client: Client, as_stranger: Client, west: Cluster) -> None:
    made = rollouts.rollout(west)
    assert client.get(address(made)).status_code == 302
    assert as_stranger.get(address(made)).status_code == 403


def test_the_overview_shows_the_one_at_work_and_a_nodes_page_what_was_done(
    as_viewer: Client, west: Cluster
) -> None:
    assert "nw-progress" not in as_viewer.get("/c/west/").content.decode()
    made = rollouts.rollout(west, State.RUNNING)
    rollouts.settle(made, "node-0", Outcome.CHANGED)
    card = text(as_viewer.get("/c/west/"))
    assert "It goes through its nodes." in card
    assert "1 of 4 nodes have ended." in card
    made.nodes.filter(name="node-0").update(name="server-0")
    seeds.node(west, "server-0", told())
    page = as_viewer.get("/c/west/nodes/server-0/").content.decode()
    assert f'href="{address(made)}?node=server-0#log"' in page


# ---------------------------------------------------------------- planning one


PREVIEW = "/c/west/policies/cluster/preview/"
GIVEN = {
    "canary": "1",
    "batch": "10%",
    "max_unavailable": "2",
    "pause_minutes": "5",
    "drain": "on",
    "drain_minutes": "15",
}


def test_a_rollout_is_planned_from_a_preview(
    as_operator: Client, west: Cluster, policy: Policy, monkeypatch: pytest.MonkeyPatch, offered: list[str]
) -> None:
    asked: list[Any] = []

    def create(cluster: Cluster, of: Policy, options: Options, *_: object) -> Rollout:
        asked.append((cluster, of, options))
        return rollouts.rollout(cluster, State.PLANNING, policy=of)

    monkeypatch.setattr(control, "create", create)
    answer = as_operator.post(
        PREVIEW,
        {**GIVEN, "window": "on", "start": "22:00", "end": "02:00", "zone": "Asia/Shanghai", "days": ["sat"]},
    )
    made = Rollout.objects.get()
    assert answer["Location"] == address(made)
    assert offered == [f"plan {made.pk}"]
    window = Window(start="22:00", end="02:00", zone="Asia/Shanghai", days=("sat",))
    wanted = Options(
        canary=1,
        batch="10%",
        max_unavailable="2",
        pause_between=300,
        drain=True,
        drain_within=900,
        window=window,
    )
    assert asked == [(west, policy, wanted)]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("batch", "0", "This is a number of nodes, or a share such as 10%."),
        ("max_unavailable", "101%", "This is a number of nodes, or a share such as 10%."),
        ("canary", "-1", "Ensure this value is greater than or equal to 0."),
        ("start", "25:00", "This is a time such as 22:30."),
        ("end", "22:00", "The window ends when it starts."),
        ("zone", "Nowhere/Land", "There is no such time zone"),
        ("days", [], "Choose at least one day."),
    ],
)
def test_options_that_cannot_be_are_told_at_their_field(
    as_operator: Client,
    west: Cluster,
    policy: Policy,
    monkeypatch: pytest.MonkeyPatch,
    field: str,
    value: Any,
    said: str,
) -> None:
    monkeypatch.setattr(control, "create", lambda *_: pytest.fail("it was made"))
    window = {"window": "on", "start": "22:00", "end": "02:00", "zone": "UTC", "days": ["mon"]}
    answer = as_operator.post(PREVIEW, {**GIVEN, **window, field: value})
    assert said in text(answer)
    assert "<details open>" in answer.content.decode()


def test_why_none_can_be_planned_is_said(
    as_operator: Client, west: Cluster, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(*_: object) -> Rollout:
        raise RolloutError("missing-right", cause="patch nodes")

    monkeypatch.setattr(control, "create", create)
    found = text(as_operator.post(PREVIEW, GIVEN))
    assert "numaweb has not all rights that a rollout needs. patch nodes" in found


def test_a_policy_that_is_off_says_that_its_nodes_go_back(as_operator: Client, west: Cluster) -> None:
    save(west, Target("cluster"), on=False)
    assert "a rollout takes its nodes back to what they were" in text(as_operator.get(PREVIEW))


def test_the_preview_of_one_node_alone(as_operator: Client, west: Cluster, policy: Policy) -> None:
    found = as_operator.get(PREVIEW, {"node": "fast-1"}).content.decode()
    assert found.count("<section") == 1
    assert 'aria-label="fast-1"' in found
    assert as_operator.get(PREVIEW, {"node": "nobody"}).content.decode().count("<section") == 4
