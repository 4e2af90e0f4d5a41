"""The audit log in the REST API: complete, filtered, for administrators alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from policies import audit
from policies.audit import Event

AUDIT = "/api/v1/audit/"


@pytest.fixture
def told(db: None) -> None:
    audit.record(Event(action="add", actor="ada", target="cluster east", after={"name": "East"}))
    audit.record(Event(action="sign-in", actor="otto", address="10.0.0.5"))
    audit.record(Event(action="forbidden", target="DELETE /x", result="refused", detail="needs a role"))


def actions(client: Client, query: str = "") -> list[str]:
    response = client.get(AUDIT + query)
    assert response.status_code == 200, response.content
    return [row["action"] for row in response.json()["results"]]


def test_it_lists_the_newest_first_with_before_and_after(as_administrator: Client, told: None) -> None:
    found = as_administrator.get(AUDIT).json()["results"]
    assert [row["action"] for row in found] == ["forbidden", "sign-in", "add"]
    assert (found[2]["before"], found[2]["after"], found[2]["actor"]) == (None, {"name": "East"}, "ada")
    assert found[0]["previous_hash"] == found[1]["hash"]
    assert found[0]["actor"] is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?q=EAST", ["add"]),
        ("?actor=ada&actor=otto", ["sign-in", "add"]),
        ("?actor=unknown", ["forbidden"]),
        ("?action=add", ["add"]),
        ("?result=refused", ["forbidden"]),
        ("?before=2000-01-01T00:00:00Z", []),
        ("?sort=sequence", ["add", "sign-in", "forbidden"]),
    ],
)
def test_it_filters(as_administrator: Client, told: None, query: str, found: list[str]) -> None:
    assert actions(as_administrator, query) == found


def test_its_pages_follow_each_other(as_administrator: Client, told: None) -> None:
    page = as_administrator.get(f"{AUDIT}?page_size=2").json()
    assert [row["action"] for row in as_administrator.get(page["next"]).json()["results"]] == ["add"]


def test_nobody_else_reads_it(
    client: Client, as_stranger: Client, as_viewer: Client, as_operator: Client, told: None
) -> None:
    assert client.get(AUDIT).status_code == 401
    for each in (as_stranger, as_viewer, as_operator):
        assert each.get(AUDIT).status_code == 403


@pytest.mark.parametrize("query", ["?result=odd", "?nothing=1", "?after=never", "?cursor=x"])
def test_a_wrong_parameter_is_a_problem(as_administrator: Client, told: None, query: str) -> None:
    problem: dict[str, Any] = as_administrator.get(AUDIT + query).json()
    assert problem["status"] == 400
    assert problem["errors"]


def test_it_is_in_the_document(as_administrator: Client, db: None) -> None:
    found = as_administrator.get("/api/v1/schema/?format=json").json()
    assert AUDIT in found["paths"]
    assert {"AuditRow", "AuditPage"} <= found["components"]["schemas"].keys()
