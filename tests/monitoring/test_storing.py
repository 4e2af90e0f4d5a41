"""A database that can be read and takes nothing new: what is stored stays, the overview says so, and writing goes on by itself."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from datetime import UTC, datetime

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from django.test import Client
from pytest_django.fixtures import Settings

from monitoring import hot, selectors, services
from monitoring.models import Cluster, Connection, HistoryJournal, Node
from monitoring.selectors import storing as told
from monitoring.services import leases, storing
from monitoring.services.watching.watch import ClusterWatch, Waits
from tests.monitoring import exporters
from tests.monitoring.exporters import collect_until, until, working


def pragma(text: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {text}")
        return int(cursor.fetchone()[0])


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections from now on may not make the file larger, and no page in it is free."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE ballast (what BLOB)")
        cursor.execute("INSERT INTO ballast VALUES (zeroblob(2000000))")
        limit = f"max_page_count = {pragma('page_count')}"
        pragma(limit)
        size = 2_000
        while size:
            try:
                cursor.execute("INSERT INTO ballast VALUES (zeroblob(%s))", [size])
            except OperationalError:
                size //= 2
    options = connections.settings["default"]["OPTIONS"]
    monkeypatch.setitem(options, "init_command", f"{options['init_command']}; PRAGMA {limit}")


def make_room() -> None:
    """Somebody clears up; the limit stays."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ballast")


def component(cluster: Cluster) -> selectors.Component:
    parts = selectors.overview(cluster, datetime.now(UTC)).components
    return next(each for each in parts if each.name == "database")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that are made now wait a moment for a lock, and not half a minute."""
    options = connections.settings["default"]["OPTIONS"]
    monkeypatch.setitem(options, "timeout", 0.3)


def heard_of(node: int) -> float:
    state = hot.store().get(node)
    return state.received if state else 0.0


def refused(kind: str) -> bool:
    note = told.refusal(hot.store().notes(), time.time())
    return note is not None and note.code == kind


@pytest.mark.django_db(transaction=True)
def test_a_full_database_loses_nothing_is_shown_and_goes_on_when_there_is_room(
    quick: Settings, monkeypatch: pytest.MonkeyPatch, as_viewer: Client
) -> None:
    with exporters.fleet(3) as fleet:
        cluster = services.ensure_cluster("lab", "Lab", "simulated", fleet.urls)
        collect_until(lambda: HistoryJournal.objects.count() >= 2)
        stored = set(HistoryJournal.objects.values_list("bucket", "at", "shard"))
        nodes = set(Node.objects.values_list("pk", "name"))
        counted = hot.store().counts().get("database_errors", 0)
        assert component(cluster).state == "ok"
        fill(monkeypatch)
        with working():
            until(lambda: refused("full"))
            assert hot.store().counts()["database_errors"] > counted
            assert component(cluster).state == "failing"
            page = as_viewer.get("/c/lab/").content.decode()
            assert (
                page.count("It is full. Free space on its disk or enlarge its volume") == 2
            )  # what needs attention, and the parts
            chinese = as_viewer.get("/c/lab/", headers={"Accept-Language": "zh-hans"}).content.decode()
            assert "它已满。请在其磁盘上释放空间" in chinese
            answer = as_viewer.get("/api/v1/clusters/lab/overview/").json()
            parts = {each["name"]: each for each in answer["components"]}
            assert (parts["database"]["state"], parts["database"]["values"]["code"]) == ("failing", "full")
            assert "Free space" in parts["database"]["detail"]
            assert stored <= set(HistoryJournal.objects.values_list("bucket", "at", "shard"))
            assert nodes <= set(Node.objects.values_list("pk", "name"))
            before = HistoryJournal.objects.count()
            make_room()
            until(lambda: HistoryJournal.objects.count() >= before + 3)
            room = time.time()
            time.sleep(0.2)
        note = told.refusal(hot.store().notes(), time.time())
        assert note is None or note.at < room  # no write was refused since
    assert told.refusal(hot.store().notes(), time.time() + told.SECONDS) is None
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE ballast")


@pytest.mark.django_db(transaction=True)
def test_a_locked_database_loses_nothing_is_shown_and_goes_on_when_it_is_free(quick: Settings) -> None:
    with exporters.fleet(2) as fleet:
        cluster = services.ensure_cluster("lab", "Lab", "simulated", fleet.urls)
        with working():
            until(lambda: HistoryJournal.objects.count() >= 2)
            stored = set(HistoryJournal.objects.values_list("bucket", "at", "shard"))
            node = Node.objects.earliest("pk").pk
            with transaction.atomic():
                Node.objects.filter(cluster=cluster).update(boot_id="held")
                until(lambda: refused("locked"))
                assert component(cluster).values["code"] == "locked"
                heard = heard_of(node)
                until(lambda: heard_of(node) > heard)  # exporters are asked all the same
            before = HistoryJournal.objects.count()
            until(lambda: HistoryJournal.objects.count() >= before + 2)
    assert stored <= set(HistoryJournal.objects.values_list("bucket", "at", "shard"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OperationalError("database or disk is full"), "full"),
        (OperationalError('could not extend file "base/1": No space left on device'), "full"),
        (OperationalError("database is locked"), "locked"),
        (OperationalError("attempt to write a readonly database"), "read-only"),
        (OperationalError("disk I/O error"), "damaged"),
        (OperationalError("connection to server at 10.0.0.5 failed: Connection refused"), "away"),
        (DatabaseError("integer out of range"), "refused"),
    ],
)
def test_it_tells_why_the_database_refused(error: DatabaseError, kind: str) -> None:
    assert storing.kind_of(error) == kind


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (psycopg.errors.DiskFull("x"), "full"),
        (psycopg.errors.LockNotAvailable("x"), "locked"),
        (psycopg.errors.ReadOnlySqlTransaction("x"), "read-only"),
        (sqlite3.OperationalError("x"), "away"),
    ],
)
def test_it_goes_by_the_databases_own_code(cause: Exception, kind: str) -> None:
    error = OperationalError("in some language")
    error.__cause__ = cause
    assert storing.kind_of(error) == kind


def test_no_address_of_the_database_is_kept() -> None:
    storing.refused("collect-7", OperationalError("connection to server at 10.0.0.5 failed"))
    note = hot.store().notes()["database/collect-7"]
    assert (note.ok, note.code, note.text) == (False, "away", "")
    assert told.refusal({"x": note, "database/a": note}, note.at + 10) == note
    assert told.refusal({"database/a": note}, note.at + 60) is None
    assert told.refusal({"prometheus": note}, note.at) is None


@pytest.mark.django_db(transaction=True)
async def test_a_watcher_that_the_database_refuses_says_so_and_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = await Cluster.objects.acreate(slug="watched", name="Watched")
    connected = await Connection.objects.acreate(cluster=cluster)
    tries: list[str] = []

    def full(name: str) -> bool:
        tries.append(name)
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(leases, "suspect", full)
    work = asyncio.create_task(ClusterWatch(connected, Waits(beat=0.01)).run())
    async with asyncio.timeout(10):
        while len(tries) < 3:  # noqa: ASYNC110 - what is waited for is on no event
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert hot.store().notes()[f"database/watch/{cluster.pk}"].code == "full"
    assert refused("full")
    assert hot.store().counts()["database_errors"] >= 2
