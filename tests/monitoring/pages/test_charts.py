"""Charts are figures that Plotly takes, and gaps stay gaps."""

from datetime import UTC, datetime, timedelta

import plotly.graph_objects
import pytest
from django.utils import timezone

from monitoring.figures import charts
from monitoring.selectors import Series

START = datetime(2026, 1, 1, tzinfo=UTC)


def series(**values: list[float | None]) -> Series:
    size = len(next(iter(values.values())))
    times = [START + timedelta(seconds=10 * step) for step in range(size)]
    return Series(times, {name.removeprefix("n"): row for name, row in values.items()}, 10, "store")


@pytest.mark.parametrize("metric", list(charts.TITLES))
def test_it_makes_a_figure_that_plotly_takes(metric: str) -> None:
    made = charts.chart(metric, series(n0=[0.1, None, 0.3], n8=[0.2, 0.2, 0.2]))
    plotly.graph_objects.Figure(made)


def test_it_leaves_gaps() -> None:
    (line,) = charts.chart("busy", series(n0=[0.1, None, 0.3]))["data"]
    assert line["y"] == [0.1, None, 0.3]
    assert line["connectgaps"] is False
    assert (line["x0"], line["dx"]) == ("2026-01-01T00:00:00+00:00", 10_000)


def test_it_draws_a_line_for_each_numa_node() -> None:
    made = charts.chart("busy", series(n0=[0.1], n1=[0.2], n16=[0.3]))
    assert [line["name"] for line in made["data"]] == ["NUMA 0", "NUMA 1", "NUMA 16"]
    assert len({line["line"]["color"] for line in made["data"]}) == 3


def test_it_tells_more_lines_apart_than_it_has_colours() -> None:
    rows: dict[str, list[float | None]] = {f"n{each}": [0.1] for each in range(20)}
    made = charts.chart("busy", series(**rows))
    looks = {(line["line"]["color"], line["line"]["dash"]) for line in made["data"]}
    assert len(looks) == 20


def test_it_shows_memory_in_gibibytes() -> None:
    (line,) = charts.chart("memory_used", series(n0=[3.0 * 1024**3]))["data"]
    assert line["y"] == [3.0]


def test_moments_are_written_in_the_zone_of_the_pages() -> None:
    with timezone.override("Asia/Shanghai"):
        (line,) = charts.chart("busy", series(n0=[0.1]))["data"]
        (longer,) = charts.chart("busy", series(n0=[0.1, 0.2]))["data"]
    assert line["x"] == ["2026-01-01T08:00:00+08:00"]
    assert longer["x0"] == "2026-01-01T08:00:00+08:00"


@pytest.mark.parametrize(
    ("days", "count", "listed"),
    [(1, 48, True), (1, 13, False), (30, 13, True), (9, 40, True)],
    ids=[
        "a day later it is summer",
        "before that",
        "a year, in which clocks go forward and back",
        "summer comes in the second half",
    ],
)
def test_every_moment_is_named_where_clocks_change_in_between(days: int, count: int, listed: bool) -> None:
    """Berlin's clocks went forward on 29 March 2026, at 1:00 in universal time."""
    start = datetime(2026, 3, 28, 12, tzinfo=UTC) - timedelta(days=0 if days == 1 else 45)
    step = timedelta(hours=1) if days == 1 else timedelta(days=days)
    times = [start + each * step for each in range(count)]
    with timezone.override("Europe/Berlin"):
        told = charts.moments(times)
    assert ("x" in told) is listed
    if listed:
        assert len(told["x"]) == count
        assert {text[-6:] for text in told["x"]} == {"+01:00", "+02:00"}


def test_every_moment_is_named_where_steps_differ() -> None:
    times = [START, START + timedelta(seconds=10), START + timedelta(seconds=30)]
    assert len(charts.moments(times)["x"]) == 3
    assert charts.moments([]) == {"x": []}


def test_it_offers_the_ranges_of_the_console() -> None:
    assert list(charts.RANGES) == ["10m", "30m", "1h", "3h", "6h", "1d", "3d", "7d", "14d"]
