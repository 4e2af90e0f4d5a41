"""A node's history by metric: from Prometheus where one is configured and answers, else from the own store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from django.conf import settings as project

from monitoring import history as store
from monitoring import hot
from monitoring.history import reading, spans
from monitoring.models import Node
from monitoring.selectors import configuration
from monitoring.sources import prometheus
from monitoring.sources.failures import SourceError
from monitoring.sources.prometheus import Prometheus
from monitoring.sources.prometheus import Series as Found

QUIET_SECONDS = 15.0
"""A Prometheus that failed is left alone for so long: a page must not wait for its time-out again and again."""
NOTE = "prometheus"


class Series(msgspec.Struct, frozen=True):
    """`values[name][i]` at `times[i]`; None = a gap. Names: NUMA ids, or "node" for a metric of the whole node."""

    times: list[datetime]
    values: dict[str, list[float | None]]
    resolution: int
    """seconds"""
    source: Literal["store", "prometheus"]
    error: str = ""
    """Why Prometheus, which was to be asked, did not answer."""


class Query(msgspec.Struct, frozen=True):
    """How a metric is asked of Prometheus: over the exporter's metrics of this node."""

    metric: str
    labels: Mapping[str, str] = {}
    form: Literal["value", "rate", "count"] = "value"


QUERIES = {
    "busy": Query("numa_node_cpu_usage"),
    "pinned": Query("numa_node_cpus", {"state": "exclusive"}),
    "memory_used": Query("numa_node_memory_usage", {"state": "used"}),
    "memory_free": Query("numa_node_memory_usage", {"state": "free"}),
    "memory_file": Query("numa_node_memory_bytes", {"state": "file"}),
    "remote_pages_rate": Query("numa_node_numastat_pages_total", {"counter": "other_node"}, "rate"),
    "crossing": Query("numa_container_cross_numa", form="count"),
}


def history(node: Node, metric: str, start: datetime, end: datetime, max_points: int = 300) -> Series:
    """The history of one metric, as `histories` has it."""
    return histories(node, (metric,), start, end, max_points)[metric]


def histories(
    node: Node, metrics: Sequence[str], start: datetime, end: datetime, max_points: int = 300
) -> dict[str, Series]:
    """The history between two moments, by metric. Raises KeyError for a metric that is not kept.

    Each metric has its own source: one that Prometheus lacks, or does not answer, is read from the own store.
    """
    source = configured() if QUERIES.keys() & set(metrics) else None
    found: dict[str, Series] = {}
    errors: dict[str, str] = {}
    if source is not None:
        for metric in QUERIES.keys() & set(metrics):
            try:
                series = _asked(source, node, QUERIES[metric], start, end, max_points)
                if series.values:
                    found[metric] = series
            except SourceError as failure:
                errors[metric] = str(failure)
    rest = [metric for metric in metrics if metric not in found]
    return found | (_stored(node, rest, start, end, max_points, errors) if rest else {})


def configured() -> Prometheus | None:
    """The Prometheus to ask; None where none is configured, or it failed a moment ago. Raises nothing."""
    wanted = configuration.settings()
    # What stands in the environment was put there by whoever runs this process, who may point at the own machine.
    url = wanted.prometheus_url or project.NUMAWEB_PROMETHEUS_URL
    allowed = frozenset(project.NUMAWEB_PROMETHEUS_ALLOW)
    if not wanted.prometheus_url:
        allowed |= {"127.0.0.1", "::1"}
    try:
        return (
            Prometheus(url, wanted.prometheus_token, allowed=allowed, denied=own_services()) if url else None
        )
    except SourceError as error:
        _note(False, error.remedy, str(error))
        return None


def own_services() -> frozenset[tuple[str, int]]:
    """Host and port of this installation's database and Redis, which nobody may reach through us."""
    database = project.DATABASES["default"]
    found = {(str(database.get("HOST") or ""), int(database.get("PORT") or 5432))}
    if project.REDIS_URL:
        parts = urlsplit(project.REDIS_URL)
        found.add((parts.hostname or "", parts.port or 6379))
    return frozenset(pair for pair in found if pair[0])


def _asked(
    source: Prometheus, node: Node, query: Query, start: datetime, end: datetime, max_points: int
) -> Series:
    before = _notes().get(NOTE)
    if before is not None and not before.ok and time.time() - before.at < QUIET_SECONDS:
        raise SourceError(before.code, before.text)
    step = _step(start, end, max_points)
    try:
        found = source.range(promql(query, node.name, step), start.timestamp(), end.timestamp(), step)
    except SourceError as error:
        _note(False, error.remedy, str(error))
        raise
    _note(True)
    return _as_series(found, query, start, end, step)


def promql(query: Query, node: str, step: int) -> str:
    """The query over one node; every value is escaped."""
    chosen = prometheus.selector(query.metric, {"node": node, **query.labels})
    if query.form == "rate":
        return f"sum by (numa_node) (rate({chosen}[{max(60, 4 * step)}s]))"
    if query.form == "count":
        return f"count(max by (namespace, pod, container) ({chosen}) > 0) or vector(0)"
    return f"max by (numa_node) ({chosen})"


def _as_series(found: list[Found], query: Query, start: datetime, end: datetime, step: int) -> Series:
    first = int(start.timestamp())
    size = int((end.timestamp() - first) // step) + 1
    values: dict[str, list[float | None]] = {}
    for each in found:
        name = reading.NODE if query.form == "count" else each.labels.get("numa_node", "")
        row = values.setdefault(name, [None] * size)
        for at, value in each.points:
            place = round((at - start.timestamp()) / step)
            if 0 <= place < size:
                row[place] = value
    times = [datetime.fromtimestamp(first + i * step, UTC) for i in range(size)]
    ordered = dict(sorted(values.items(), key=lambda item: (len(item[0]), item[0])))
    return Series(times, ordered, step, "prometheus")


def _step(start: datetime, end: datetime, max_points: int) -> int:
    return max(1, -(-int((end - start).total_seconds()) // max(1, max_points - 1)))


def _stored(
    node: Node,
    metrics: Sequence[str],
    start: datetime,
    end: datetime,
    max_points: int,
    errors: Mapping[str, str],
) -> dict[str, Series]:
    wanted, now = configuration.settings(), datetime.now(UTC)
    finest = 1
    if start < now - timedelta(hours=wanted.detail_hours):
        finest = spans.MINUTES.step
    if start < now - timedelta(days=wanted.minute_days):
        finest = spans.QUARTERS.step
    moments = int(start.timestamp()), max(int(start.timestamp()) + 1, int(end.timestamp()))
    found = store.read_several(node.pk, metrics, *moments, max_points, finest)
    return {metric: _series(points, errors.get(metric, "")) for metric, points in found.items()}


def _series(points: store.Points, error: str) -> Series:
    times = [datetime.fromtimestamp(at, UTC) for at in points.times]
    return Series(times, points.values, points.step, "store", error)


def _notes() -> dict[str, hot.Note]:
    try:
        return hot.store().notes()
    except hot.StoreError:
        return {}


def _note(ok: bool, code: str = "", text: str = "") -> None:
    try:
        hot.store().note(NOTE, hot.Note(time.time(), ok, code, text))
    except hot.StoreError:
        return  # the note is for the component status, which says by itself that the store cannot be reached
