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
    assert line["x"][1] == "2026-01-01T00:00:10+00:00"


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
    assert line["x"] == ["2026-01-01T08:00:00+08:00"]


def test_it_offers_the_ranges_of_the_console() -> None:
    assert list(charts.RANGES) == ["10m", "30m", "1h", "3h", "6h", "1d", "3d", "7d", "14d"]
