"""A rollout through its nodes: what is done to each in which order, and what happens when it does not work out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from monitoring.kube.errors import Forbidden, Unreachable
from numacore.change.wish import Wish
from policies.models import AuditEntry, Notice, Original
from policies.services.rollout import control, orders, sending
from tests.policies import driving
from tests.policies.driving import ADA
from tests.policies.playedcluster import PATH, TEXT, PlayedCluster


def test_it_goes_through_its_nodes_one_after_another(played: PlayedCluster) -> None:
    rollout = driving.through(played, driving.confirmed(played))
    assert rollout.state == "done", driving.stands(rollout)
    assert set(driving.outcomes(rollout).values()) == {"changed"}
    for machine in played.machines.values():
        assert "topologyManagerPolicy: single-numa-node" in (machine.applier.text or "")
        assert "cpuManagerPolicy: static  # since May" in (machine.applier.text or "")
    driving.check(played, rollout)


def test_a_node_is_cordoned_drained_changed_and_uncordoned(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: rollout.nodes.get(name="n0").step == "ended")
    epoch = rollout.nodes.get(name="n0").epoch
    name = f"numaweb-{rollout.pk}-0-{epoch}"
    assert played.events[:6] == [
        ("cordon", f"n0 {rollout.pk}/{epoch}"),
        ("evict", "shop/web-0"),
        ("job", name),
        ("applier applied", "n0"),
        ("uncordon", "n0"),
        ("remove", name),
    ]
    kinds = list(rollout.nodes.get(name="n0").acts.exclude(kind="note").values_list("kind", flat=True))
    assert kinds == ["cordon", "evict", "job", "uncordon", "tidy"]
    told = AuditEntry.objects.filter(target__endswith="node n0").order_by("sequence")
    assert [each.detail.partition(" ")[0] for each in told] == ["begun", *kinds]
    assert {each.actor for each in told} == {"ada"}


def test_what_stood_there_first_is_written_down_before_the_order(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: bool(played.made))
    original = Original.objects.get()
    assert (original.node_name, original.uid, original.path, original.text) == ("n0", "uid-n0", PATH, TEXT)
    assert original.fields == {"cpuManagerPolicy": "none", "topologyManagerPolicy": None}
    assert original.restored is None


def test_rolled_back_every_file_is_what_it_was_byte_by_byte_the_last_node_first(
    played: PlayedCluster,
) -> None:
    rollout = driving.through(played, driving.confirmed(played))
    control.roll_back(rollout, ADA, played.now)
    assert rollout.state == "returning"
    begun = len(played.events)
    driving.through(played, rollout)
    assert rollout.state == "returned", driving.stands(rollout)
    assert set(driving.outcomes(rollout).values()) == {"returned"}
    assert [each.applier.text for each in played.machines.values()] == [TEXT] * 3
    order = [what.split()[0] for kind, what in played.events[begun:] if kind == "cordon"]
    assert order == ["n2", "n1", "n0"]
    assert not Original.objects.filter(restored=None).exists()
    driving.check(played, rollout)


def test_asked_back_midway_the_node_in_flight_is_seen_through_and_goes_back_too(
    played: PlayedCluster,
) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: rollout.nodes.get(name="n1").step == "verify")
    control.roll_back(rollout, ADA, played.now)
    driving.through(played, rollout)
    assert rollout.state == "returned"
    assert driving.outcomes(rollout) == {"n0": "returned", "n1": "returned", "n2": "skipped"}
    assert [each.applier.text for each in played.machines.values()] == [TEXT] * 3
    driving.check(played, rollout)


def test_pods_that_are_refused_on_the_way_back_stop_it(played: PlayedCluster) -> None:
    rollout = driving.through(played, driving.confirmed(played))
    control.roll_back(rollout, ADA, played.now)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n2"][0] == "confirm")
    played.run("web-9", "n2", phase="Failed", reason="TopologyAffinityError")
    driving.through(played, rollout)
    assert (rollout.state, driving.outcomes(rollout)["n2"]) == ("stopped", "failed")
    assert driving.cause(rollout, "n2") == "gate-refused-pods"
    assert driving.stands(rollout)["n0"] == ("waiting", "")
    assert (played.machines["n2"].applier.text, played.machines["n0"].applier.text != TEXT) == (TEXT, True)
    control.retry(rollout, "n2", ADA, played.now)
    driving.through(played, rollout)
    assert set(driving.outcomes(rollout).values()) == {"returned"}


def test_a_policy_that_is_switched_off_restores_what_stood_there_first(played: PlayedCluster) -> None:
    driving.through(played, driving.confirmed(played))
    second = driving.policy(played, Wish(topology_policy="restricted"), seen=1)
    driving.through(played, driving.confirmed(played, second))
    assert "topologyManagerPolicy: restricted" in (played.machines["n1"].applier.text or "")
    off = driving.policy(played, Wish(topology_policy="restricted"), on=False, seen=2)
    rollout = driving.through(played, driving.confirmed(played, off))
    assert rollout.state == "done", driving.stands(rollout)
    assert [each.applier.text for each in played.machines.values()] == [TEXT] * 3
    assert [each.applier.changes[-1][1] for each in played.machines.values()] == ["restore"] * 3
    assert not Original.objects.filter(restored=None).exists()


def test_going_back_from_a_second_rollout_brings_the_first_one_back(played: PlayedCluster) -> None:
    driving.through(played, driving.confirmed(played))
    first = [each.applier.text for each in played.machines.values()]
    second = driving.policy(played, Wish(topology_policy="restricted"), seen=1)
    rollout = driving.through(played, driving.confirmed(played, second))
    control.roll_back(rollout, ADA, played.now)
    driving.through(played, rollout)
    assert rollout.state == "returned", (driving.stands(rollout), rollout.cause)
    assert [each.applier.text for each in played.machines.values()] == first
    assert Original.objects.filter(restored=None).count() == 3


# ---------------------------------------------------------------- a node that does not work out


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is waited for only some looks."""
    monkeypatch.setattr(sending, "NO_ANSWER", 20)
    monkeypatch.setattr(orders, "SLACK", 6)


