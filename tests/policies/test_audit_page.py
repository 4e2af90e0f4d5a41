"""The audit page and what can be taken away from it."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from policies import audit
from policies.models import AuditEntry

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def entries(db: None) -> None:
    for minute, (actor, action, result) in enumerate(
        [("ada", "change", "done"), ("eve", "sign-in", "refused"), ("otto", "sign-in", "done")]
    ):
        event = audit.Event(actor=actor, action=action, result=result, address=f"192.0.2.{minute}")
        audit.record(event, now=NOON + timedelta(minutes=minute))


def shown(client: Client, query: str) -> list[str]:
    return [entry.actor for entry in client.get(f"/audit/?{query}").context["entries"]]


@pytest.mark.parametrize(
    ("query", "actors"),
    [
        ("", ["otto", "eve", "ada"]),
        ("actor=eve", ["eve"]),
        ("action=sign-in", ["otto", "eve"]),
        ("action=sign-in&result=done", ["otto"]),
        ("text=192.0.2.0", ["ada"]),
        ("since=2026-11-30T12:01", ["otto", "eve"]),
        ("until=2026-11-30T12:00", ["ada"]),
        ("result=nonsense", ["otto", "eve", "ada"]),
        ("since=yesterday", ["otto", "eve", "ada"]),
        ("actor=nobody", []),
    ],
)
def test_it_filters(as_administrator: Client, entries: None, query: str, actors: list[str]) -> None:
    assert shown(as_administrator, query) == actors


def test_it_says_which_value_of_the_filter_it_cannot_read(as_administrator: Client, entries: None) -> None:
    page = as_administrator.get("/audit/?since=yesterday").content.decode()
    assert "Enter a valid date/time." in page


@pytest.mark.parametrize("page", ["0", "999", "x"])
def test_it_survives_a_page_that_is_not_there(as_administrator: Client, entries: None, page: str) -> None:
    assert as_administrator.get(f"/audit/?page={page}").status_code == 404


def test_it_shows_fifty_entries_a_page_in_few_queries(
    as_administrator: Client, django_assert_max_num_queries: object
) -> None:
    for _ in range(60):
        audit.record(audit.Event(action="act"))
    as_administrator.get("/audit/")  # writes into the session that it is in use
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        page = as_administrator.get("/audit/")
    assert len(page.context["entries"]) == 50
    assert len(as_administrator.get("/audit/?page=2").context["entries"]) == 10


def test_it_exports_csv_with_the_filter(as_administrator: Client, entries: None) -> None:
    answer = as_administrator.get("/audit/export.csv?action=sign-in")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["actor"] for row in rows] == ["otto", "eve"]
    assert rows[0]["at"] == "2026-11-30T12:02:00+00:00"
    assert answer["Content-Disposition"] == 'attachment; filename="numaweb-audit.csv"'


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_finds_no_formula_in_it(as_administrator: Client, start: str) -> None:
    audit.record(audit.Event(action="sign-in", actor=f'{start}HYPERLINK("http://evil")'))
    answer = as_administrator.get("/audit/export.csv")
    (row,) = csv.DictReader(io.StringIO(answer.content.decode(), newline=""))
    assert row["actor"] == f'\'{start}HYPERLINK("http://evil")'


def test_it_exports_nothing_for_a_filter_that_it_cannot_read(as_administrator: Client) -> None:
    answer = as_administrator.get("/audit/export.json?since=yesterday")
    assert answer.status_code == 400
    assert answer.content.decode().startswith("From: ")


def test_it_exports_json_with_before_and_after(as_administrator: Client) -> None:
    audit.record(audit.Event(action="change", before={"name": "集群"}, after={"name": "b"}))
    (row,) = as_administrator.get("/audit/export.json").json()
    assert (row["before"], row["after"]) == ({"name": "集群"}, {"name": "b"})
    assert row["hash"] == AuditEntry.objects.get(sequence=1).hash


def test_taking_it_away_is_recorded(as_administrator: Client, entries: None) -> None:
    as_administrator.get("/audit/export.json?actor=eve")
    last = AuditEntry.objects.order_by("-sequence")[0]
    assert (last.actor, last.action, last.detail) == ("ada", "export audit log", "1 entries")


def test_it_knows_no_other_form(as_administrator: Client) -> None:
    assert as_administrator.get("/audit/export.xml").status_code == 404


@pytest.mark.parametrize("address", ["/audit/", "/audit/export.csv", "/audit/export.json"])
def test_it_is_for_administrators(
    as_viewer: Client, as_operator: Client, as_stranger: Client, client: Client, address: str
) -> None:
    assert [person.get(address).status_code for person in (as_viewer, as_operator, as_stranger)] == [403] * 3
    assert client.get(address).status_code == 302


def test_it_shows_hostile_text_as_text(as_administrator: Client) -> None:
    audit.record(audit.Event(action="sign-in", actor="<script>alert(1)</script>"))
    page = as_administrator.get("/audit/").content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_it_shows_what_is_different_and_nothing_else(as_administrator: Client) -> None:
    before = {"name": "old name", "kind": "unaltered"}
    audit.record(audit.Event(action="change", before=before, after={**before, "name": "new name"}))
    page = as_administrator.get("/audit/").content.decode()
    assert "<del>old name</del>" in page
    assert "<ins>new name</ins>" in page
    assert "unaltered" not in page


def test_it_speaks_the_readers_language(as_administrator: Client, entries: None) -> None:
    page = as_administrator.get("/audit/", headers={"Accept-Language": "zh-CN"}).content.decode()
    assert "审计" in page
    assert "登录" in page
