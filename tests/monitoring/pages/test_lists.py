"""The lists of nodes and containers: filter, order, pages and exports, all in the address."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from django.test import AsyncRequestFactory, Client

from monitoring import selectors
from monitoring.models import Cluster, Container, Endpoint, Node
from monitoring.views import exports
from tests.monitoring.pages.conftest import POSTGRES

NODES, CONTAINERS = "/c/east/monitoring/", "/c/east/containers/"


def text(client: Client, path: str, **query: str) -> str:
    return client.get(path, query).content.decode()


def names(page: str) -> list[str]:
    return re.findall(r'<td><a href="/c/east/nodes/([^/"]+)/"', page)


def test_it_has_the_columns_of_the_documents(east: Cluster, as_viewer: Client) -> None:
    head = text(as_viewer, NODES).split("<thead>")[1].split("</thead>")[0]
    found = [re.sub(r"<[^>]+>|[▲▼\s]+", " ", cell).strip() for cell in head.split("</th>")]
    wanted = ["Node", "NUMA nodes", "CPUs", "Memory", "CPU allocation", "Memory allocation", "Busy"]
    assert found[:-1] == [*wanted, "Topology policy", "Containers", "Cross-NUMA containers", "Age"]


def test_it_sorts_numbers_as_numbers_and_unknown_ones_last(east: Cluster, as_viewer: Client) -> None:
    Node.objects.filter(name="solo").update(cpus=None)
    assert names(text(as_viewer, NODES, sort="cpus")) == ["silent", "node-07", "solo"]
    assert names(text(as_viewer, NODES, sort="-cpus")) == ["node-07", "silent", "solo"]


def test_it_says_which_column_orders(east: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer, NODES, sort="-cpus")
    assert page.count('aria-sort="descending"') == 1


def test_it_shows_filters_as_chips_that_can_be_taken_off(east: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer, NODES, topology_policy="single-numa-node", crossing="true", q="node")
    assert names(page) == ["node-07"]
    assert 'href="?topology_policy=single-numa-node&amp;crossing=true"' in page


def test_it_says_so_when_nothing_matches(east: Cluster, as_viewer: Client) -> None:
    assert "Nothing matches these filters" in text(as_viewer, NODES, q="nowhere")


def test_it_names_a_filter_that_cannot_be_read(east: Cluster, as_viewer: Client) -> None:
    assert "Select a valid choice" in text(as_viewer, NODES, crossing="perhaps")


def test_it_filters_nodes_by_what_their_exporter_does(east: Cluster, as_viewer: Client) -> None:
    Endpoint.objects.filter(node__name="silent").update(state="failing")
    assert names(text(as_viewer, NODES, state="failing")) == ["silent"]
    assert names(text(as_viewer, NODES, state="ok", sort="name")) == ["node-07", "solo"]


@pytest.mark.parametrize("path", [f"{NODES}nodes.csv", f"{CONTAINERS}containers.json"])
def test_it_saves_no_file_for_a_filter_that_it_cannot_read(
    path: str, east: Cluster, as_viewer: Client
) -> None:
    answer = as_viewer.get(path, {"crossing": "perhaps"})
    assert answer.status_code == 400
    assert "Select a valid choice" in answer.content.decode()


@pytest.mark.parametrize("path", [NODES, CONTAINERS])
@pytest.mark.parametrize(
    "query",
    [
        {"page": "99999"},
        {"page": "x"},
        {"page": "0"},
        {"per_page": "1000000"},
        {"per_page": "-1"},
        {"sort": "nonsense"},
        {"sort": "password"},
        {"q": "\0"},
        {"q": "x" * 5000},
        {"q": "'; drop table--"},
        {"q": "%_\\"},
    ],
)
def test_it_survives_a_strange_address(
    path: str, query: dict[str, str], east: Cluster, as_viewer: Client
) -> None:
    assert as_viewer.get(path, query).status_code == 200


def many(cluster: Cluster, count: int) -> None:
    node = Node.objects.get(cluster=cluster, name="node-07")
    row = Container.objects.get(node=node, container_id=POSTGRES)
    copies: list[Container] = []
    for number in range(count):
        copy = Container(**fields(row))
        copy.container_id, copy.pod = f"many-{number:06d}", f"many-{number:06d}"
        copies.append(copy)
    Container.objects.bulk_create(copies)


def fields(row: Container) -> dict[str, object]:
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.attname != "id"
    }


def test_it_pages_through_ten_thousand_rows(east: Cluster, as_viewer: Client) -> None:
    many(east, 10_000)
    page = text(as_viewer, CONTAINERS, q="many-", per_page="100", page="100", sort="name")
    assert "9901 to 10000 of 10,000" in page
    assert page.count("<tr>") == 101
    assert "many-009999" in page


@pytest.mark.parametrize("sort", ["name", "-name", "cost", "-cost", "-locality"])
def test_its_pages_are_its_order_in_pieces_from_either_end(
    sort: str, east: Cluster, as_viewer: Client
) -> None:
    many(east, 43)
    Container.objects.filter(container_id__endswith="7").update(cost=None)
    rows = selectors.containers(east)
    column = {"name": "pod"}.get(sort.removeprefix("-"), sort.removeprefix("-"))
    ordered = rows.order_by(*selectors.order(Container, column, descending=sort.startswith("-")))
    wanted = [row.container_id for row in ordered]
    found: list[str] = []
    for page in range(1, 2 + len(wanted) // 10):
        answer = text(as_viewer, CONTAINERS, sort=sort, page=str(page))
        found += re.findall(r"container=([^\"&]+)\"", answer.split("<tbody>")[1])
    assert [unquote(each) for each in found] == wanted


def test_it_offers_ten_twenty_fifty_and_a_hundred_rows(east: Cluster, as_viewer: Client) -> None:
    many(east, 120)
    for size in (10, 20, 50, 100):
        assert text(as_viewer, CONTAINERS, per_page=str(size)).count("<tr>") == size + 1


def test_it_leads_from_a_container_to_its_node_with_it_selected(east: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer, CONTAINERS, q="postgres")
    assert f"/c/east/nodes/node-07/?tab=containers&amp;container={POSTGRES}" in page


def test_it_filters_containers_by_what_crosses(east: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer, CONTAINERS, cross="device", node="node-07")
    assert "postgres-0" in page
    assert "ranker-5f7c" not in page


def test_it_sends_only_the_list_when_a_script_asks(east: Cluster, as_viewer: Client) -> None:
    page = as_viewer.get(NODES, {"q": "solo"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    assert names(page) == ["solo"]


def test_it_exports_what_is_filtered(east: Cluster, as_viewer: Client) -> None:
    answer = as_viewer.get("/c/east/monitoring/nodes.csv", {"q": "node", "sort": "-cpus"})
    assert answer["Content-Disposition"] == 'attachment; filename="east-nodes.csv"'
    rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert [row["name"] for row in rows] == ["node-07"]
    assert rows[0]["cpus"] == "128"


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-name", ["solo", "silent", "node-07"]),
        ("name", ["node-07", "silent", "solo"]),
        ("", ["node-07", "silent", "solo"]),
    ],
)
def test_a_file_has_the_order_of_its_page(
    sort: str, expected: list[str], east: Cluster, as_viewer: Client
) -> None:
    assert names(text(as_viewer, NODES, sort=sort)) == expected
    answer = as_viewer.get(f"{NODES}nodes.csv", {"sort": sort})
    assert [row["name"] for row in csv.DictReader(answer.getvalue().decode().splitlines())] == expected


@pytest.mark.parametrize("at_once", [1, 2, 1000])
@pytest.mark.parametrize("wanted", ["node-07", "", "nothing"])
def test_a_file_is_whole_however_many_rows_are_read_at_once(
    wanted: str, at_once: int, east: Cluster, as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "AT_ONCE", at_once)
    there = sorted(selectors.nodes(east).filter(name__contains=wanted).values_list("name", flat=True))
    lines = csv.DictReader(as_viewer.get(f"{NODES}nodes.csv", {"q": wanted}).getvalue().decode().splitlines())
    assert [row["name"] for row in lines] == there
    found = json.loads(as_viewer.get(f"{NODES}nodes.json", {"q": wanted}).getvalue())
    assert [row["name"] for row in found] == there


def test_a_row_that_goes_while_a_file_is_read_is_left_out(
    east: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "AT_ONCE", 1)
    lines = exports.rows(selectors.nodes(east).order_by("name"), ("name",))
    assert list(next(lines)) == ["node-07"]
    Node.objects.filter(name="silent").delete()
    assert [name for (name,) in lines] == ["solo"]


async def test_a_file_begins_before_all_of_it_is_read() -> None:
    """As under a real server, which has no patience for the whole."""
    read: list[int] = []

    def lines() -> Iterator[tuple[int]]:
        for number in range(exports.AT_ONCE + 1):
            read.append(number)
            yield (number,)

    request = AsyncRequestFactory().get("/")
    answer = exports.answer(request, "csv", "numbers", ("number",), lines())
    pieces = aiter(answer)
    assert await anext(pieces) == b"number\r\n"
    assert not read
    assert (await anext(pieces)).startswith(b"0\r\n1\r\n")
    assert len(read) == exports.AT_ONCE
    assert [piece async for piece in pieces] == [f"{exports.AT_ONCE}\r\n".encode()]


def test_it_exports_unknown_as_empty_and_as_null(east: Cluster, as_viewer: Client) -> None:
    Node.objects.update(busy=None)
    rows = csv.DictReader(as_viewer.get("/c/east/monitoring/nodes.csv").getvalue().decode().splitlines())
    assert {row["busy"] for row in rows} == {""}
    found = json.loads(as_viewer.get("/c/east/monitoring/nodes.json").getvalue())
    assert {row["busy"] for row in found} == {None}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_it_exports_no_formula(start: str, east: Cluster, as_viewer: Client) -> None:
    Container.objects.filter(container_id=POSTGRES).update(pod=f"{start}HYPERLINK(1)")
    answer = as_viewer.get("/c/east/containers/containers.csv", {"q": "HYPERLINK"})
    (row, *_) = csv.DictReader(answer.getvalue().decode().splitlines())
    assert row["pod"] == f"'{start}HYPERLINK(1)"


AWKWARD = (
    "",
    "plain",
    "a,b",
    'say "x"',
    "two\nlines",
    "cr\rhere",
    "=1+1",
    "-",
    "\ttab",
    "'",
    "é 节点",
    " spaced ",
    '","',
)


def test_csv_is_written_as_the_standard_library_writes_it() -> None:
    """With an apostrophe before what a spreadsheet would run, and documents as JSON."""
    moment = datetime(2026, 2, 1, 8, 30, tzinfo=UTC)
    others: tuple[object, ...] = (
        None,
        True,
        False,
        0,
        -7,
        1.0,
        -0.5,
        1e-7,
        1e22,
        moment,
        moment.replace(microsecond=61),
        {"0": 1, "x,y": None},
        [1, "=2"],
        {},
    )
    lines = [(text, other, None, 2) for text in AWKWARD for other in others] + [(None, "-x", "=", "")]
    written = b"".join(exports.as_csv(("a", "b,c", "d", "e"), iter(lines)))
    expected = io.StringIO()
    csv.writer(expected).writerow(("a", "b,c", "d", "e"))
    csv.writer(expected).writerows(tuple(map(as_cell, line)) for line in lines)
    assert written == expected.getvalue().encode()


def as_cell(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else value
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict | list) else value


@pytest.mark.parametrize("value", ["", None, "x", "a,b"])
def test_a_line_of_one_field_is_a_line_though_it_is_empty(value: str | None) -> None:
    expected = io.StringIO()
    csv.writer(expected).writerows([("a",), (value,)])
    assert b"".join(exports.as_csv(("a",), iter([(value,)]))) == expected.getvalue().encode()


def test_moments_and_documents_of_a_file_are_those_of_the_rows(east: Cluster) -> None:
    columns = (
        "container_id",
        "memory_nodes",
        "updated",
        "cost",
        "crossing",
        "owner_name",
        "node__name",
        "node__attributes",
    )
    postgres = Container.objects.filter(container_id=POSTGRES)
    for updated in (
        datetime(2026, 2, 1, 8, 30, tzinfo=UTC),
        datetime(2026, 2, 1, 8, 30, 0, 610_000, tzinfo=UTC),
    ):
        postgres.update(updated=updated, memory_nodes={"0": 2**40, "1": None, "ключ": 1.5})
        Container.objects.exclude(container_id=POSTGRES).update(memory_nodes=None)
        ordered = selectors.containers(east).order_by("pk")
        assert [tuple(row) for row in exports.rows(ordered, columns)] == list(ordered.values_list(*columns))
        assert str(updated) in {str(row[2]) for row in exports.rows(ordered, columns)}


@pytest.mark.parametrize(
    ("query", "notice"),
    [
        (
            {"sort": "-password"},
            "“password” is none of: name, numa_nodes, cpus, memory_total, cpu_allocation, memory_allocation, busy, "
            "topology_policy, containers, crossing, last_seen. Shown instead: name.",
        ),
        ({"per_page": "7"}, "“7” is none of: 10, 20, 50, 100. Shown instead: 10."),
        ({"page": "x"}, "“x” is no page of this list, which has 1 to 1. Shown instead: 1."),
        ({"page": "99"}, "“99” is no page of this list, which has 1 to 1. Shown instead: 1."),
    ],
)
def test_it_says_what_of_an_address_it_did_not_understand(
    query: dict[str, str], notice: str, east: Cluster, as_viewer: Client
) -> None:
    page = text(as_viewer, NODES, **query)
    assert f"<strong>{next(iter(query))}:</strong> {notice}" in page
    assert len(names(page)) == 3
    as_viewer.cookies["numaweb_language"] = "zh-hans"
    assert "改为显示：" in text(as_viewer, NODES, **query)


def test_it_has_no_notice_for_an_address_that_it_understands(east: Cluster, as_viewer: Client) -> None:
    page = text(as_viewer, NODES, sort="-cpus", per_page="20", page="1")
    assert "Shown instead" not in page