def test_a_budget_that_never_allows_it_ends_in_an_uncordoned_node_and_a_stop(played: PlayedCluster) -> None:
    played.blocked.add("shop/web-0")
    rollout = driving.through(played, driving.confirmed(played, drain_within=20))
    assert rollout.state == "stopped"
    assert driving.outcomes(rollout) == {"n0": "failed", "n1": "", "n2": ""}
    node = rollout.nodes.get(name="n0")
    assert node.cause == {"code": "drain-timeout", "values": {"pods": "shop/web-0", "seconds": 20}}
    assert rollout.cause == {"code": "node-failed", "values": {"node": "n0", "why": "drain-timeout"}}
    assert "shop/web-0" in played.pods, "nobody forces a pod"
    act = node.acts.get(kind="evict")
    assert (act.state, act.said["code"], act.tries > 3) == ("begun", "blocked", True)
    assert Notice.objects.count() == 0, "nobody asked for notices"
    driving.check(played, rollout)


@pytest.mark.parametrize(
    ("outcome", "ends"), [("restored", "failed"), ("refused", "failed"), ("failed", "lost")]
)
def test_what_an_applier_says_is_believed(played: PlayedCluster, outcome: str, ends: str) -> None:
    played.machines["n0"].applier.fails = (outcome, "kubelet-silent")
    rollout = driving.through(played, driving.confirmed(played))
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == ("stopped", ends)
    assert driving.cause(rollout, "n0") == "kubelet-silent"
    assert played.machines["n1"].applier.text == TEXT
    driving.check(played, rollout)


@pytest.mark.usefixtures("impatient")
def test_an_applier_that_never_starts_leaves_the_node_as_it_was(played: PlayedCluster) -> None:
    played.machines["n0"].carries_out = False
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: bool(played.made))
    for _ in range(3):
        driving.look(played, rollout)
    rollout.refresh_from_db()
    assert driving.stands(rollout)["n0"][0] == "apply"
    driving.through(played, rollout)
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == ("stopped", "failed")
    assert driving.cause(rollout, "n0") == "no-answer"
    driving.check(played, rollout)


@pytest.mark.usefixtures("impatient")
def test_an_applier_whose_answer_was_lost_is_judged_by_what_stands_there(played: PlayedCluster) -> None:
    played.machines["n0"].answers = False
    rollout = driving.through(played, driving.confirmed(played))
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == ("done", "changed")
    driving.check(played, rollout)


@pytest.mark.usefixtures("impatient")
def test_nothing_known_at_all_needs_a_hand(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    machine = played.machines["n0"]
    driving.through(played, rollout, lambda: bool(played.made))
    machine.answers = machine.reports = False
    driving.through(played, rollout)
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == ("stopped", "lost")
    driving.check(played, rollout)


def test_a_kubelet_that_stays_away_is_taken_back_if_its_applier_still_can(played: PlayedCluster) -> None:
    played.machines["n0"].heals = False
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "undo")
    played.machines["n0"].heals = True
    driving.through(played, rollout)
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == ("stopped", "failed")
    assert driving.cause(rollout, "n0") == "gate-not-ready"
    assert played.machines["n0"].applier.text == TEXT
    driving.check(played, rollout)


