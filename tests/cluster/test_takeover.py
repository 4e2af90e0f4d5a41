"""Two watchers as processes of their own, on PostgreSQL and a real Kubernetes, with the waits that they have by default: one works, and when
it is gone, or only thought to be, the other does; what was thought to be gone writes nothing any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import servers, stack
from tests.cluster import bulk, rights, things
from tests.cluster.controlplane import ControlPlane, until
from tests.servers import Server

SECRET_KEY = "only-for-tests-" * 5
CONNECT = "from monitoring import services; services.ensure_connection('real', 'Real')"
TAKEOVER_SECONDS = 15.0
"""From the end of one watcher to the work of another."""
PATIENCE_SECONDS = 8.0
"""NUMAWEB_WATCH_LEASE as it is by default."""
WRITTEN = ("node", "kubernetesnode", "pod", "sourceview", "clusterevent", "watchhealth", "connection")
JOURNAL = """
CREATE TABLE journal (number bigserial, writer text, what text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal (writer, what) VALUES (current_setting('application_name'), TG_TABLE_NAME || ' ' || TG_OP);
    RETURN NULL;
END $$;
"""
"""Who wrote what, as far as it was committed."""


class Pair:
    """A database with a journal, and two watchers by name; neither runs yet."""

    def __init__(self, database: str, folder: Path, kubeconfig: Path) -> None:
        self.surroundings = stack.environment(
            NUMAWEB_DATABASE_URL=database,
            NUMAWEB_SECRET_KEY=SECRET_KEY,
            NUMAWEB_STATE_DIR=str(folder),
            NUMAWEB_KUBECONFIG=str(kubeconfig),
        )
        self._database, self._folder = database, folder
        self.sql = psycopg.connect(database, autocommit=True)
        self.sql.execute(JOURNAL)
        for table in WRITTEN:
            self.sql.execute(
                f"CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON monitoring_{table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION note()"
            )
        self._started: list[Server] = []

    def start(self, name: str) -> Server:
        """A watcher whose database connections carry its name."""
        (folder := self._folder / name).mkdir()
        server = Server(
            [sys.executable, str(servers.ROOT / "manage.py"), "watch"],
            folder,
            lambda _: True,
            environment={
                **self.surroundings,
                "NUMAWEB_DATABASE_URL": f"{self._database}?application_name={name}",
            },
        )
        server.start()
        self._started.append(server)
        return server

    def close(self) -> None:
        with contextlib.ExitStack() as leaving:
            leaving.callback(self.sql.close)
            for each in self._started:
                leaving.callback(each.kill)

    def pods(self) -> list[str]:
        return [name for (name,) in self.sql.execute("SELECT name FROM monitoring_pod ORDER BY name")]

    def last(self) -> int:
        return self.number("SELECT coalesce(max(number), 0) FROM journal")

    def written(self, name: str, since: int = 0) -> list[str]:
        """What a watcher has written after a line of the journal."""
        found = self.sql.execute(
            "SELECT what FROM journal WHERE writer = %s AND number > %s", (name, since)
        ).fetchall()
        return [what for (what,) in found]

    def holder(self) -> str:
        [(found,)] = self.sql.execute(
            "SELECT holder FROM monitoring_lease WHERE name LIKE 'watch/%'"
        ).fetchall()
        return str(found)

    def follows(self) -> bool:
        """All six kinds of objects are followed."""
        return (
            self.number("SELECT count(*) FROM monitoring_watchhealth WHERE state IN ('watching', 'absent')")
            == 6
        )

    def number(self, query: Any) -> int:
        [(found,)] = self.sql.execute(query).fetchall()
        return int(found)


@pytest.fixture(scope="module")
def postgres() -> Iterator[stack.Part]:
    """With a database `migrated` that knows the connection, to be copied."""
    with stack.postgres() as part:
        with psycopg.connect(part.url, autocommit=True) as sql:
            sql.execute("CREATE DATABASE migrated")
        settings = {"NUMAWEB_DATABASE_URL": part.database("migrated"), "NUMAWEB_SECRET_KEY": SECRET_KEY}
        surroundings = stack.environment(**settings)
        stack.manage(surroundings, "migrate", "--verbosity=0")
        stack.manage(surroundings, "shell", "-c", CONNECT)
        yield part


@pytest.fixture
def pair(plane: ControlPlane, postgres: stack.Part, tmp_path: Path) -> Iterator[Pair]:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(rights.kubeconfig(plane, "watcher"))
    plane.api.create(things.node("a"))
    with psycopg.connect(postgres.url, autocommit=True) as sql:
        sql.execute("DROP DATABASE IF EXISTS watched WITH (FORCE)")
        sql.execute("CREATE DATABASE watched TEMPLATE migrated")
    pair = Pair(postgres.database("watched"), tmp_path, kubeconfig)
    try:
        yield pair
    finally:
        pair.close()


@pytest.fixture
def first(pair: Pair) -> Server:
    """Works already; `second` waits beside it."""
    first = pair.start("first")
    until(pair.follows, "a watcher that works")
    return first


def second(pair: Pair) -> Server:
    server = pair.start("second")
    looked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'second'"
    until(lambda: pair.number(looked) > 0, "a watcher that waits")
    assert pair.written("second") == []
    return server


def test_another_process_goes_on_where_one_was_killed(
    plane: ControlPlane, namespace: str, pair: Pair, first: Server
) -> None:
    second(pair)
    first.kill()
    plane.api.create(things.pod("later", namespace, node="a"))
    until(lambda: "later" in pair.pods(), "what happened after the end of the first", TAKEOVER_SECONDS)
    assert "pod INSERT" in {each.removeprefix("monitoring_") for each in pair.written("second")}


def test_another_process_goes_on_at_once_where_one_was_told_to_end(
    plane: ControlPlane, namespace: str, pair: Pair, first: Server
) -> None:
    second(pair)
    assert first.process is not None
    first.process.send_signal(signal.SIGTERM)
    plane.api.create(things.pod("later", namespace, node="a"))
    until(lambda: "later" in pair.pods(), "a pod of after the end", PATIENCE_SECONDS)
    assert first.process.wait(servers.STOP_SECONDS) == 0


def test_a_process_that_was_thought_dead_writes_nothing_any_more(
    plane: ControlPlane, namespace: str, pair: Pair, first: Server
) -> None:
    """Stopped, as a machine that is frozen: it is there, so nobody sees it gone, and it is continued in the middle of its work."""
    second(pair)
    assert first.process is not None
    first.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)  # what was on its way to the database arrived
    stopped = pair.last()
    plane.api.create(things.pod("one", namespace, node="a"))
    until(lambda: "one" in pair.pods(), "a pod that the second saw", TAKEOVER_SECONDS)
    # Waits in the first one's sockets, to be written when it goes on.
    plane.api.delete(f"/api/v1/namespaces/{namespace}/pods/one")
    until(lambda: pair.pods() == [], "a pod that is gone")
    first.process.send_signal(signal.SIGCONT)
    until(lambda: "watch.lease-lost" in first.written(), "a watcher that knows that it lost")
    plane.api.create(things.pod("two", namespace, node="a"))
    until(lambda: pair.pods() == ["two"], "a pod that the second saw")
    assert pair.written("first", since=stopped) == []


def test_a_process_that_was_stopped_within_a_transaction_holds_up_nobody(
    plane: ControlPlane, namespace: str, pair: Pair, first: Server
) -> None:
    """What it locked there, the lease's row above all, PostgreSQL takes from it."""
    second(pair)
    stop_within_a_transaction(plane, namespace, pair, first)
    stopped, holder = pair.last(), pair.holder()  # nothing is on its way any more
    plane.api.create(things.pod("later", namespace, node="a"))
    until(lambda: pair.holder() not in ("", holder), "another holder of the lease", TAKEOVER_SECONDS)
    until(lambda: "later" in pair.pods(), "a pod that the second saw")
    assert first.process is not None
    first.process.send_signal(signal.SIGCONT)
    until(lambda: "watch.lease-lost" in first.written(), "a watcher that knows that it lost")
    assert pair.written("first", since=stopped) == []


def stop_within_a_transaction(plane: ControlPlane, namespace: str, pair: Pair, server: Server) -> None:
    """Pods come while it is stopped again and again, until that was in the middle of a write."""
    within = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'first' AND state = 'idle in transaction'"
    assert server.process is not None
    for turn in range(100):
        many = [things.pod(f"busy-{turn}-{each}", namespace, node="a") for each in range(50)]
        asyncio.run(bulk.create(plane.api, many))
        time.sleep(0.03 * (turn % 10))
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)  # what is on its way to the database arrives
        if pair.number(within):
            return
        server.process.send_signal(signal.SIGCONT)
    pytest.fail("the first was never stopped within a transaction")
