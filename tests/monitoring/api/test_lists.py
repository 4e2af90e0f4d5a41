"""Lists: filters, order, pages by cursor, chosen fields, and refusals that name the parameter."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring.api import paging
from monitoring.models import Container, Node
from tests.monitoring.api import inventory
from tests.monitoring.api.conftest import LAB, ROOT, Get
from tests.monitoring.api.inventory import Lab


def names(page: dict[str, Any]) -> list[str]:
    return [row["name"] for row in page["results"]]


def test_a_node_has_all_its_figures_and_unknown_ones_are_null(get: Get, lab: Lab) -> None:
    first, second = get("nodes/")["results"]
    assert (first["name"], first["cluster"], first["uid"]) == ("worker-1", "lab", "uid-1")
    assert (first["busy"], first["pinned"], first["topology_policy"]) == (0.25, 2, "best-effort")
    assert (first["state"], first["source"]) == ("ok", "exporter")
    assert first["address"] == f"{LAB}nodes/worker-1/"
    assert first["topology"] == lab.node.topology_id
    assert (second["busy"], second["topology_policy"], second["memory_total"]) == (None, None, None)
    assert (second["state"], second["source"]) == ("no-data", "store")
    assert second["age"] >= 3600


def test_nodes_that_are_gone_are_not_listed(get: Get, lab: Lab) -> None:
    Node.objects.filter(pk=lab.silent.pk).update(gone_at=timezone.now())
    assert names(get("nodes/")) == ["worker-1"]


def test_a_node_that_was_heard_long_ago_is_stale(get: Get, lab: Lab) -> None:
    inventory.hear(lab.node, lab.endpoint, timezone.now() - timedelta(minutes=2))
    row = get("nodes/")["results"][0]
    assert row["state"] == "stale"
    assert 110 < row["age"] < 200


def test_all_clusters_are_listed_together_and_apart(get: Get, lab: Lab) -> None:
    other = inventory.cluster("other")
    inventory.node(other, "worker-1", lab.node.topology, timezone.now())
    assert [row["cluster"] for row in get(f"{ROOT}nodes/")["results"]] == ["lab", "other", "lab"]
    assert names(get(f"{ROOT}nodes/?cluster=other")) == ["worker-1"]
    assert names(get(f"{ROOT}nodes/?cluster=other&cluster=lab&sort=cluster")) == [
        "worker-1",
        "worker-2",
        "worker-1",
    ]
    assert names(get(f"{ROOT}clusters/other/nodes/")) == ["worker-1"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=WORKER-1", ["worker-1"]),
        ("q=uid-2", ["worker-2"]),
        ("q=%25", []),
        ("name=worker-1&name=worker-9", ["worker-1"]),
        ("topology_policy=best-effort", ["worker-1"]),
        ("topology_policy=unknown", ["worker-2"]),
        ("topology_policy=unknown&topology_policy=best-effort", ["worker-1", "worker-2"]),
        ("cpu_policy=static&topology_policy=unknown", []),
        ("crossing=true", ["worker-1"]),
        ("crossing=false", []),
        ("crossing=unknown", ["worker-2"]),
        ("problems=true", ["worker-1"]),
        ("busy_min=0.25", ["worker-1"]),
        ("busy_min=0.26", []),
        ("busy_max=1", ["worker-1"]),
        ("cpus_min=8&cpus_max=8", ["worker-1"]),
        ("cpus_min=1e30", []),
        ("seen_before=2100-01-01T00:00:00Z&seen_after=2000-01-01", ["worker-1", "worker-2"]),
        ("seen_after=2100-01-01T00:00:00%2B01:00", []),
        ("seen_after=2100-01-01T00:00:00-23:59", []),
        ("q=", ["worker-1", "worker-2"]),
    ],
)
def test_nodes_are_filtered(get: Get, lab: Lab, query: str, found: list[str]) -> None:
    assert names(get(f"nodes/?{query}")) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=WEB", ["web"]),
        ("q=jobs", ["batch"]),
        ("q=containerd://b", ["batch"]),
        ("namespace=shop", ["web"]),
        ("namespace=shop&namespace=jobs", ["web", "batch"]),
        ("pod=web-0", ["web"]),
        ("node=worker-2", []),
        ("topology_policy=best-effort", ["web", "batch"]),
        ("kind=exclusive", ["web"]),
        ("kind=floating&kind=unknown", ["batch"]),
        ("qos=Guaranteed", ["web"]),
        ("cross=memory", ["web"]),
        ("cross=cpu&cross=device", []),
        ("crossing=true", ["web"]),
        ("crossing=false", ["batch"]),
        ("crossing=unknown", []),
        ("pinning=qos", ["batch"]),
        ("kubernetes=true", ["web", "batch"]),
        ("kubernetes=false", []),
        ("cost_min=1.2", ["web"]),
        ("locality_max=0.5", []),
        ("remote_pages_min=0.05", ["web"]),
    ],
)
def test_containers_are_filtered(get: Get, lab: Lab, query: str, found: list[str]) -> None:
    assert names(get(f"containers/?{query}")) == found
    assert names(get(f"{ROOT}containers/?{query}")) == found


def test_a_container_has_its_placement(get: Get, lab: Lab) -> None:
    web, batch = get("containers/")["results"]
    assert (web["id"], web["node"], web["namespace"]) == ("containerd://web", "worker-1", "shop")
    assert web["memory_nodes"] == {"0": 3 * inventory.GIB, "1": inventory.GIB}
    assert (web["crossing"], web["cross_memory"], web["pinning"]) == (True, True, "pinned")
    assert (batch["cost"], batch["memory_nodes"], batch["cpu_nodes"], batch["runtime"]) == (None,) * 4


@pytest.mark.parametrize(
    ("path", "parameter", "remedy"),
    [
        ("nodes/?nmae=worker-1", "nmae", "there are: "),
        ("nodes/?sort=colour", "sort", "One can sort by: busy"),
        ("nodes/?sort=--name", "sort", "One can sort by"),
        ("nodes/?page_size=0", "page_size", "from 1 to 1000"),
        ("nodes/?page_size=1001", "page_size", "from 1 to 1000"),
        ("nodes/?page_size=-5", "page_size", "from 1 to 1000"),
        ("nodes/?page_size=²", "page_size", "from 1 to 1000"),
        ("nodes/?page_size=" + "9" * 5000, "page_size", "from 1 to 1000"),
        ("nodes/?count=yes", "count", "true or false"),
        ("nodes/?fields=name,colour", "fields", "The fields are: "),
        ("nodes/?fields=" + ",".join(["name"] * 500), "fields", "The fields are"),
        ("nodes/?busy_min=many", "busy_min", "Enter a number"),
        ("nodes/?busy_min=nan", "busy_min", "Enter a number"),
        ("nodes/?busy_min=-1", "busy_min", "greater than or equal to 0"),
        ("nodes/?cpus_max=1e999", "cpus_max", "less than or equal"),
        ("nodes/?crossing=perhaps", "crossing", "valid choice"),
        ("nodes/?seen_after=yesterday", "seen_after", "Enter a valid date/time"),
        ("nodes/?seen_after=9999-99-99", "seen_after", "Enter a valid date/time"),
        ("nodes/?seen_after=9999-12-31T23:59:59-23:00", "seen_after", "No clock"),
        ("nodes/?q=a%00b", "q", "Null characters"),
        ("nodes/?q=" + "x" * 300, "q", "at most 253"),
        ("nodes/?name=" + "x" * 300, "name", "at most 253 characters"),
        ("nodes/?name=%00", "name", "no NUL"),
        ("nodes/?" + "name=a&" * 101, "name", "101 values; at most 100"),
        ("nodes/?" + "name=a&" * 10_000, "query", "Far too many parameters"),
        ("nodes/?cursor=rubbish", "cursor", "no cursor of this list"),
        ("nodes/?cursor=%00%FF", "cursor", "no cursor of this list"),
        ("nodes/?cluster=lab", "cluster", "no such parameter here"),
        ("containers/?kind=odd", "kind", "none of: exclusive, narrowed, floating, unknown"),
        ("containers/?cross=wind", "cross", "none of: cpu, memory, device"),
        ("containers/?kubernetes=unknown", "kubernetes", "valid choice"),
        ("endpoints/?state=lost", "state", "none of: new, ok, failing"),
        ("nodes/worker-1/?verbose=1", "verbose", "there are: none"),
        (f"{ROOT}search/", "q", "At least 2 characters"),
        (f"{ROOT}search/?q=a", "q", "At least 2 characters"),
        (f"{ROOT}search/?q=%00%00%00", "q", "At least 2 characters"),
        (f"{ROOT}search/?q=ab&limit=101", "limit", "from 1 to 100"),
        (f"{ROOT}search/?q=ab&limit=x", "limit", "from 1 to 100"),
    ],
)
def test_a_wrong_parameter_is_named_with_the_remedy(
    get: Get, lab: Lab, path: str, parameter: str, remedy: str
) -> None:
    problem = get(path, 400)
    assert problem["status"] == 400
    assert "errors" in problem["detail"]
    assert remedy in " ".join(problem["errors"][parameter])


def test_chosen_fields_come_alone(get: Get, lab: Lab) -> None:
    assert get("nodes/?fields=name,busy,age")["results"][1]["busy"] is None
    row = get("nodes/?fields=name,state,address")["results"][0]
    assert row == {"name": "worker-1", "state": "ok", "address": f"{LAB}nodes/worker-1/"}


def test_the_list_is_counted_where_asked(get: Get, lab: Lab) -> None:
    assert get("nodes/?page_size=1")["count"] is None
    assert get("nodes/?page_size=1&count=true")["count"] == 2


def walk(get: Get, path: str, key: str, direction: str = "next") -> list[list[Any]]:
    """What is on each page, in the order in which one comes to it."""
    pages = []
    while path:
        page = get(path)
        pages.append([row[key] for row in page["results"]])
        path = page[direction]
    return pages


def test_pages_follow_each_other_and_lead_back(get: Get, lab: Lab) -> None:
    for number in range(7):
        inventory.node(lab.cluster, f"n{number}", lab.node.topology, timezone.now())
    there = walk(get, "nodes/?page_size=4", "name")
    assert there == [["n0", "n1", "n2", "n3"], ["n4", "n5", "n6", "worker-1"], ["worker-2"]]
    second = get(get("nodes/?page_size=4")["next"])
    last = get(second["next"])
    assert last["next"] is None
    assert names(get(last["previous"])) == there[1]
    first = get(get(last["previous"])["previous"])
    assert names(first) == there[0]
    assert first["previous"] is None
    assert names(get(first["next"])) == there[1]


def test_a_page_stays_where_it_is_while_the_list_changes(get: Get, lab: Lab) -> None:
    for number in range(6):
        inventory.node(lab.cluster, f"n{number}", lab.node.topology, timezone.now())
    second = get("nodes/?page_size=3")["next"]
    inventory.node(lab.cluster, "a-new-first", lab.node.topology, timezone.now())
    Node.objects.filter(name="n1").delete()
    assert names(get(second)) == ["n3", "n4", "n5"]


def test_a_cursor_keeps_filters_and_belongs_to_its_order(get: Get, lab: Lab) -> None:
    page = get("nodes/?page_size=1&q=worker&sort=-name")
    assert names(page) == ["worker-2"]
    assert names(get(page["next"])) == ["worker-1"]
    problem = get(page["next"].replace("sort=-name", "sort=name"), 400)
    assert "cursor" in problem["errors"]


@pytest.mark.parametrize("sort", ["cost", "-cost", "namespace", "-updated", "kind", "-node", "id", "-id"])
@pytest.mark.parametrize("size", [1, 3])
def test_every_order_shows_each_row_once(get: Get, lab: Lab, sort: str, size: int) -> None:
    Container.objects.all().delete()
    costs = [1.5, None, 1.0, None, 1.5, 2.25, None, 1.0]
    for number, cost in enumerate(costs):
        inventory.container(lab.node, number, timezone.now(), cost=cost, namespace=f"n{number % 3}")
    path = f"containers/?sort={sort}&page_size={size}"
    there = [each for page in walk(get, path, "id") for each in page]
    assert sorted(there) == sorted(Container.objects.values_list("container_id", flat=True))
    if "cost" in sort:
        shown = [each for page in walk(get, path, "cost") for each in page]
        known = sorted((cost for cost in costs if cost is not None), reverse=sort.startswith("-"))
        assert shown == [*known, None, None, None]
    last = path
    while following := get(last)["next"]:
        last = following
    back = walk(get, last, "id", "previous")
    assert [each for page in reversed(back) for each in page] == there


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    sort=st.sampled_from(["busy", "-name", "last_seen", "crossing", "odd"]), value=values, key=st.integers()
)
def test_a_forged_cursor_is_an_answer_or_a_problem(
    as_viewer: Client, lab: Lab, sort: str, value: Any, key: int
) -> None:
    try:
        forged = paging.written(paging.Cursor(sort, False, value, key))
    except OverflowError:
        return
    response = as_viewer.get(f"{LAB}nodes/", {"sort": sort, "cursor": forged})
    assert response.status_code in (200, 400)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(
            ["q", "name", "sort", "fields", "cursor", "page_size", "busy_min", "seen_after", "crossing"]
        ),
        st.text(max_size=40),
    )
)
def test_hostile_parameters_are_an_answer_or_a_problem(
    as_viewer: Client, lab: Lab, query: dict[str, str]
) -> None:
    assert as_viewer.get(f"{LAB}nodes/", query).status_code in (200, 400)


def test_the_search_finds_over_all_clusters(get: Get, lab: Lab) -> None:
    hits = get(f"{ROOT}search/?q=web")["results"]
    assert hits == [
        {
            "kind": "container",
            "label": "shop/web-0/web",
            "cluster": "lab",
            "node": "worker-1",
            "container": "containerd://web",
            "address": f"{LAB}nodes/worker-1/containers/",
        }
    ]
    assert [hit["kind"] for hit in get(f"{ROOT}search/?q=worker")["results"]] == ["node", "node"]
    assert [hit["address"] for hit in get(f"{ROOT}search/?q=LAB")["results"]] == [LAB]


def test_endpoints_show_their_state(get: Get, lab: Lab) -> None:
    good, bad = get("endpoints/")["results"]
    assert (good["state"], good["node"], good["has_token"]) == ("ok", "worker-1", True)
    assert (bad["state"], bad["error"], bad["failures"], bad["has_token"]) == (
        "failing",
        "connection refused",
        7,
        False,
    )
    assert get("endpoints/?state=failing")["results"] == [bad]


def test_settings_are_read(get: Get, lab: Lab) -> None:
    found = get(f"{ROOT}settings/")
    assert found["busy_threshold"] == 0.1
    assert found["detail_hours"] == 24
    assert found["has_prometheus_token"] is False


def test_the_root_leads_everywhere(get: Get, lab: Lab) -> None:
    found = get(ROOT)
    assert found["addresses"]["clusters"] == f"{ROOT}clusters/"
    questions = {"plan", "lint"}
    """Addresses that answer to a question in the body."""
    assert {"audit", "endpoints", "settings", *questions} < found["addresses"].keys()
    for name, address in found["addresses"].items():
        if name in questions:
            get(address, status=405)
        elif name == "audit":
            get(address, status=403)  # it is there, and not for a viewer
        elif name not in ("docs", "schema", "search"):
            assert get(address)
    assert [row["slug"] for row in get(f"{ROOT}clusters/")["results"]] == ["lab"]


def test_the_overview_tells_totals_and_what_needs_attention(get: Get, lab: Lab) -> None:
    found = get("overview/")
    assert found["totals"]["nodes"] == 2
    assert found["totals"]["nodes_without_data"] == 1
    assert found["policies"] == {"best-effort": 1, "unknown": 1}
    assert found["room"].keys() >= {"free", "largest", "node", "numa", "unknown", "sizes"}
    assert [row["name"] for row in found["worst"]] == ["web"]
    codes = [each["code"] for each in found["attention"]]
    assert {"container-crossing", "endpoint-failing", "node-no-data", "policy-contradiction"} <= set(codes)
    failing = found["attention"][codes.index("endpoint-failing")]
    assert "connection refused" in failing["detail"]
    first, second = found["nodes"]
    assert (first["node"], first["pinned"], first["busy"]) == ("worker-1", [0.5, 0.0], [0.25, None])
    assert (second["state"], second["busy"]) == ("no-data", [None, None, None])
    assert {each["name"]: each["state"] for each in found["components"]}["exporter"] == "failing"


def test_the_fleet_is_every_node_in_one_answer(get: Get, lab: Lab) -> None:
    found = get("fleet/")
    assert found["cluster"] == "lab"
    listed = get("nodes/")["results"]
    assert [row | {"age": 0} for row in found["results"]] == [row | {"age": 0} for row in listed]