def test_ready_with_other_settings_in_force_is_a_failure(played: PlayedCluster) -> None:
    played.machines["n0"].settings = {"cpuManagerPolicy": "none", "systemReserved": {"cpu": "1"}}
    rollout = driving.through(played, driving.confirmed(played))
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == ("stopped", "failed")
    assert driving.cause(rollout, "n0") == "gate-not-in-force"
    assert played.machines["n0"].applier.text == TEXT
    driving.check(played, rollout)


def test_a_canary_that_refuses_pods_goes_back_and_nobody_follows(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: ("uncordon", "n0") in played.events)
    played.run("web-9", "n0", phase="Failed", reason="TopologyAffinityError")
    driving.through(played, rollout)
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == ("stopped", "failed")
    assert rollout.nodes.get(name="n0").cause == {
        "code": "gate-refused-pods",
        "values": {"pods": "shop/web-9"},
    }
    assert [each.applier.text for each in played.machines.values()] == [TEXT] * 3
    driving.check(played, rollout)


def test_that_it_stops_is_told_before_the_node_is_back(played: PlayedCluster, settings: Settings) -> None:
    """It may be long before it rests: the API server is away meanwhile."""
    settings.NUMAWEB_NOTICE_MAIL = ["ops@example.org"]
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: ("uncordon", "n0") in played.events)
    played.run("web-9", "n0", phase="Failed", reason="TopologyAffinityError")
    driving.through(played, rollout, lambda: rollout.state == "stopping")
    assert [(each.event, each.channel) for each in Notice.objects.all()] == [("stopped", "mail")]
    made = Notice.objects.get().made
    driving.through(played, rollout)
    assert (rollout.state, Notice.objects.get().made) == ("stopped", made)


def test_pods_that_were_refused_before_are_no_reason(played: PlayedCluster) -> None:
    played.run("old", "n0", phase="Failed", reason="TopologyAffinityError")
    rollout = driving.through(played, driving.confirmed(played))
    assert rollout.state == "done"


def test_a_canary_whose_containers_cross_more_nodes_goes_back_a_later_node_only_says_so(
    played: PlayedCluster,
) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: ("uncordon", "n0") in played.events)
    played.machines["n0"].crossing = 3
    driving.through(played, rollout)
    assert (rollout.state, driving.cause(rollout, "n0")) == ("stopped", "gate-locality")
    driving.check(played, rollout)
    control.retry(rollout, "n0", ADA, played.now)
    played.machines["n0"].crossing = 0
    driving.through(played, rollout, lambda: ("uncordon", "n1") in played.events)
    played.machines["n1"].crossing = 3
    driving.through(played, rollout)
    assert rollout.state == "done"
    assert rollout.nodes.get(name="n1").acts.filter(said__code="locality-worse").exists()


# ---------------------------------------------------------------- others are at the node, too


def test_a_node_that_somebody_else_cordoned_is_left_alone(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played, max_unavailable="2")
    played.machines["n1"].cordoned = True
    driving.through(played, rollout)
    assert rollout.state == "done"
    assert driving.outcomes(rollout) == {"n0": "changed", "n1": "skipped", "n2": "changed"}
    assert driving.cause(rollout, "n1") == "cordoned-by-others"
    assert played.machines["n1"].cordoned
    driving.check(played, rollout, most=2)


def test_a_node_that_somebody_takes_over_stays_as_they_left_it(played: PlayedCluster) -> None:
    played.blocked.add("shop/web-0")
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "drain")
    machine = played.machines["n0"]
    machine.cordoned, machine.version = False, machine.version + 1
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "ended")
    assert driving.outcomes(rollout)["n0"] == "skipped"
    assert driving.cause(rollout, "n0") == "uncordoned-by-others"
    assert not machine.cordoned


def test_a_mark_that_somebody_took_off_makes_the_cordon_theirs(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "verify")
    machine = played.machines["n0"]
    machine.mark, machine.version = "", machine.version + 1
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "ended")
    assert machine.cordoned
    assert rollout.nodes.get(name="n0").acts.filter(said__code="left-cordoned").exists()


@pytest.mark.parametrize("step", ["drain", "apply", "verify"])
def test_a_node_that_is_replaced_midway_never_gets_the_order_of_the_old_one(
    played: PlayedCluster, step: str
) -> None:
    if step == "drain":
        played.blocked.add("shop/web-0")
    played.machines["n0"].carries_out = step != "apply"
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == step)
    old = played.machines["n0"]
    new = played.machines["n0"] = type(old)("n0")
    new.uid, new.row, new.applier.machine_id = "uid-new", old.row, "machine-new"
    driving.through(played, rollout)
    assert driving.outcomes(rollout)["n0"] == "skipped"
    assert driving.cause(rollout, "n0") == "replaced"
    assert (new.applier.text, new.cordoned, new.applier.changes) == (TEXT, False, [])
    driving.check(played, rollout)


