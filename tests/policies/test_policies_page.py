"""The pages of affinity policies: everybody sees what is wanted and why, administrators write it down, nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from monitoring.models import Cluster, KubernetesNode
from numacore.change.wish import Wish
from policies.models import Policy, Pool
from policies.services import policy
from policies.services.policy import Target
from policies.words.policy import SWITCHES
from tests.policies.test_policy import ADA, pool, save

PAGES = "/c/west/policies/"
WEST_CLUSTER = f"{PAGES}cluster/"
POOLS = f"{PAGES}pools/"


def text(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def filled(client: Client, address: str, **changes: object) -> Any:
    """What a browser would send of the form as it stands, with some fields changed."""
    form = client.get(address).context["form"]
    known = {name: form[name].value() for name in form.fields}
    known |= changes
    return client.post(
        address, {name: value for name, value in known.items() if value not in (None, False, "")}
    )


def test_the_page_explains_each_switch_and_who_it_is_for(as_viewer: Client, west: Cluster) -> None:
    shown = text(as_viewer.get(PAGES))
    for each in SWITCHES:
        assert str(each.does) in shown.replace("&#x27;", "'")
        assert str(each.scenario) in shown.replace("&#x27;", "'")
    assert "Nobody wants anything of any node" in shown
    assert "needs the role administrator" in shown


def test_it_says_in_its_first_line_how_many_nodes_differ(as_viewer: Client, west: Cluster) -> None:
    save(west, Target("cluster"), Wish(topology_policy="restricted"))
    west.nodes.filter(name__startswith="fast").update(topology_policy="none", cpu_policy="none")
    shown = text(as_viewer.get(PAGES))
    assert "2 nodes are not as they are wanted." in shown
    assert "topologyManagerPolicy none → restricted" in shown
    assert "topologyManagerPolicy unknown → restricted" in shown


def test_nodes_can_be_picked_by_state(as_viewer: Client, west: Cluster) -> None:
    save(west, Target("cluster"), Wish(topology_policy="restricted"))
    west.nodes.filter(name="fast-0").update(topology_policy="none", cpu_policy="none")
    shown = text(as_viewer.get(f"{PAGES}?show=differs"))
    assert ("fast-0" in shown, "fast-1" in shown) == (True, False)
    assert "No node is in this state" in text(as_viewer.get(f"{PAGES}?show=agrees"))
    assert "fast-1" in text(as_viewer.get(f"{PAGES}?show=rubbish&page=zz"))


def test_an_administrator_switches_a_policy_on(as_administrator: Client, west: Cluster) -> None:
    answer = filled(
        as_administrator,
        WEST_CLUSTER,
        topology_policy="single-numa-node",
        prefer_closest=True,
        on=True,
        scope="pod",
    )
    assert (answer.status_code, answer["Location"]) == (302, PAGES)
    made = Policy.objects.get()
    assert made.on
    assert made.wish == {"topology_policy": "single-numa-node", "prefer_closest": True, "scope": "pod"}


def test_a_stored_policy_comes_back_into_its_form_unchanged(as_administrator: Client, west: Cluster) -> None:
    wish = Wish(
        topology_policy="restricted",
        prefer_closest=False,
        max_allowable_numa_nodes=16,
        cpu_options={"full-pcpus-only": True},
        reserved_cpus="0-1",
        memory_policy="Static",
        reserved_memory="first",
    )
    save(west, Target("cluster"), wish)
    filled(as_administrator, WEST_CLUSTER)
    assert Policy.objects.get().version == 1


@pytest.mark.parametrize(
    ("versions", "is_off"),
    [
        (("v1.25.16", "v1.24.9"), True),
        (("v1.25.16", "v1.32.1"), False),
        (("v1.26.0", "v1.26.0"), False),
        (("", ""), False),
        (("next", "v1.25.16"), False),
    ],
)
def test_the_distance_is_not_offered_where_every_kubelet_is_too_old(
    as_administrator: Client, west: Cluster, versions: tuple[str, str], is_off: bool
) -> None:
    pool(west, "gold", "tier=gold")
    for name, version in zip(("fast-0", "fast-1"), versions, strict=True):
        KubernetesNode.objects.filter(node__name=name).update(kubelet_version=version)
    KubernetesNode.objects.filter(node__name="slow-0").update(kubelet_version="v1.37.0")
    for address, off in ((f"{PAGES}pool/gold/", is_off), (WEST_CLUSTER, False)):
        page = as_administrator.get(address)
        assert ("disabled" in str(page.context["form"]["prefer_closest"])) == off
        said = "it came with kubelet 1.26, and these nodes run v1.24.9, v1.25.16." in text(page)
        assert said == off


def test_what_only_rest_can_say_outlives_the_form(as_administrator: Client, west: Cluster) -> None:
    wish = Wish(
        topology_policy="restricted",
        cpu_options={"full-pcpus-only": True, "strict-cpu-reservation": False},
        memory_policy="Static",
        reserved_memory={0: 1024, 1: 512},
    )
    save(west, Target("cluster"), wish)
    assert "by NUMA node: 0: 1024 Mi, 1: 512 Mi" in text(as_administrator.get(WEST_CLUSTER))
    filled(as_administrator, WEST_CLUSTER)
    assert Policy.objects.get().version == 1
    filled(as_administrator, WEST_CLUSTER, scope="pod", reserved_memory="even")
    said = Policy.objects.get().wish
    assert (said["scope"], said["reserved_memory"]) == ("pod", "even")
    assert said["cpu_options"] == {"full-pcpus-only": True, "strict-cpu-reservation": False}
    assert "prefer_closest" not in said


def test_what_contradicts_itself_is_told_at_its_field_and_the_rest_stays(
    as_administrator: Client, west: Cluster
) -> None:
    answer = filled(
        as_administrator,
        WEST_CLUSTER,
        topology_policy="single-numa-node",
        cpu_options=["align-by-socket"],
        kube_reserved_cpu="lots",
        reserved_cpus="3",
    )
    form = answer.context["form"]
    assert set(form.errors) == {"cpu_options", "kube_reserved_cpu"}
    assert form["reserved_cpus"].value() == "3"
    assert not Policy.objects.exists()


def test_two_people_edit_and_the_second_loses_nothing(as_administrator: Client, west: Cluster) -> None:
    save(west, Target("cluster"))
    form = as_administrator.get(WEST_CLUSTER).context["form"]
    save(west, Target("cluster"), Wish(topology_policy="none"), seen=1)
    answer = as_administrator.post(
        WEST_CLUSTER, {"topology_policy": "restricted", "version": form["version"].value()}, follow=True
    )
    assert "Somebody else has changed this meanwhile. What you filled in is still here" in text(answer)
    assert Policy.objects.get().wish == {"topology_policy": "none"}
    kept = answer.context["form"]
    assert (kept["topology_policy"].value(), kept["version"].value()) == ("restricted", "2")
    as_administrator.post(WEST_CLUSTER, {"topology_policy": "restricted", "version": "2"})
    assert Policy.objects.get().wish["topology_policy"] == "restricted"


@pytest.mark.parametrize("address", [PAGES, WEST_CLUSTER, f"{PAGES}node/fast-0/", POOLS])
def test_everybody_looks_and_nobody_else_writes(
    client: Client, as_stranger: Client, as_viewer: Client, as_operator: Client, west: Cluster, address: str
) -> None:
    assert client.get(address).status_code == 302
    assert as_stranger.get(address).status_code == 403
    for somebody in (as_viewer, as_operator):
        assert somebody.get(address).status_code == 200
        if address != PAGES:
            assert somebody.post(address, {"name": "gold", "selector": "tier=gold"}).status_code == 403
    assert not Policy.objects.exists()
    assert not Pool.objects.exists()


@pytest.mark.parametrize("address", [f"{PAGES}node/nobody/", f"{PAGES}pool/nobody/", f"{POOLS}nobody/"])
def test_a_target_that_is_not_there_is_named(as_administrator: Client, west: Cluster, address: str) -> None:
    answer = as_administrator.get(address)
    assert answer.status_code == 404
    assert "nobody" in answer.content.decode()


def test_a_pool_is_made_and_shows_its_nodes(as_administrator: Client, west: Cluster) -> None:
    answer = as_administrator.post(POOLS, {"name": "gold", "selector": "tier=gold"}, follow=True)
    shown = text(answer)
    assert "2 nodes now" in shown
    assert "fast-1" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "gold", "selector": "tier in (gold"}, "This label selector cannot be read"),
        ({"name": "zone-a", "selector": "zone=a"}, "iron and zone-a share: slow-0"),
        ({"name": "iron", "selector": "zone=b"}, "There is a pool with this name"),
        ({"name": "not a name", "selector": "zone=b"}, "slug"),
    ],
)
def test_a_pool_that_cannot_be_says_why(
    as_administrator: Client, west: Cluster, given: Mapping[str, str], said: str
) -> None:
    pool(west, "iron", "tier=iron")
    answer = as_administrator.post(POOLS, given)
    assert said in answer.content.decode()
    assert given["selector"] in answer.content.decode()
    assert Pool.objects.count() == 1


def test_a_pool_keeps_its_name_and_gets_another_selector(as_administrator: Client, west: Cluster) -> None:
    pool(west, "gold", "tier=gold")
    filled(as_administrator, f"{POOLS}gold/", name="silver", selector="zone=b")
    assert [(each.name, each.selector) for each in Pool.objects.all()] == [("gold", "zone=b")]


def test_a_pool_with_a_policy_cannot_be_removed(as_administrator: Client, west: Cluster) -> None:
    pool(west, "gold", "tier=gold")
    save(west, Target("pool", "gold"))
    answer = as_administrator.post(f"{POOLS}gold/", {"do": "remove"}, follow=True)
    assert "A policy is for this pool" in text(answer)
    Policy.objects.all().delete()
    assert as_administrator.post(f"{POOLS}gold/", {"do": "remove"})["Location"] == PAGES
    assert not Pool.objects.exists()


def test_pools_that_come_to_meet_are_a_warning(as_viewer: Client, west: Cluster) -> None:
    for name, selector in (("gold", "tier=gold"), ("zone-a", "zone=a")):
        Pool.objects.create(
            cluster=west, name=name, selector=selector, changed=timezone.now(), changed_by="ada"
        )
    shown = text(as_viewer.get(PAGES))
    assert "The pools gold and zone-a have come to share nodes, and both are frozen: fast-0" in shown.replace(
        " .", "."
    )


def test_versions_stand_below_the_form(as_viewer: Client, west: Cluster) -> None:
    save(west, Target("cluster"))
    policy.save(west, Target("cluster"), Wish(topology_policy="none"), False, ADA, timezone.now(), 1)
    shown = text(as_viewer.get(WEST_CLUSTER))
    assert re.search(r"2 .* ada off topology_policy none", shown)
    assert "topology_policy single-numa-node" in shown
