"""/metrics tells how the whole installation stands, in Prometheus's own form, and to whom it may."""

import subprocess
import threading
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

from monitoring import services
from monitoring.models import Connection, Endpoint, WatchHealth
from numaweb import gauges
from policies.models import Rollout
from tests import servers

WHEN = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def scene(transactional_db: None) -> None:
    """Committed: numbers are read over connections of their own."""
    cluster = services.ensure_cluster(
        "secret-name", "Secret name", "kubernetes", [f"http://10.9.8.{n}:9797" for n in range(3)]
    )
    first, second, _ = Endpoint.objects.order_by("url")
    Endpoint.objects.filter(pk=first.pk).update(state="ok", last_ok=WHEN)
    Endpoint.objects.filter(pk=second.pk).update(state="failing", last_ok=WHEN.replace(hour=9))
    connection = Connection.objects.create(cluster=cluster, state="ok", last_ok=WHEN)
    WatchHealth.objects.create(connection=connection, resource="pods", state="forbidden", since=WHEN)
    Rollout.objects.create(
        cluster=cluster, level="cluster", version=1, state="paused", made=WHEN, changed=WHEN
    )


def values(client: Client) -> dict[tuple[str, str], float]:
    """By name and the labels' values."""
    text = client.get("/metrics").content.decode()
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.usefixtures("scene")
def test_it_counts_by_state_and_a_state_without_any_is_0(client: Client) -> None:
    told = values(client)
    assert [told["numaweb_exporters", state] for state in ("new", "ok", "failing")] == [1, 1, 1]
    assert told["numaweb_connections", "ok"] == 1
    assert [told["numaweb_watches", state] for state in ("forbidden", "watching")] == [1, 0]
    assert [told["numaweb_rollouts", state] for state in ("paused", "running")] == [1, 0]
    assert told["numaweb_exporter_answer_timestamp_seconds", "newest"] == WHEN.timestamp()
    assert told["numaweb_exporter_answer_timestamp_seconds", "oldest"] == WHEN.replace(hour=9).timestamp()


@pytest.mark.django_db
def test_what_never_was_has_no_time(client: Client) -> None:
    assert ("numaweb_exporter_answer_timestamp_seconds", "newest") not in values(client)


@pytest.mark.usefixtures("scene")
def test_it_names_nobody(client: Client) -> None:
    text = client.get("/metrics").content.decode()
    assert "ecret" not in text
    assert "10.9.8" not in text


@pytest.mark.usefixtures("scene")
def test_a_part_that_fails_or_hangs_is_left_out_and_said(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ever = threading.Event()

    def hangs() -> list[object]:
        ever.wait()
        return []

    def fails() -> None:
        raise DatabaseError

    monkeypatch.setattr(gauges, "SECONDS", 0.3)
    monkeypatch.setitem(gauges.PARTS, "exporters", fails)
    monkeypatch.setitem(gauges.PARTS, "watcher", hangs)
    told = values(client)
    ever.set()
    assert [told["numaweb_gauges_up", part] for part in ("exporters", "watcher")] == [0, 0]
    assert ("numaweb_exporters", "ok") not in told
    assert "numaweb_http_requests_total" in {name for name, _ in told}


def test_a_token_closes_it(client: Client, settings: Settings, db: None) -> None:
    settings.NUMAWEB_METRICS_TOKEN = "of-prometheus"
    refused = [
        client.get("/metrics"),
        client.get("/metrics", headers={"Authorization": "Bearer of-somebody"}),
    ]
    assert [answer.status_code for answer in refused] == [401, 401]
    assert b"numaweb_http" not in refused[0].content
    assert client.get("/metrics", headers={"Authorization": "Bearer of-prometheus"}).status_code == 200


@pytest.mark.usefixtures("scene")
def test_prometheus_own_tool_has_nothing_to_say_against_it(client: Client) -> None:
    client.get("/accounts/login/")
    promtool = servers.program("promtool")
    text = client.get("/metrics").content
    done = subprocess.run([str(promtool), "check", "metrics"], input=text, capture_output=True)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")