def test_a_node_that_is_deleted_midway_holds_nobody_up(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "verify")
    del played.machines["n0"]
    before = played.now
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "ended")
    assert played.now - before < timedelta(seconds=60)
    assert driving.cause(rollout, "n0") == "gone"
    driving.through(played, rollout)
    assert rollout.state == "done"
    driving.check(played, rollout)


def test_a_file_that_somebody_changed_since_the_plan_is_left_alone(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    played.machines["n1"].applier.text = TEXT + "maxPods: 200\n"
    driving.through(played, rollout)
    assert driving.outcomes(rollout) == {"n0": "changed", "n1": "skipped", "n2": "changed"}
    assert driving.cause(rollout, "n1") == "stale"
    assert played.machines["n1"].applier.text == TEXT + "maxPods: 200\n"


def test_a_node_that_is_already_as_wanted_is_not_touched(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][1] == "changed")
    machine = played.machines["n1"]
    machine.applier.text, machine.applier.cpu_policy = played.machines["n0"].applier.text, "static"
    driving.through(played, rollout)
    assert driving.outcomes(rollout)["n1"] == "unchanged"
    assert not played.count("cordon")["n1"]
    driving.check(played, rollout)


# ---------------------------------------------------------------- the rest


def test_pods_of_daemonsets_static_pods_and_of_numaweb_itself_stay(played: PlayedCluster) -> None:
    played.run("proxy", "n0", owner="DaemonSet")
    played.run("etcd", "n0", mirror=True, owner="Node")
    played.run("done", "n0", phase="Succeeded")
    played.run("web", "n2", namespace="numaweb")
    rollout = driving.confirmed(played)
    plan = {each.name: each for each in control.plan_of(rollout).nodes}
    assert [reason.code for reason in plan["n0"].stays] == ["daemonset", "static-pod"]
    assert [each.name for each in control.plan_of(rollout).nodes][-1] == "n2"
    driving.through(played, rollout)
    assert set(played.count("evict")) == {"shop/web-0", "shop/web-1", "shop/web-2"}


def test_without_a_drain_nobody_is_evicted(played: PlayedCluster) -> None:
    rollout = driving.through(played, driving.confirmed(played, drain=False))
    assert rollout.state == "done"
    assert not played.count("evict")


def test_an_api_server_that_is_away_is_waited_for(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][0] == "verify")
    played.away = True
    assert driving.look(played, rollout) == 10
    rollout.refresh_from_db()
    assert rollout.waits_for == {"code": "unreachable", "values": {"words": "connection refused"}}
    played.away = False
    driving.through(played, rollout)
    assert (rollout.state, rollout.waits_for) == ("done", None)
    driving.check(played, rollout)


@pytest.mark.parametrize("somebody_stops", [False, True])
def test_a_job_that_the_api_server_refuses_ends_in_an_uncordoned_node(
    played: PlayedCluster, monkeypatch: pytest.MonkeyPatch, somebody_stops: bool
) -> None:
    def quota(*_: object) -> str:
        raise Forbidden(403, "Forbidden", "exceeded quota: jobs")

    monkeypatch.setattr(played, "put", quota)
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: rollout.nodes.filter(acts__kind="job").exists())
    for _ in range(3):
        driving.look(played, rollout)
    rollout.refresh_from_db()
    assert rollout.waits_for == {"code": "missing-right", "values": {"rights": "exceeded quota: jobs"}}
    if somebody_stops:
        control.stop(rollout, ADA, played.now)
    driving.through(played, rollout)
    assert (rollout.state, driving.outcomes(rollout)["n0"]) == (
        "stopped",
        "skipped" if somebody_stops else "failed",
    )
    assert driving.cause(rollout, "n0") == ("stopped" if somebody_stops else "api")
    driving.check(played, rollout)


def test_an_order_that_waited_too_long_for_its_job_is_made_anew(
    played: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unheard(*_: object) -> str:
        raise Unreachable(0, "Unreachable", "connection refused")

    rollout = driving.confirmed(played)
    with monkeypatch.context() as patch:
        patch.setattr(played, "put", unheard)
        driving.through(played, rollout, lambda: rollout.nodes.filter(acts__kind="job").exists())
    assert not played.made
    control.pause(rollout, ADA, played.now)
    driving.through(played, rollout)
    played.pass_time(3600)
    control.resume(rollout, ADA, played.now)
    driving.through(played, rollout)
    assert rollout.state == "done", driving.stands(rollout)
    assert "applier refused" not in {event for event, _node in played.events}
    driving.check(played, rollout)
