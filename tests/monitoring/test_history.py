"""Samples go through journal, chunks and roll-ups, come back at every resolution, and gaps stay gaps."""

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from monitoring import history
from monitoring.history import NodeSample, spans
from monitoring.history.metrics import METRICS, MISSING, PER_NUMA, stored
from monitoring.models import Cluster, HistoryChunk, HistoryJournal, Node, Topology

pytestmark = pytest.mark.django_db
START = datetime(2026, 1, 1, tzinfo=UTC)
T0 = 1_767_225_600  # a midnight
DAY = 86400


@pytest.fixture
def node() -> Node:
    return make("n1", 0)


def make(name: str, slot: int) -> Node:
    cluster, _ = Cluster.objects.get_or_create(slug="lab", defaults={"name": "Lab"})
    topology, _ = Topology.objects.get_or_create(
        hash="t", defaults={"document": b"{}", "cpus": 2, "numa_nodes": 2, "sockets": 1}
    )
    return Node.objects.create(
        cluster=cluster, name=name, topology=topology, slot=slot, first_seen=START, last_seen=START
    )


def sample(
    node: Node, busy: tuple[float | None, ...], ids: tuple[int, ...] = (0, 1), crossing: int = 1
) -> NodeSample:
    numbers = [stored(METRICS["busy"], value) for value in busy]
    rows = [numbers, numbers, *([[MISSING] * len(ids)] * (len(PER_NUMA) - 2))]
    return NodeSample(node.pk, ids, rows, (crossing,))


def fill(node: Node, start: int, end: int, busy: float = 0.5, step: int = 10) -> None:
    for at in range(start, end, step):
        history.write_journal(0, at, [sample(node, (busy, None))])


def test_it_reads_the_journal(node: Node) -> None:
    history.write_journal(0, T0, [sample(node, (0.25, None))])
    history.write_journal(0, T0 + 20, [sample(node, (0.75, 0.5))])
    found = history.read(node.pk, "busy", T0, T0 + 40, 100)
    assert found.times == [T0, T0 + 10, T0 + 20, T0 + 30]
    assert found.values == {"0": [0.25, None, 0.75, None], "1": [None, None, 0.5, None]}
    assert found.step == 10


def test_it_keeps_one_sample_of_an_interval_that_is_written_twice(node: Node) -> None:
    history.write_journal(0, T0, [sample(node, (0.25, None))])
    history.write_journal(0, T0, [sample(node, (0.75, None))])
    assert HistoryJournal.objects.count() == 1
    assert history.read(node.pk, "busy", T0, T0 + 10, 10).values["0"] == [0.75]


def test_it_reads_a_metric_of_the_whole_node(node: Node) -> None:
    history.write_journal(0, T0, [sample(node, (0.25, 0.5), crossing=3)])
    assert history.read(node.pk, "crossing", T0, T0 + 10, 10).values == {"node": [3.0]}


