"""The doctor: it finds what is wrong, says what to do, changes nothing, and says what it cannot see."""

import json
import re
import socket
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import DatabaseError
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring import services
from monitoring.models import Connection, Endpoint, Lease
from numaweb import doctor, probes
from numaweb.doctor import around, stores
from policies.models import OrderKey
from tests.monitoring import exporters as played

pytestmark = pytest.mark.django_db


def found(part: str) -> list[tuple[str, str]]:
    """State and text of what it says of one part."""
    return [(each.state, each.text) for each in doctor.PARTS[part]()]


def run(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def one_answers() -> Iterator[list[Endpoint]]:
    with played.fleet(1) as fleet:
        cluster = services.ensure_cluster("east", "East", "plain", [*fleet.urls, "http://127.0.0.1:1"])
        yield list(Endpoint.objects.filter(cluster=cluster).order_by("pk"))


def test_a_new_installation_has_nothing_that_failed(settings: Settings) -> None:
    code, text = run()
    assert code == 0, text
    assert "database: ok: It can be written to." in text
    assert "clusters: not checked: No cluster has a connection to Kubernetes." in text
    assert not Lease.objects.exists()
    assert not OrderKey.objects.exists(), "a doctor makes no key"


@pytest.mark.usefixtures("one_answers")
def test_it_tells_which_exporters_do_not_answer_and_why() -> None:
    told = list(doctor.PARTS["exporters"]())
    assert (told[0].state, told[0].text) == (
        "warning",
        "east: 1 of 2 exporters that were asked answer (2 in all).",
    )
    [failed] = [each for each in told if each.state == "failed"]
    assert "http://127.0.0.1:1" in failed.text
    assert failed.remedy
    assert ("ok", "east: the exporters' clocks are within 2 s of this machine's.") in found("exporters")
    assert set(Endpoint.objects.values_list("state", flat=True)) == {"new"}, "it writes nothing down"


def test_a_clock_that_is_wrong_is_told() -> None:
    ahead = datetime.now(UTC).timestamp() + 90
    with played.fleet(1, clock=lambda: ahead) as fleet:
        services.ensure_cluster("east", "East", "plain", fleet.urls)
        text = " ".join(text for state, text in found("exporters") if state == "warning")
    assert "clocks differ from this machine's" in text
    assert re.search(r"\+[5-9]\d\.\d s", text)


def test_it_ends_with_1_and_a_remedy_where_something_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    more = probes.known_migrations() | {("monitoring", "9998_soon")}
    monkeypatch.setattr(probes, "known_migrations", lambda: more)
    code, text = run()
    assert code == 1
    assert "database: failed: 1 migrations are not applied" in text
    code, text = run("--json")
    document = json.loads(text)
    assert (code, document["ok"]) == (1, False)
    assert {"part": "database", "state": "failed", "remedy": "Run manage.py migrate."}.items() <= next(
        each for each in document["findings"] if each["state"] == "failed"
    ).items()


def test_it_goes_on_where_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise DatabaseError("password=hunter2")

    monkeypatch.setattr(probes, "check_database", away)
    monkeypatch.setitem(doctor.PARTS, "clusters", away)
    code, text = run()
    assert code == 1
    assert "database: failed: It cannot be reached: DatabaseError" in text
    assert "clusters: not checked: Could not be looked at, because the database fails" in text
    assert "node: " in text
    assert "hunter2" not in text


def test_it_speaks_the_readers_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "zh_CN:en")
    text = run()[1]
    assert "database: 正常: 可以写入。" in text
    monkeypatch.setenv("LANGUAGE", "en")
    assert "database: ok: It can be written to." in run()[1]


def test_a_secret_that_no_key_opens_is_told(settings: Settings) -> None:
    services.ensure_cluster(
        "east", "East", "plain", [services.EndpointSpec("http://10.0.0.1:9797", token="hush")]
    )
    assert found("secrets")[0] == ("ok", "1 stored secret can be read.")
    settings.SECRET_KEY = "another-key" * 6
    state, text = found("secrets")[0]
    assert (state, text) == ("failed", "1 stored secret cannot be read: monitoring.endpoint.token.")


def test_an_api_server_that_does_not_answer_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = services.ensure_cluster("east", "East", "kubernetes")
    row = Connection.objects.create(
        cluster=cluster, source="token", server="https://127.0.0.1:1", token="hush-token", ca=""
    )
    [finding] = doctor.PARTS["clusters"]()
    assert finding.state == "failed"
    assert finding.text.startswith("east: its API server cannot be asked")
    assert finding.remedy
    assert "hush" not in str(finding)
    Connection.objects.filter(pk=row.pk).update(source="in-cluster", state="ok")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    [finding] = doctor.PARTS["clusters"]()
    assert finding.state == "unchecked", "only its own pod may ask"
    assert "its watcher says: answers" in finding.text


def test_it_tells_when_nobody_collects() -> None:
    services.ensure_cluster("east", "East", "plain", ["http://127.0.0.1:1"])
    assert found("work")[0][0] == "failed"
    Endpoint.objects.update(last_try=timezone.now())
    assert found("work")[0][0] == "ok"


def test_redis_that_is_away_is_told_without_its_password(settings: Settings) -> None:
    settings.REDIS_URL = "redis://:hunter2@127.0.0.1:1/0"
    [(state, text)] = found("redis")
    assert (state, text) == ("failed", "It cannot be reached: ConnectionError")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine's files, below a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        monkeypatch.setattr(around, "ROOT", Path(folder))
        yield Path(folder)


def listen(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def test_it_sees_containerd_and_nri_on_a_node_and_says_where_it_cannot(machine: Path) -> None:
    assert [state for state, _ in found("node")] == ["unchecked"]
    (machine / "var/lib/kubelet").mkdir(parents=True)
    assert [state for state, _ in found("node")] == ["warning"]
    listen(machine / "run/containerd/containerd.sock")
    assert found("node") == [
        ("ok", "containerd listens."),
        ("warning", "NRI is off: there is no socket in /run/nri."),
    ]
    listen(machine / "run/nri/nri.sock")
    assert [state for state, _ in found("node")] == ["ok", "ok"]


@pytest.mark.parametrize(("ahead", "state"), [(0.5, "ok"), (30.0, "warning"), (-30.0, "warning")])
def test_the_databases_clock_counts(ahead: float, state: str) -> None:
    assert stores.clock("database", datetime.now(UTC).timestamp() + ahead).state == state
