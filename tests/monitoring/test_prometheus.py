"""Prometheus as a source of history: asked within bounds, distrusted, and its failure told while the own store answers."""

import asyncio
import gzip
import json
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest
from pytest_django.fixtures import Settings

from monitoring import history, hot, selectors
from monitoring.history import NodeSample
from monitoring.history.metrics import METRICS, MISSING, PER_NUMA, stored
from monitoring.models import Cluster, Node, Topology
from monitoring.selectors import timeline
from monitoring.sources.failures import SourceError
from monitoring.sources.prometheus import Prometheus, escaped, selector
from tests.monitoring import exporters
from tests.monitoring.exporters import Talk

HERE = frozenset({"127.0.0.1"})


def reply(body: bytes, status: str = "200 OK", head: bytes = b"") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n%b" % (status.encode(), len(body), head, body)


def series(*rows: tuple[dict[str, str], list[tuple[float, str]]]) -> bytes:
    result = [{"metric": labels, "values": values} for labels, values in rows]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


class Asked:
    """A Prometheus that answers by a rule and remembers what it was asked."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.questions: list[tuple[str, dict[str, list[str]], str]] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length")
        )
        body = (await reader.readexactly(length)).decode()
        self.questions.append((head.split(" ")[1], parse_qs(body), head))
        writer.write(self.raw)
        await writer.drain()
        writer.close()


def test_it_asks_for_a_range_and_reads_numbers() -> None:
    asked = Asked(reply(series(({"numa_node": "0"}, [(10, "0.5"), (20, "NaN"), (30, "+Inf"), (40, "x")]))))
    with exporters.server(asked.talk) as url:
        [found] = Prometheus(url + "/base/", "secret", allowed=HERE).range("up", 10, 40, 10)
    assert found.labels == {"numa_node": "0"}
    assert found.points == [(10, 0.5), (20, None), (30, None), (40, None)]
    path, form, head = asked.questions[0]
    assert path == "/base/api/v1/query_range"
    assert (form["query"], form["step"]) == (["up"], ["10"])
    assert "Authorization: Bearer secret" in head


def test_it_asks_for_the_present_and_takes_packed_answers() -> None:
    body = json.dumps(
        {"status": "success", "data": {"result": [{"metric": {}, "value": [1.0, "7"]}]}}
    ).encode()
    asked = Asked(reply(gzip.compress(body), head=b"Content-Encoding: gzip\r\n"))
    with exporters.server(asked.talk) as url:
        [found] = Prometheus(url, allowed=HERE).instant("up")
    assert found.points == [(1.0, 7.0)]


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


async def drop_by_drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


BOMB = gzip.compress(b" " * (64 << 20))


@pytest.mark.parametrize(
    ("talk", "remedy", "cause"),
    [
        (silent, "check-network", "within"),
        (drop_by_drop, "check-network", "within"),
        (endless, "check-exporter", "more than"),
        (exporters.answering(reply(BOMB, head=b"Content-Encoding: gzip\r\n")), "check-exporter", "unpacks"),
        (
            exporters.answering(reply(b"", "302 Found", b"Location: http://169.254.169.254/\r\n")),
            "use-final-address",
            "redirects",
        ),
        (exporters.answering(reply(b"", "401 Unauthorized")), "set-token", "refuses"),
        (exporters.answering(reply(b"oops", "500 Internal Server Error")), "see-exporter-log", "500"),
        (exporters.answering(reply(b"<html>")), "check-address", "no Prometheus"),
        (exporters.answering(b"SSH-2.0-x\r\n"), "check-exporter-runs", ""),
        (
            exporters.answering(
                reply(b'{"status":"error","error":"parse\\n' + b"x" * 900 + b'"}', "400 Bad Request")
            ),
            "see-exporter-log",
            "Prometheus says: parse x",
        ),
    ],
)
def test_it_refuses(talk: Talk, remedy: str, cause: str) -> None:
    started = time.monotonic()
    with exporters.server(talk) as url, pytest.raises(SourceError) as caught:
        Prometheus(url, allowed=HERE, seconds=1.0).instant("up")
    assert caught.value.remedy == remedy
    assert cause in str(caught.value)
    assert len(str(caught.value)) < 300
    assert time.monotonic() - started < 8


def test_it_tells_that_nobody_listens() -> None:
    with exporters.server(silent) as url:
        pass
    with pytest.raises(SourceError) as caught:
        Prometheus(url, allowed=HERE).instant("up")
    assert caught.value.remedy == "check-exporter-runs"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9090", "http://localhost:9090", "http://169.254.169.254", "http://[::1]"]
)
def test_it_never_asks_its_own_machine_unless_allowed(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        Prometheus(url).instant("up")
    assert caught.value.remedy == "fix-address"


def test_it_never_asks_its_own_database_or_redis() -> None:
    denied = frozenset({("localhost", 5432), ("redis.internal.invalid", 6379)})
    with pytest.raises(SourceError, match="database"):
        Prometheus("http://127.0.0.1:5432", allowed=HERE, denied=denied).instant("up")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://user:pw@prometheus", "prometheus:9090"])
def test_it_refuses_other_addresses(url: str) -> None:
    with pytest.raises(SourceError):
        Prometheus(url)


def test_it_escapes_what_stands_in_a_label() -> None:
    assert escaped('a"b\\c\nd') == 'a\\"b\\\\c\\nd'
    assert selector("up", {"node": 'x"} or up{a="'}) == 'up{node="x\\"} or up{a=\\""}'


# The history of a node -----------------------------------------------------------------------------------------


@pytest.fixture
def node(db: None) -> Node:
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    topology = Topology.objects.create(hash="t", document=b"{}", cpus=2, numa_nodes=1, sockets=1)
    now = datetime.now(UTC)
    return Node.objects.create(
        cluster=cluster, name="n1", topology=topology, slot=0, first_seen=now, last_seen=now
    )


def window() -> tuple[datetime, datetime]:
    end = datetime.fromtimestamp(int(time.time()) // 60 * 60, UTC)
    return end - timedelta(minutes=5), end


def keep(node: Node, at: datetime, busy: float) -> None:
    rows = [[stored(METRICS["busy"], busy)], *([[MISSING]] * (len(PER_NUMA) - 1))]
    history.write_journal(0, int(at.timestamp()), [NodeSample(node.pk, (0,), rows, (0,))])


def test_it_takes_history_from_prometheus_where_one_is_configured(node: Node, settings: Settings) -> None:
    start, end = window()
    answer = series(
        ({"numa_node": "1"}, [(start.timestamp() + 60, "0.25")]),
        ({"numa_node": "0"}, [(start.timestamp(), "0.5")]),
    )
    asked = Asked(reply(answer))
    with exporters.server(asked.talk) as url:
        settings.NUMAWEB_PROMETHEUS_URL = url
        found = selectors.history(node, "busy", start, end, 6)
    assert (found.source, found.error, found.resolution) == ("prometheus", "", 60)
    assert found.values == {
        "0": [0.5, None, None, None, None, None],
        "1": [None, 0.25, None, None, None, None],
    }
    assert found.times[1] == start + timedelta(minutes=1)
    assert asked.questions[0][1]["query"] == ['max by (numa_node) (numa_node_cpu_usage{node="n1"})']


def test_it_takes_the_own_store_and_tells_why_prometheus_did_not_answer(
    node: Node, settings: Settings
) -> None:
    start, end = window()
    keep(node, start, 0.75)
    asked = Asked(reply(b"", "500 Internal Server Error"))
    with exporters.server(asked.talk) as url:
        settings.NUMAWEB_PROMETHEUS_URL = url
        first = selectors.history(node, "busy", start, end)
        second = selectors.history(node, "busy", start, end)
    assert (first.source, first.values["0"][0]) == ("store", 0.75)
    assert "500" in first.error
    assert second.error == first.error
    assert len(asked.questions) == 1  # left alone for a while
    assert not hot.store().notes()["prometheus"].ok


def test_it_takes_the_own_store_where_prometheus_knows_nothing(node: Node, settings: Settings) -> None:
    start, end = window()
    keep(node, start, 0.75)
    with exporters.server(Asked(reply(series())).talk) as url:
        settings.NUMAWEB_PROMETHEUS_URL = url
        found = selectors.history(node, "busy", start, end)
    assert (found.source, found.error) == ("store", "")


def test_it_asks_no_loopback_address_that_was_entered_in_the_administration(
    node: Node, settings: Settings
) -> None:
    start, end = window()
    asked = Asked(reply(series()))
    with exporters.server(asked.talk) as url:
        row = selectors.settings()
        row.prometheus_url = url
        row.save()
        found = selectors.history(node, "busy", start, end)
        assert "NUMAWEB_PROMETHEUS_ALLOW" in found.error
        settings.NUMAWEB_PROMETHEUS_ALLOW = ["127.0.0.1"]
        hot.stores.store.cache_clear()
        assert selectors.history(node, "busy", start, end).error == ""
    assert len(asked.questions) == 1


def test_it_needs_no_prometheus(node: Node) -> None:
    start, end = window()
    keep(node, start, 0.75)
    found = selectors.history(node, "busy", start, end)
    assert (found.source, found.resolution, found.error) == ("store", 10, "")
    with pytest.raises(KeyError):
        selectors.history(node, "phase of the moon", start, end)


def test_it_shows_minutes_where_detail_is_forgotten(node: Node) -> None:
    end = datetime.now(UTC) - timedelta(days=2)
    assert selectors.history(node, "busy", end - timedelta(minutes=5), end).resolution == 60
    end = datetime.now(UTC) - timedelta(days=20)
    assert selectors.history(node, "busy", end - timedelta(minutes=30), end).resolution == 900


def test_it_has_a_query_for_every_metric_that_pages_show() -> None:
    for name, query in timeline.QUERIES.items():
        text = timeline.promql(query, 'n"1', 15)
        assert name in METRICS
        assert 'node="n\\"1"' in text
