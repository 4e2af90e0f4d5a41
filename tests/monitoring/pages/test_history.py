"""The stretch of the past that an address asks for, and what is said of one that there is not."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from monitoring.forms import SpanForm
from monitoring.models import Cluster

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGE = "/c/east/nodes/node-07/"


def errors(**query: str) -> dict[str, list[str]]:
    form = SpanForm({name.removesuffix("_"): value for name, value in query.items()}, NOW)
    assert form.span() is None
    return {name: [str(each) for each in found] for name, found in form.errors.items()}


def span(**query: str) -> tuple[datetime, datetime]:
    found = SpanForm({name.removesuffix("_"): value for name, value in query.items()}, NOW).span()
    assert found is not None
    return found.start, found.end


@pytest.mark.parametrize(("query", "hours"), [({}, 1), ({"range": "3h"}, 3), ({"range": "1d"}, 24)])
def test_a_named_range_ends_now(query: dict[str, str], hours: int) -> None:
    assert span(**query) == (NOW - timedelta(hours=hours), NOW)


def test_two_moments_take_the_place_of_a_named_range() -> None:
    asked = span(range="3h", from_="2026-02-01T08:00", to="2026-02-01T09:30:05")
    assert asked == (datetime(2026, 2, 1, 8, tzinfo=UTC), datetime(2026, 2, 1, 9, 30, 5, tzinfo=UTC))


def test_a_moment_may_name_its_zone() -> None:
    assert span(from_="2026-02-01T08:00+08:00", to="2026-02-01T08:00Z")[0] == datetime(2026, 2, 1, tzinfo=UTC)


def test_a_moment_without_a_zone_is_in_the_zone_of_the_pages() -> None:
    with timezone.override("Asia/Shanghai"):
        assert span(from_="2026-02-01T08:00")[0] == datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize("to", [{}, {"to": ""}, {"to": "2026-03-01T12:05"}])
def test_without_an_end_that_has_passed_it_ends_now(to: dict[str, str]) -> None:
    found = SpanForm({"from": "2026-03-01T11:00", **to}, NOW).span()
    assert found is not None
    assert found.end == NOW
    assert not found.over


def test_an_end_that_has_passed_is_told() -> None:
    found = SpanForm({"from": "2026-03-01T10:00", "to": "2026-03-01T11:00"}, NOW).span()
    assert found is not None
    assert found.over


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"range": "2h"}, "range", "There is no range “2h”. There are: 10m, 30m"),
        ({"from_": "yesterday"}, "from", "“yesterday” is no date and time. Write it as 2026-01-31T09:30"),
        ({"from_": "2026-02-01T08:00", "to": "2026-02-30T08:00"}, "to", "“2026-02-30T08:00” is no date"),
        ({"from_": "0001-01-01T00:00+14:00"}, "from", "is no date and time"),
        ({"to": "2026-02-01T08:00"}, "from", "A moment to begin with is missing."),
        ({"from_": "2026-03-01T12:01"}, "from", "This lies in the future"),
        ({"from_": "2010-01-01T00:00"}, "from", "more than 3660 days ago"),
        ({"from_": "2026-02-02T08:00", "to": "2026-02-02T08:00"}, "to", "This is not later than “From”."),
    ],
)
def test_what_cannot_be_asked_names_the_field_and_the_remedy(
    query: dict[str, str], field: str, words: str
) -> None:
    found = errors(**query)
    assert list(found) == [field]
    assert words in found[field][0]


def test_the_page_asks_for_what_its_address_names(east: Cluster, as_viewer: Client) -> None:
    start = timezone.now().replace(microsecond=0) - timedelta(hours=5)
    end = start + timedelta(hours=1)
    query = {"tab": "history", "from": start.isoformat(), "to": end.isoformat(), "container": "a"}
    text = as_viewer.get(PAGE, query).content.decode()
    (source,) = re.findall(r'data-history="([^"]+)" data-over', text)
    asked = as_viewer.get(html.unescape(source))
    assert asked.status_code == 200
    assert f'value="{start:%Y-%m-%dT%H:%M:%S}"' in text
    assert f'value="{end:%Y-%m-%dT%H:%M:%S}"' in text
    assert '<input type="hidden" name="container" value="a">' in text
    assert "Times are in the zone UTC." in text


def test_the_page_asks_before_a_style_sheet_can_hold_it_up(east: Cluster, as_viewer: Client) -> None:
    before, _sheet, _rest = (
        as_viewer.get(PAGE, {"tab": "history"}).content.decode().partition('rel="stylesheet"')
    )
    assert 'early.js" data-asks="/c/east/nodes/node-07/history.json?range=1h"' in before


def test_the_page_draws_nothing_for_an_address_that_it_cannot_read(east: Cluster, as_viewer: Client) -> None:
    text = as_viewer.get(PAGE, {"tab": "history", "from": "<b>"}).content.decode()
    assert "“&lt;b&gt;” is no date and time." in text
    assert "data-history" not in text
    assert "data-asks" not in text


def test_the_charts_data_is_refused_with_the_field(east: Cluster, as_viewer: Client) -> None:
    answer = as_viewer.get(f"{PAGE}history.json", {"from": "2026-02-02T08:00", "to": "2026-02-01T08:00"})
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["to"]
