"""History of a node's figures: what is asked, how fine, and refusals that name the parameter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from monitoring.models import Settings
from tests.monitoring.api.conftest import Get
from tests.monitoring.api.inventory import Lab


def test_an_hour_is_shown_where_nothing_is_asked(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-1/history/")
    start, end = datetime.fromisoformat(found["start"]), datetime.fromisoformat(found["end"])
    assert end - start == timedelta(hours=1)
    assert (found["metric"], found["unit"], found["source"], found["error"]) == (
        "busy",
        "share",
        "store",
        None,
    )
    assert all(len(each) == len(found["times"]) for each in found["series"].values())


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("memory_used", "bytes"),
        ("pinned", "CPUs"),
        ("remote_pages_rate", "pages per second"),
        ("crossing", "containers"),
    ],
)
def test_each_metric_has_its_unit(get: Get, lab: Lab, metric: str, unit: str) -> None:
    assert get(f"nodes/worker-1/history/?metric={metric}")["unit"] == unit


def test_a_span_is_bounded_by_now_and_by_what_is_kept(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-1/history/?start=1990-01-01T00:00:00Z&end=2190-01-01T00:00:00Z&points=50")
    assert abs(datetime.fromisoformat(found["end"]) - timezone.now()) < timedelta(minutes=1)
    assert datetime.fromisoformat(found["start"]) > timezone.now() - timedelta(days=401)
    assert len(found["times"]) <= 50


@pytest.mark.parametrize(
    "moment", ["2025-11-30T08:00:00Z", "2025-11-30T08:00:00", "2025-11-30 16:00:00%2B08:00"]
)
def test_moments_have_a_zone_or_are_utc(get: Get, lab: Lab, moment: str) -> None:
    Settings.objects.create(pk=1, quarter_days=3660)
    found = get(f"nodes/worker-1/history/?start={moment}&end=2025-12-01T00:00:00Z")
    assert datetime.fromisoformat(found["start"]) == datetime(2025, 11, 30, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("metric=colour", "metric"),
        ("metric=busy%00", "metric"),
        ("start=yesterday", "start"),
        ("start=2026-13-01T00:00:00Z", "start"),
        ("start=", "start"),
        ("end=9999-12-31T23:59:59Z", "end"),
        ("start=0001-01-01T00:00:00Z", "start"),
        ("start=2025-01-02T00:00:00Z&end=2025-01-01T00:00:00Z", "start"),
        ("start=2190-01-01T00:00:00Z", "start"),
        ("points=1", "points"),
        ("points=2001", "points"),
        ("points=1e3", "points"),
        ("step=5", "step"),
    ],
)
def test_a_wrong_parameter_is_named(get: Get, lab: Lab, query: str, parameter: str) -> None:
    assert parameter in get(f"nodes/worker-1/history/?{query}", 400)["errors"]


def test_an_unknown_node_has_no_history(get: Get, lab: Lab) -> None:
    assert "no current node" in get("nodes/worker-9/history/", 404)["detail"]