def test_it_reads_several_metrics_with_the_queries_of_one(
    node: Node, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    fill(node, T0, T0 + 600)
    history.compact(T0 + DAY)
    history.write_journal(0, T0 + 600, [sample(node, (0.25, None), crossing=3)])
    with CaptureQueriesContext(connection) as one:
        busy = history.read(node.pk, "busy", T0, T0 + 610, 100)
    with django_assert_num_queries(len(one)):
        both = history.read_several(node.pk, ("crossing", "busy"), T0, T0 + 610, 100)
    assert both["busy"] == busy
    assert busy.values["0"][-2:] == [0.5, 0.25]
    assert both["crossing"].values["node"][-1] == 3.0


def test_it_compacts_spans_that_are_over_and_nothing_else(node: Node) -> None:
    fill(node, T0, T0 + 700)
    assert history.compact(T0 + 620) == 0  # the grace for late writers
    assert history.compact(T0 + 640) == 1
    assert HistoryJournal.objects.count() == 10
    chunk = HistoryChunk.objects.get()
    assert (chunk.node, chunk.resolution, chunk.start) == (node, 10, T0)
    assert history.read(node.pk, "busy", T0, T0 + 700, 100).values["0"] == [0.5] * 70
    assert history.compact(T0 + 640) == 0


def test_it_adds_to_a_chunk_what_was_written_late(node: Node) -> None:
    fill(node, T0, T0 + 300)
    history.compact(T0 + 700)
    fill(node, T0 + 300, T0 + 600, busy=0.75)
    history.compact(T0 + 700)
    assert HistoryChunk.objects.count() == 1
    assert history.read(node.pk, "busy", T0, T0 + 600, 100).values["0"] == [0.5] * 30 + [0.75] * 30


def test_it_keeps_the_nodes_of_many_rows_apart(node: Node) -> None:
    others = [make(f"m{i}", 2 * i) for i in range(3)]
    for shard, each in enumerate((node, *others)):
        history.write_journal(shard % 2, T0, [sample(each, (each.pk / 100, None))]) if shard > 1 else None
    history.write_journal(0, T0 + 10, [sample(each, (0.5, None)) for each in (node, *others)])
    history.compact(T0 + DAY)
    assert HistoryChunk.objects.count() == 4
    assert history.read(others[2].pk, "busy", T0, T0 + 20, 10).values["0"] == [others[2].pk / 100, 0.5]


def test_it_follows_a_machine_that_gets_another_numa_node(node: Node) -> None:
    history.write_journal(0, T0, [sample(node, (0.25, 0.5))])
    history.write_journal(0, T0 + 10, [sample(node, (0.25, 0.5, 0.75), (0, 1, 4))])
    history.write_journal(0, T0 + 20, [sample(node, (0.25, 0.5, 1.0), (0, 2, 4))])
    for _ in range(2):
        values = history.read(node.pk, "busy", T0, T0 + 30, 10).values
        expected = {"0": [0.25] * 3, "1": [0.5, 0.5, None], "2": [None, None, 0.5], "4": [None, 0.75, 1.0]}
        assert values == expected
        history.compact(T0 + DAY)


def test_it_drops_the_samples_of_a_node_that_was_removed(node: Node) -> None:
    fill(node, T0, T0 + 600)
    node.delete()
    assert history.compact(T0 + DAY) == 1
    assert not HistoryJournal.objects.exists()
    assert not HistoryChunk.objects.exists()


def test_it_skips_a_row_that_cannot_be_read_and_keeps_the_others(node: Node) -> None:
    fill(node, T0, T0 + 30)
    HistoryJournal.objects.filter(at=T0 + 10).update(data=b"rubbish")
    history.compact(T0 + DAY)
    assert history.read(node.pk, "busy", T0, T0 + 30, 10).values["0"] == [0.5, None, 0.5]


def test_it_rolls_up_hours_and_days_that_are_over(node: Node) -> None:
    for hour in range(2):
        fill(node, T0 + hour * 3600, T0 + hour * 3600 + 1200, busy=0.25 + hour / 2)
        history.compact(T0 + hour * 3600 + 1300)
    now = T0 + 2 * 3600 + 700
    assert history.roll_up(now) == 2
    assert history.roll_up(now) == 0
    minutes = HistoryChunk.objects.filter(resolution=60).order_by("start")
    assert [row.start for row in minutes] == [T0, T0 + 3600]
    assert history.roll_up(T0 + DAY + 7200) == 1
    HistoryChunk.objects.filter(resolution=10).delete()
    found = history.read(node.pk, "busy", T0, T0 + 7200, 120)
    assert found.step == 60
    assert found.values["0"] == [0.25] * 20 + [None] * 40 + [0.75] * 20 + [None] * 40
    HistoryChunk.objects.filter(resolution=60).delete()
    coarse = history.read(node.pk, "busy", T0, T0 + 7200, 8)
    assert (coarse.step, coarse.values["0"]) == (900, [0.25, 0.25, None, None, 0.75, 0.75, None, None])


def test_it_shows_a_coarse_view_before_its_roll_up_is_made(node: Node) -> None:
    fill(node, T0, T0 + 1200)
    history.compact(T0 + 640)
    found = history.read(node.pk, "busy", T0, T0 + 3600, 60)
    assert found.step == 60
    assert found.values["0"] == [0.5] * 20 + [None] * 40


def test_it_weighs_all_of_a_coarse_interval_that_lies_in_two_chunks(node: Node) -> None:
    fill(node, T0, T0 + 600, busy=0.2)
    fill(node, T0 + 600, T0 + 900, busy=0.5)
    history.compact(T0 + DAY)
    found = history.read(node.pk, "busy", T0, T0 + 900, 1, finest=900)
    assert found.values["0"] == [pytest.approx(0.3)]


def test_it_thins_to_the_points_that_are_wanted(node: Node) -> None:
    fill(node, T0, T0 + 600)
    history.write_journal(0, T0 + 300, [sample(node, (0.9, None))])
    mean = history.read(node.pk, "busy", T0, T0 + 600, 10)
    highest = history.read(node.pk, "busy_max", T0, T0 + 600, 10)
    assert len(mean.times) == len(mean.values["0"]) == 10
    assert max(each or 0 for each in mean.values["0"]) < 0.6
    assert max(each or 0 for each in highest.values["0"]) == 0.9


def test_it_forgets_what_is_too_old_in_bounded_steps(node: Node) -> None:
    for start in range(T0, T0 + 6000, 600):
        HistoryChunk.objects.create(node=node, resolution=10, start=start, data=b"")
    HistoryChunk.objects.create(node=node, resolution=60, start=T0, data=b"")
    history.write_journal(0, T0, [sample(node, (0.5, None))])
    assert history.forget(T0 + 6000, {10: 3000, 60: DAY}) == 5
    assert HistoryChunk.objects.filter(resolution=60).exists()
    assert HistoryJournal.objects.exists()
    assert history.forget(T0 + 3 * DAY, {10: 3000, 60: DAY}) == 7
    assert not HistoryJournal.objects.exists()


def test_it_reads_in_a_bounded_number_of_questions(
    node: Node, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    fill(node, T0, T0 + 1200)
    history.compact(T0 + DAY)
    with django_assert_max_num_queries(4):
        history.read(node.pk, "busy", T0 - 400 * DAY, T0 + DAY, 300)


def test_it_works_with_another_length_of_samples(node: Node, settings: Settings) -> None:
    settings.NUMAWEB_HISTORY_STEP = 2
    fill(node, T0, T0 + 600, step=2)
    history.compact(T0 + DAY)
    assert history.read(node.pk, "busy", T0, T0 + 600, 300).values["0"] == [0.5] * 300
    assert spans.detail().points == 300
