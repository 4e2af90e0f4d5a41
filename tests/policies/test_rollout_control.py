"""What people do with rollouts: what is refused and why, what is written down."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring.kube.rights import Right
from monitoring.models import Cluster, Connection
from monitoring.services import sealing
from numacore.change.wish import Wish
from policies.models import AuditEntry, OrderKey, Rollout
from policies.plan import Options, Window
from policies.services.rollout import control, planning, signing, telling
from policies.services.rollout.error import RolloutError
from tests.policies import driving
from tests.policies.driving import ADA, OTTO
from tests.policies.playedcluster import PlayedCluster


def refused(code: str) -> Any:
    return pytest.raises(RolloutError, match=f"^{code}")


def confirm(rollout: Rollout, **given: Any) -> None:
    wanted = {"plan_hash": rollout.plan_hash, "typed_number": rollout.nodes.count(), "now": timezone.now()}
    control.confirm(rollout, who=ADA, **{**wanted, **given})


def test_what_has_to_be_there_before_a_plan_is_made(played: PlayedCluster, settings: Settings) -> None:
    policy = driving.policy(played)

    def create(options: Options | None = None, of: Any = policy) -> Rollout:
        return control.create(played.cluster, of, options or Options(), OTTO, timezone.now())

    with refused("no-policy"):
        create(of=None)
    with refused("option") as refusal:
        create(Options(batch="0"))
    assert (refusal.value.field, refusal.value.cause) == ("batch", "no-amount")
    with refused("option") as refusal:
        create(Options(window=Window(start="22:00", end="22:00")))
    assert refusal.value.field == "window.end"
    Connection.objects.update(token="")
    with refused("access"):
        create()
    Connection.objects.update(enabled=False)
    with refused("no-connection"):
        create()
    settings.NUMAWEB_ROLLOUTS = False
    with refused("off"):
        create()
    assert not Rollout.objects.exists()


def test_only_what_was_seen_is_confirmed_and_only_while_it_is_young(played: PlayedCluster) -> None:
    rollout = driving.planned(played)
    with refused("hash"):
        confirm(rollout, plan_hash="0" * 64)
    with refused("count") as refusal:
        confirm(rollout, typed_number=2)
    assert refusal.value.field == "number"
    with refused("old"):
        confirm(rollout, now=timezone.now() + timedelta(minutes=16))
    played.machines["n1"].applier.text = "kind: KubeletConfiguration\n"
    played.tell(played.machines["n1"])
    with refused("stale: n1"):
        confirm(rollout)
    rollout.refresh_from_db()
    assert (rollout.state, rollout.confirmed) == ("planned", None)
    assert not AuditEntry.objects.filter(action=telling.ACTION, detail="confirmed").exists()


def test_a_plan_that_something_changed_in_the_database_is_nobodys_plan(played: PlayedCluster) -> None:
    rollout = driving.planned(played)
    real = rollout.plan
    assert real is not None
    other = {**real, "options": {**real["options"], "drain": False}}
    Rollout.objects.filter(pk=rollout.pk).update(plan=other)
    rollout.refresh_from_db()
    with refused("altered"):
        confirm(rollout)
    Rollout.objects.filter(pk=rollout.pk).update(plan=real)
    rollout.refresh_from_db()
    confirm(rollout)
    driving.look(played, rollout)
    Rollout.objects.filter(pk=rollout.pk).update(plan=other)
    done = list(played.events)
    for _ in range(3):
        driving.look(played, rollout)
    rollout.refresh_from_db()
    assert (played.events, rollout.waits_for["code"]) == (done, "altered")
    Rollout.objects.filter(pk=rollout.pk).update(plan=real)
    assert driving.through(played, rollout).state == "done"


def test_a_cluster_stays_while_a_rollout_works_there_or_a_node_stands_changed(
    played: PlayedCluster, as_administrator: Client
) -> None:
    def remove() -> Any:
        return as_administrator.delete("/api/v1/clusters/west/", headers={"If-Match": "*"})

    rollout = driving.confirmed(played)
    driving.look(played, rollout)
    assert (refusal := remove()).status_code == 409
    assert "rollouts: 1" in refusal.json()["detail"]
    assert not AuditEntry.objects.filter(action="remove").exists()
    driving.through(played, rollout)
    assert "original settings of nodes: 3" in remove().json()["detail"]
    control.roll_back(rollout, ADA, played.now)
    driving.through(played, rollout)
    assert remove().status_code == 204
    assert not Rollout.objects.exists()


def test_a_cluster_that_is_gone_for_good_is_removed_once_it_is_switched_off(
    played: PlayedCluster, as_administrator: Client
) -> None:
    driving.look(played, driving.confirmed(played))
    Cluster.objects.update(enabled=False)
    gone = as_administrator.delete("/api/v1/clusters/west/", headers={"If-Match": "*"})
    assert gone.status_code == 204


def test_without_a_right_nothing_is_begun_and_the_attempt_is_in_the_log(played: PlayedCluster) -> None:
    played.lacking = [Right("patch", "", "nodes"), Right("create", "batch", "jobs", namespace="numaweb")]
    rollout = driving.planned(played)
    assert [each.code for each in control.plan_of(rollout).warnings] == ["missing-right"]
    with refused("missing-right: patch nodes, create jobs.batch in numaweb"):
        confirm(rollout)
    told = AuditEntry.objects.get(action=telling.ACTION, result="refused")
    assert (told.actor, told.detail) == (
        "ada",
        "missing right: patch nodes, create jobs.batch in numaweb",
    )


def test_of_a_cluster_one_rollout_at_a_time(played: PlayedCluster) -> None:
    first, second = driving.planned(played), driving.planned(played)
    confirm(first)
    with refused("busy"):
        confirm(second)
    with refused("not-planned"):
        confirm(first)
    driving.through(played, first)
    control.discard(second, OTTO, played.now)
    third = driving.planned(played, driving.policy(played, Wish(topology_policy="restricted"), seen=1))
    confirm(third)
    with refused("busy"):
        control.roll_back(first, ADA, played.now)


def test_each_button_where_it_belongs(played: PlayedCluster) -> None:
    rollout = driving.planned(played)
    now = played.now
    for action in (control.pause, control.stop, control.roll_back):
        with refused("not-active"):
            action(rollout, ADA, now)
    with refused("not-paused"):
        control.resume(rollout, ADA, now)
    with refused("not-stopped"):
        control.retry(rollout, "n0", ADA, now)
    confirm(rollout)
    with refused("not-planned"):
        control.discard(rollout, ADA, now)
    control.pause(rollout, ADA, now)
    with refused("not-active"):
        control.pause(rollout, ADA, now)
    with refused("not-failed"):
        control.retry(rollout, "n0", ADA, now)
    control.resume(rollout, ADA, now)
    control.stop(rollout, OTTO, now)
    assert rollout.cause == {"code": "stopped-by", "values": {"who": "otto"}}
    details = (
        AuditEntry.objects.filter(action=telling.ACTION).order_by("sequence").values_list("detail", flat=True)
    )
    assert list(details) == ["asked for a plan", "planned", "confirmed", "paused", "resumed", "stopped"]


def test_paused_while_it_goes_back_it_goes_back_when_somebody_resumes(played: PlayedCluster) -> None:
    rollout = driving.confirmed(played)
    driving.through(played, rollout, lambda: driving.stands(rollout)["n0"][1] == "changed")
    control.roll_back(rollout, ADA, played.now)
    control.pause(rollout, ADA, played.now)
    assert driving.look(played, rollout) is None
    control.resume(rollout, ADA, played.now)
    assert rollout.state == "returning"
    driving.through(played, rollout)
    assert rollout.state == "returned"
    driving.check(played, rollout)


def test_stopped_while_it_goes_back_it_can_be_sent_on(played: PlayedCluster) -> None:
    rollout = driving.through(played, driving.confirmed(played))
    control.roll_back(rollout, ADA, played.now)
    driving.through(
        played,
        rollout,
        lambda: driving.stands(rollout)["n2"][0] == "drain" or bool(played.count("uncordon")["n2"] > 1),
    )
    control.stop(rollout, ADA, played.now)
    driving.through(played, rollout)
    assert rollout.state == "stopped"
    control.roll_back(rollout, ADA, played.now)
    driving.through(played, rollout)
    assert rollout.state == "returned"
    driving.check(played, rollout)


def test_a_node_that_failed_is_tried_again_and_the_others_follow(played: PlayedCluster) -> None:
    played.machines["n0"].applier.fails = ("restored", "kubelet-dies")
    rollout = driving.through(played, driving.confirmed(played))
    assert driving.outcomes(rollout) == {"n0": "failed", "n1": "", "n2": ""}
    played.machines["n0"].applier.fails = None
    control.retry(rollout, "n0", ADA, played.now)
    assert (rollout.state, rollout.cause) == ("running", None)
    driving.through(played, rollout)
    assert (rollout.state, rollout.nodes.get(name="n0").tries) == ("done", 2)
    driving.check(played, rollout)


def test_a_plan_that_is_discarded_while_it_is_made_stays_so(
    played: PlayedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = control.create(played.cluster, driving.policy(played), Options(), OTTO, timezone.now())
    real = planning._judged

    def late(*given: Any) -> Any:
        control.discard(rollout, OTTO, timezone.now())
        return real(*given)

    monkeypatch.setattr(planning, "_judged", late)
    planning.plan_work(rollout.pk)
    rollout.refresh_from_db()
    assert (rollout.state, rollout.plan, rollout.nodes.count()) == ("discarded", None, 0)


# ---------------------------------------------------------------- the key of orders


@pytest.mark.django_db
def test_a_key_is_made_once_and_never_stands_there_in_clear(capsys: pytest.CaptureFixture[str]) -> None:
    first = signing.signer().public_pem
    assert signing.signer().public_pem == first
    call_command("orderkey")
    assert capsys.readouterr().out == first
    with connection.cursor() as cursor:
        cursor.execute("SELECT private FROM policies_orderkey")
        assert "PRIVATE" not in cursor.fetchone()[0]
    assert OrderKey.objects.count() == 1


@pytest.mark.django_db
def test_a_key_of_another_secret_key_is_not_silently_replaced(settings: Settings) -> None:
    signing.signer()
    settings.SECRET_KEY = "another-" * 10
    with refused("no-key: it was encrypted with another secret key"):
        signing.signer()
    settings.NUMAWEB_ORDER_KEY = "no key at all"
    with refused("no-key"):
        signing.signer()


@pytest.mark.django_db
def test_the_key_is_encrypted_anew_with_the_other_secrets(settings: Settings) -> None:
    before = signing.signer().public_pem
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another-" * 10
    settings.SECRET_KEY_FALLBACKS = [old]
    assert sealing.reseal().done == 1
    settings.SECRET_KEY_FALLBACKS = []
    assert signing.signer().public_pem == before


@pytest.mark.django_db
def test_a_key_from_a_file_wins(settings: Settings) -> None:
    private = Ed25519PrivateKey.generate()
    settings.NUMAWEB_ORDER_KEY = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert signing.signer().public_pem == public.decode()
    assert not OrderKey.objects.exists()
