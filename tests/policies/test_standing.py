"""Where nodes stand: options and reservations are compared, too, from the newest state; unknown is unknown; what is known is not compared twice."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest
from django.test import Client

from monitoring import hot
from monitoring.models import Cluster
from numacore.change import differing
from numacore.change.wish import Wish
from numacore.kubeletstate import Setting
from policies import selectors
from policies.selectors.standing import compared
from policies.services.policy import Target
from tests.monitoring.pages import seeds
from tests.policies.test_policy import save
from tests.policies.test_preview import told
from tests.policies.test_rollout_pages import text

SINGLE: Literal["single-numa-node"] = "single-numa-node"


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    compared.clear()


def server(cluster: Cluster, name: str = "server-0", unread: tuple[str, ...] = (), **settings: Any) -> None:
    """A node whose files ask for `settings`, and whose summary says that its policies are in force."""
    facts = told()
    assert facts.kubelet is not None
    asked = {
        "topologyManagerPolicy": SINGLE,
        "topologyManagerScope": "container",
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "None",
        **settings,
    }
    given = {field: Setting(value, "file", "/etc/kubelet.yaml") for field, value in asked.items()}
    kubelet = msgspec.structs.replace(facts.kubelet, settings=given, unread=unread)
    cluster.nodes.filter(name=name).delete()
    cluster.endpoints.all().delete()
    seeds.node(cluster, name, msgspec.structs.replace(facts, kubelet=kubelet))
    cluster.nodes.filter(name=name).update(
        topology_policy=SINGLE, topology_scope="container", cpu_policy="static", memory_policy="None"
    )


def of(cluster: Cluster, name: str = "server-0") -> selectors.Standing:
    return next(each for each in selectors.standing(cluster) if each.node == name)


def fields(found: selectors.Standing) -> list[tuple[str, str | None, str]]:
    return [(each.field, each.is_now, each.wanted) for each in found.differences]


def test_an_option_that_is_off_is_a_difference(west: Cluster) -> None:
    server(west, systemReserved={"cpu": "1"})
    save(west, Target("cluster"), Wish(topology_policy=SINGLE, prefer_closest=True))
    found = of(west)
    assert found.state == "differs"
    assert fields(found) == [("topologyManagerPolicyOptions.prefer-closest-numa-nodes", "", "true")]


def test_a_reservation_that_is_too_small_is_a_difference(west: Cluster) -> None:
    server(west, systemReserved={"cpu": "200m"}, reservedMemory=[])
    save(
        west, Target("cluster"), Wish(topology_policy=SINGLE, memory_policy="Static", reserved_memory="even")
    )
    found = {field: (now, wanted) for field, now, wanted in fields(of(west))}
    assert found["systemReserved.cpu"] == ("200m", "500m")
    assert found["kubeReserved.cpu"] == ("", "500m")
    assert found["reservedMemory"] == ("", "even")
    assert found["memoryManagerPolicy"] == ("None", "Static")


def test_what_is_so_is_as_wanted(west: Cluster) -> None:
    options = {"prefer-closest-numa-nodes": "true"}
    server(west, topologyManagerPolicyOptions=options, reservedSystemCPUs="0,16")
    save(west, Target("cluster"), Wish(topology_policy=SINGLE, prefer_closest=True, reserved_cpus="0"))
    assert of(west).state == "agrees"


def test_what_may_stand_in_a_file_that_nobody_can_read_is_unknown(west: Cluster) -> None:
    server(west, unread=("/etc/kubelet.d/10.conf",), systemReserved={"cpu": "1"})
    save(west, Target("cluster"), Wish(topology_policy=SINGLE, prefer_closest=True))
    found = of(west)
    assert (found.state, found.differences[0].is_now) == ("unknown", None)


def test_a_node_whose_options_nobody_tells_is_unknown_and_not_as_wanted(
    west: Cluster, as_viewer: Client
) -> None:
    west.nodes.filter(name="fast-0").update(topology_policy=SINGLE, cpu_policy="static")
    save(west, Target("cluster"), Wish(topology_policy=SINGLE, prefer_closest=True))
    found = of(west, "fast-0")
    assert found.state == "unknown"
    assert {each.is_now for each in found.differences} == {None}
    assert "unknown" in as_viewer.get("/c/west/policies/?show=unknown").content.decode()


def test_a_store_that_does_not_answer_makes_options_unknown(
    west: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    server(west, systemReserved={"cpu": "1"})
    save(west, Target("cluster"), Wish(topology_policy=SINGLE, prefer_closest=True))

    def fail() -> None:
        raise hot.StoreError("gone")

    monkeypatch.setattr(hot, "store", fail)
    assert of(west).state == "unknown"


def test_what_was_compared_is_remembered_until_it_changes(
    west: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    server(west, systemReserved={"cpu": "1"})
    save(west, Target("node", "server-0"), Wish(topology_policy=SINGLE, prefer_closest=True))
    assert of(west).state == "differs"
    asked, real = [], differing.differences

    def counted(*given: Any) -> Any:
        asked.append("again")
        return real(*given)

    monkeypatch.setattr(differing, "differences", counted)
    assert of(west).state == "differs"
    assert asked == []
    server(
        west, systemReserved={"cpu": "1"}, topologyManagerPolicyOptions={"prefer-closest-numa-nodes": "true"}
    )
    assert of(west).state == "agrees"
    assert asked == ["again"]


def test_it_asks_the_database_as_often_for_many_nodes_as_for_few(
    west: Cluster, django_assert_num_queries: Any
) -> None:
    save(west, Target("cluster"), Wish(topology_policy=SINGLE))
    with django_assert_num_queries(5):
        selectors.standing(west)
    for number in range(20):
        seeds.unheard(west, f"more-{number}")
    with django_assert_num_queries(5):
        assert len(selectors.standing(west)) == 24


def test_a_nodes_page_says_how_it_stands(as_operator: Client, west: Cluster) -> None:
    server(west, reservedSystemCPUs="0-1")
    page = f"/c/{west.slug}/nodes/server-0/"
    assert "Policy:" not in text(as_operator.get(page))
    save(west, Target("cluster"), Wish(topology_policy=SINGLE, reserved_cpus="0-1"))
    assert "Policy: the cluster's. as wanted" in text(as_operator.get(page))
    save(west, Target("node", "server-0"), Wish(topology_policy="best-effort", reserved_cpus="0-1"))
    found = text(as_operator.get(page))
    assert "Policy: its own. topologyManagerPolicy single-numa-node → best-effort Preview" in found
