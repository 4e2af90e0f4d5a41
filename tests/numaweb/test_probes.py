"""/healthz, /readyz, /version and /metrics: for machines, without sign-in."""

import socket
import threading
from collections.abc import Iterator

import pytest
from django.db import DatabaseError
from django.test import Client
from pytest_django.fixtures import Settings

from numaweb import __version__, probes


@pytest.fixture
def nobody(db: None) -> Client:
    return Client()


def test_it_lives(nobody: Client) -> None:
    assert nobody.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version", "/metrics"])
def test_no_cache_keeps_an_answer_and_no_browser_guesses_its_type(nobody: Client, path: str) -> None:
    answer = nobody.get(path)
    assert answer["Cache-Control"] == "no-store"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_it_is_ready_and_names_each_part(nobody: Client) -> None:
    answer = nobody.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["parts"] == {"database": "ok", "migrations": "ok", "hot store": "ok"}


def test_it_names_the_part_that_is_away_and_not_its_address(nobody: Client, settings: Settings) -> None:
    settings.REDIS_URL = "redis://:hunter2@127.0.0.1:1/0"
    answer = nobody.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["redis"] == "cannot be reached (ConnectionError)"
    assert answer.json()["parts"]["database"] == "ok"
    assert b"hunter2" not in answer.content
    assert b"127.0.0.1" not in answer.content


def test_it_is_not_ready_while_the_database_is_away(nobody: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise DatabaseError("password=hunter2 host=db.example")

    monkeypatch.setitem(probes.PARTS, "database", fail)
    answer = nobody.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["database"]) == (
        503,
        "cannot be reached (DatabaseError)",
    )


def test_it_is_not_ready_before_migrations(nobody: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    more = probes.known_migrations() | {("monitoring", "9998_soon"), ("policies", "9999_later")}
    monkeypatch.setattr(probes, "known_migrations", lambda: more)
    parts = nobody.get("/readyz").json()["parts"]
    assert parts["migrations"] == "2 migrations are not applied: run manage.py migrate"


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of somebody who takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_part_that_hangs_keeps_nobody_waiting(
    nobody: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    monkeypatch.setattr(probes, "REDIS_SECONDS", 3600.0)
    settings.REDIS_URL = f"redis://127.0.0.1:{silent}/0"
    before = threading.active_count()
    answers = [nobody.get("/readyz") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503] * 3
    for answer in answers:
        assert answer.json()["parts"] == {
            "database": "ok",
            "migrations": "ok",
            "redis": f"does not answer within {probes.READY_SECONDS:g} s",
            "hot store": "ok",
        }
    assert threading.active_count() == before + 1, "each question that hangs would keep a thread"


def test_it_speaks_plainly_to_whoever_wants_text(nobody: Client, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = nobody.get("/readyz", headers={"Accept": "text/plain"})
    assert (answer.status_code, answer["Content-Type"]) == (503, "text/plain; charset=utf-8")
    assert answer.content.decode().splitlines() == [
        "not ready",
        "database: ok",
        "migrations: ok",
        "redis: cannot be reached (ConnectionError)",
        "hot store: ok",
    ]


def test_it_tells_its_version(nobody: Client, settings: Settings) -> None:
    settings.NUMAWEB_COMMIT = "abc123"
    assert nobody.get("/version").json() == {"version": __version__, "commit": "abc123"}


def test_it_serves_its_own_numbers(nobody: Client, settings: Settings) -> None:
    nobody.get("/accounts/login/")
    answer = nobody.get("/metrics")
    text = answer.content.decode()
    assert answer["Content-Type"].startswith("text/plain")
    assert 'numaweb_http_requests_total{method="GET",status="200",view="login"}' in text
    assert f'numaweb_build_info{{version="{__version__}"}} 1.0' in text
    assert settings.SECRET_KEY not in text


def test_it_serves_openmetrics_to_whoever_asks(nobody: Client) -> None:
    answer = nobody.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    assert answer.content.endswith(b"# EOF\n")


def test_it_answers_by_any_host_and_without_tls(nobody: Client, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["numa.example.org"]
    settings.SECURE_SSL_REDIRECT = True
    assert nobody.get("/healthz", headers={"Host": "10.0.0.7:30881"}).status_code == 200


def test_it_is_only_for_reading(nobody: Client) -> None:
    assert nobody.post("/healthz").status_code == 404
