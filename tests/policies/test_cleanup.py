"""Clean-up of failed pods: looked at first, exactly those, in the audit log before and after, safe to run twice."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring.kube.access import Access
from monitoring.kube.errors import Unreachable
from monitoring.kube.rights import Right
from monitoring.models import Cluster, Connection
from monitoring.selectors import failures
from policies import tasks
from policies.gateway import Done
from policies.models import AuditEntry, Cleanup, CleanupPod
from policies.services import cleanup
from policies.services.cleanup import CleanupError
from policies.services.who import Who
from tests.monitoring.pages import refusals, seeds

OTTO = Who("otto", "10.0.0.5")


class Plane:
    """A cluster's failed pods by uid, behind what `gateway.Gateway` offers. tests/cluster asks the real one."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.changed: set[str] = set()
        self.asked: list[str] = []
        self.lacking: list[Right] = []
        self.away_after: int | None = None

    def enter(self, _access: Access) -> Any:
        return self

    def missing(self, _namespaces: Any) -> list[Right]:
        return self.lacking

    def delete_failed_pod(self, _namespace: str, _name: str, uid: str) -> Done:
        if self.away_after is not None and len(self.asked) >= self.away_after:
            raise Unreachable(0, "Unreachable", "connection refused")
        self.asked.append(uid)
        if uid in self.changed:
            return Done("changed", "its phase is Running")
        if uid not in self.there:
            return Done("gone")
        self.there.discard(uid)
        return Done("deleted")


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Plane:
    made = Plane()
    for name in ("preview", "start", "work"):
        defaults = getattr(cleanup, name).__defaults__
        monkeypatch.setattr(getattr(cleanup, name), "__defaults__", (*defaults[:-1], made.enter))
    return made


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Clean-ups that were put into the queue."""
    found: list[int] = []
    monkeypatch.setattr(tasks, "offer", found.append)
    return found


@pytest.fixture
def east(db: None, plane: Plane, settings: Settings) -> Cluster:
    """Seven refused pods of a loop and one of another owner, all still there; clean-up is switched on."""
    settings.NUMAWEB_CLEANUP = True
    cluster = seeds.cluster()
    token = {"source": "token", "server": "https://192.0.2.1:6443", "token": "t"}
    refusals.connected(cluster, **token)
    pods = [refusals.owned("inference", number, node="n1") for number in range(7)]
    pods.append(refusals.owned("batch", 0, node="n2", namespace="jobs", kind="Job"))
    refusals.told(cluster, *pods)
    plane.there = {pod.metadata.uid for pod in pods}
    return cluster


def looked_at(cluster: Cluster, **wanted: str) -> Cleanup:
    return cleanup.preview(cluster, failures.lines(cluster).filter(**wanted), OTTO, timezone.now())


def started(cluster: Cluster, **wanted: str) -> Cleanup:
    made = looked_at(cluster, **wanted)
    cleanup.start(made, OTTO, timezone.now())
    made.refresh_from_db()
    return made


def outcomes(of: Cleanup) -> dict[str, int]:
    found: dict[str, int] = {}
    for outcome in of.pods.values_list("outcome", flat=True):
        found[outcome] = found.get(outcome, 0) + 1
    return found


def refused(code: str) -> Any:
    return pytest.raises(CleanupError, match=f"^{code}")


# ---------------------------------------------------------------- the service


def test_a_preview_names_the_pods_and_touches_none(east: Cluster, plane: Plane) -> None:
    made = looked_at(east, owner_name="inference")
    assert (made.state, made.made_by, made.pods.count()) == ("preview", "otto", 7)
    assert set(made.pods.values_list("owner_name", "node_name", "reason")) == {
        ("inference", "n1", "TopologyAffinityError")
    }
    assert plane.asked == []
    assert not AuditEntry.objects.filter(action=cleanup.ACTION).exists()


def test_exactly_the_previewed_pods_go(east: Cluster, plane: Plane) -> None:
    made = started(east, owner_name="inference")
    later = refusals.owned("inference", 9, node="n1")
    refusals.told(east, later)
    plane.there.add(later.metadata.uid)
    assert cleanup.work(made.pk) is False
    made.refresh_from_db()
    assert (made.state, outcomes(made)) == ("done", {"deleted": 7})
    assert plane.there == {"uid-jobs-batch-0", "uid-shop-inference-9"}


def test_it_is_in_the_audit_log_before_and_after_with_counts(east: Cluster, plane: Plane) -> None:
    made = started(east)
    (before,) = AuditEntry.objects.filter(action=cleanup.ACTION)
    assert (before.actor, before.address, before.detail) == ("otto", "10.0.0.5", "started")
    assert before.target == f"cluster east clean-up {made.pk}"
    assert before.after == {"pods": 8, "owners": {"shop/StatefulSet inference": 7, "jobs/Job batch": 1}}
    assert plane.asked == []
    plane.there.discard("uid-jobs-batch-0")
    cleanup.work(made.pk)
    after = AuditEntry.objects.get(action=cleanup.ACTION, detail="ended")
    assert after.after == {"waiting": 0, "asked": 0, "deleted": 7, "gone": 1, "changed": 0, "refused": 0}


def test_a_pod_that_changed_is_left_alone_with_its_cause(east: Cluster, plane: Plane) -> None:
    plane.changed = {"uid-shop-inference-3"}
    made = started(east)
    cleanup.work(made.pk)
    pod = made.pods.get(name="inference-3")
    assert (pod.outcome, pod.cause) == ("changed", "its phase is Running")
    assert outcomes(made) == {"deleted": 7, "changed": 1}


def test_without_the_right_nothing_is_started(east: Cluster, plane: Plane) -> None:
    plane.lacking = [Right("delete", "", "pods", namespace="shop")]
    made = looked_at(east)
    assert made.missing == ["delete pods in shop"]
    with refused("missing-right: delete pods in shop"):
        cleanup.start(made, OTTO, timezone.now())
    made.refresh_from_db()
    assert (made.state, plane.asked) == ("preview", [])
    (told,) = AuditEntry.objects.filter(action=cleanup.ACTION)
    assert (told.result, told.detail) == ("refused", "missing right: delete pods in shop")


def test_switched_off_nothing_is_even_looked_at(east: Cluster, settings: Settings) -> None:
    made = looked_at(east)
    settings.NUMAWEB_CLEANUP = False
    with refused("off"):
        looked_at(east)
    with refused("off"):
        cleanup.start(made, OTTO, timezone.now())


def test_switched_off_while_it_runs_it_stands_still(east: Cluster, plane: Plane, settings: Settings) -> None:
    made = started(east)
    settings.NUMAWEB_CLEANUP = False
    assert cleanup.work(made.pk) is False
    assert plane.asked == []


def test_it_starts_once_not_beside_another_and_not_when_old(east: Cluster) -> None:
    first = started(east, owner_name="batch")
    with refused("not-preview"):
        cleanup.start(first, OTTO, timezone.now())
    second = looked_at(east)
    with refused("busy"):
        cleanup.start(second, OTTO, timezone.now())
    cleanup.work(first.pk)
    with refused("old"):
        cleanup.start(second, OTTO, timezone.now() + timedelta(minutes=61))
    cleanup.start(second, OTTO, timezone.now())


def test_there_has_to_be_something_and_a_connection(east: Cluster) -> None:
    with refused("nothing"):
        looked_at(east, owner_name="nobody")
    Connection.objects.update(token="")
    with refused("access: .*token"):
        looked_at(east)
    Connection.objects.update(enabled=False)
    with refused("no-connection"):
        looked_at(east)


def test_it_goes_on_where_the_server_went_away(east: Cluster, plane: Plane) -> None:
    made = started(east)
    plane.away_after = 3
    assert cleanup.work(made.pk) is False
    made.refresh_from_db()
    assert (made.state, made.error) == ("running", "unreachable: connection refused")
    assert outcomes(made) == {"deleted": 3, "asked": 1, "waiting": 4}
    assert cleanup.unfinished() == [made.pk]
    plane.away_after = None
    cleanup.work(made.pk)
    made.refresh_from_db()
    assert (made.state, made.error, outcomes(made)) == ("done", "", {"deleted": 8})
    assert len(plane.asked) == len(set(plane.asked)) == 8
    assert cleanup.unfinished() == []


def test_after_a_crash_between_act_and_note_it_says_so(east: Cluster, plane: Plane) -> None:
    made = started(east, owner_name="batch")
    made.pods.update(outcome="asked")
    plane.there.discard("uid-jobs-batch-0")
    cleanup.work(made.pk)
    pod = made.pods.get()
    assert (pod.outcome, pod.cause) == ("gone", "the work was interrupted while it was being deleted")


def test_it_goes_in_bounded_batches(east: Cluster, plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "BATCH", 5)
    made = started(east)
    assert cleanup.work(made.pk) is True
    assert len(plane.asked) == 5
    assert cleanup.work(made.pk) is False
    assert outcomes(made) == {"deleted": 8}


def test_more_pods_than_one_takes_on_are_named(east: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "MOST", 5)
    made = looked_at(east)
    assert (made.pods.count(), made.left_out) == (5, 3)


def test_a_stopped_one_deletes_no_further_pod(east: Cluster, plane: Plane) -> None:
    made = started(east)
    cleanup.stop(made, OTTO, timezone.now())
    assert cleanup.work(made.pk) is False
    assert plane.asked == []
    with refused("not-preview"):
        cleanup.stop(made, OTTO, timezone.now())
    assert AuditEntry.objects.get(detail="stopped").after["waiting"] == 8


def test_previews_that_nobody_started_are_forgotten(east: Cluster) -> None:
    old, ran = looked_at(east), started(east, owner_name="batch")
    cleanup.work(ran.pk)
    cleanup.forget(timezone.now() + timedelta(hours=3))
    assert list(Cleanup.objects.values_list("pk", flat=True)) == [ran.pk]
    assert not CleanupPod.objects.filter(cleanup=old.pk).exists()
    cleanup.forget(timezone.now() + timedelta(days=31))
    assert not Cleanup.objects.exists()


# ---------------------------------------------------------------- the page


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode().replace("&#x27;", "'"))


def test_an_operator_looks_types_the_number_and_sees_it_end(
    east: Cluster, plane: Plane, as_operator: Client, offered: list[int]
) -> None:
    assert 'href="/c/east/cleanups/?namespace=shop"' in page(as_operator, "/c/east/failures/?namespace=shop")
    answer = as_operator.post("/c/east/cleanups/?namespace=shop")
    made = Cleanup.objects.get()
    address = f"/c/east/cleanups/{made.pk}/"
    assert answer["Location"] == address
    text = page(as_operator, address)
    assert "7 pods would be deleted." in text
    assert "shop/StatefulSet inference" in text
    as_operator.post(address, {"do": "start", "pods": "8"})
    assert "The number is not that of the pods." in page(as_operator, address)
    assert offered == []
    as_operator.post(address, {"do": "start", "pods": "7"})
    assert offered == [made.pk]
    assert "0 of 7 pods are settled." in page(as_operator, address)
    cleanup.work(made.pk)
    text = page(as_operator, address)
    assert "7 of 7 pods are settled." in text
    assert "It has ended, started by otto." in text
    assert "deleted <b>7</b>" in text


def test_a_hindrance_and_a_cause_are_told_in_words(
    east: Cluster, plane: Plane, settings: Settings, as_viewer: Client
) -> None:
    plane.changed = {"uid-shop-inference-0"}
    made = started(east)
    plane.away_after = 1
    cleanup.work(made.pk)
    text = page(as_viewer, f"/c/east/cleanups/{made.pk}/")
    assert "The API server does not answer. connection refused" in text
    assert (
        as_viewer.get(REST).json()["results"][0]["error"]
        == "The API server does not answer. connection refused"
    )
    as_viewer.cookies.load({"numaweb_language": "zh-hans"})
    assert "其阶段为 Running" in page(as_viewer, f"/c/east/cleanups/{made.pk}/")


def test_a_viewer_sees_it_and_may_do_nothing(east: Cluster, plane: Plane, as_viewer: Client) -> None:
    assert "needs the role operator" in page(as_viewer, "/c/east/failures/")
    assert "needs the role operator" in page(as_viewer, "/c/east/cleanups/")
    assert as_viewer.post("/c/east/cleanups/").status_code == 403
    made = looked_at(east)
    assert "needs the role operator" in page(as_viewer, f"/c/east/cleanups/{made.pk}/")
    assert as_viewer.post(f"/c/east/cleanups/{made.pk}/", {"do": "start", "pods": "8"}).status_code == 403
    made.refresh_from_db()
    assert made.state == "preview"


def test_switched_off_the_page_says_how_to_switch_it_on(
    east: Cluster, settings: Settings, as_operator: Client
) -> None:
    settings.NUMAWEB_CLEANUP = False
    text = page(as_operator, "/c/east/cleanups/")
    assert "Set NUMAWEB_CLEANUP=1" in text
    assert "cleaner.yaml" in text
    assert as_operator.post("/c/east/cleanups/")["Location"] == "/c/east/cleanups/?"
    assert not Cleanup.objects.exists()


def test_a_missing_right_stands_on_the_page_and_there_is_no_button(
    east: Cluster, plane: Plane, as_operator: Client
) -> None:
    plane.lacking = [Right("delete", "", "pods", namespace="shop")]
    as_operator.post("/c/east/cleanups/")
    text = page(as_operator, f"/c/east/cleanups/{Cleanup.objects.get().pk}/")
    assert "numaweb may not delete these pods. delete pods in shop" in text
    assert "Delete them" not in text


# ---------------------------------------------------------------- REST


REST = "/api/v1/clusters/east/cleanups/"


def post(client: Client, path: str, body: dict[str, Any], status: int) -> Any:
    response = client.post(path, body, content_type="application/json")
    assert response.status_code == status, response.content
    return response.json()


def test_a_program_does_the_same_in_three_steps(
    east: Cluster, plane: Plane, as_operator: Client, offered: list[int]
) -> None:
    made = post(as_operator, REST, {"owner": ["inference"]}, 201)
    assert (made["state"], made["pods"], made["owners"]) == ("preview", 7, {"shop/StatefulSet inference": 7})
    one = made["address"]
    assert "pods" in post(as_operator, f"{one}start/", {"pods": 6}, 400)["errors"]
    assert post(as_operator, f"{one}start/", {"pods": 7}, 200)["state"] == "running"
    assert offered == [made["id"]]
    cleanup.work(made["id"])
    found = as_operator.get(one).json()
    assert (found["state"], found["outcomes"]["deleted"]) == ("done", 7)
    pods = as_operator.get(f"{one}pods/?outcome=deleted&page_size=3").json()
    assert [row["name"] for row in pods["results"]] == ["inference-0", "inference-1", "inference-2"]
    assert pods["next"]
    assert [row["id"] for row in as_operator.get(f"{REST}?state=done").json()["results"]] == [made["id"]]


def test_a_program_is_told_why_not(
    east: Cluster, plane: Plane, settings: Settings, as_operator: Client, offered: list[int]
) -> None:
    assert "nothing to clean up" in post(as_operator, REST, {"owner": ["nobody"]}, 409)["detail"]
    assert "owners" in post(as_operator, REST, {"owners": ["x"]}, 400)["errors"]
    plane.lacking = [Right("delete", "", "pods")]
    made = post(as_operator, REST, {}, 201)
    assert made["missing"] == ["delete pods"]
    assert "may not delete" in post(as_operator, f"{made['address']}start/", {"pods": 8}, 409)["detail"]
    settings.NUMAWEB_CLEANUP = False
    assert "NUMAWEB_CLEANUP=1" in post(as_operator, REST, {}, 409)["detail"]
    assert offered == []


def test_viewers_and_read_tokens_change_nothing(
    east: Cluster, as_viewer: Client, operator: User, plane: Plane
) -> None:
    post(as_viewer, REST, {}, 403)
    assert as_viewer.get(REST).status_code == 200
    assert not Cleanup.objects.exists()
