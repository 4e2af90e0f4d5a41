"""A policy's preview: what would come of it on each node that it counts for, for operators, and nothing is changed."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from monitoring import hot
from monitoring.models import Cluster, Pod
from numacore.change.wish import Wish
from numacore.facts import Facts
from numacore.kubeletstate import KubeletFile, Setting
from numacore.workload import Container
from policies import selectors
from policies.services.policy import Target
from tests.monitoring.pages import machines, seeds
from tests.policies.test_policy import pool, save

ADDRESS = "/c/west/policies/cluster/preview/"
TEXT = """# ours
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
topologyManagerPolicy: best-effort  # since May
cpuManagerPolicy: static
systemReserved:
  cpu: "1"
"""
PATH = "/var/lib/kubelet/config.yaml"
SINGLE = Wish(topology_policy="single-numa-node", prefer_closest=True)


def told(text: str = TEXT, version: str = "v1.37.2") -> Facts:
    """A server whose kubelet was told by one file."""
    facts = machines.server(machines.topology(sockets=2, numa=2, cores=8, threads=2))
    assert facts.kubelet is not None
    settings = {
        "topologyManagerPolicy": Setting("best-effort", "file", PATH),
        "cpuManagerPolicy": Setting("static", "file", PATH),
        "systemReserved": Setting({"cpu": "1"}, "file", PATH),
    }
    kubelet = msgspec.structs.replace(
        facts.kubelet,
        version=version,
        settings=settings,
        config_path=PATH,
        files=(KubeletFile(path=PATH, kind="file", sha256="0" * 64, text=text),),
        cpu_state=None,
        memory_state=None,
    )
    return msgspec.structs.replace(facts, kubelet=kubelet, containers=())


@pytest.fixture
def north(db: None) -> Cluster:
    made = seeds.cluster("west", "West")
    seeds.node(made, "server-0", told())
    seeds.unheard(made, "silent-0")
    return made


def text(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.content.decode()))


def test_it_shows_the_file_line_by_line_with_its_comments(as_operator: Client, north: Cluster) -> None:
    save(north, Target("cluster"), SINGLE)
    shown = text(as_operator.get(ADDRESS))
    assert "-topologyManagerPolicy: best-effort # since May" in shown
    assert "+topologyManagerPolicy: single-numa-node # since May" in shown
    assert "# ours" in shown


def test_a_node_that_nobody_tells_of_is_unknown_and_not_unchanged(
    as_operator: Client, north: Cluster
) -> None:
    save(north, Target("cluster"), SINGLE)
    found = {each.node: each.outcome for each in previewed(north)}
    assert found["silent-0"] == "unknown"
    assert "cannot be told" in text(as_operator.get(ADDRESS))


def previewed(cluster: Cluster) -> list[selectors.Previewed]:
    policy = cluster.policies.get()
    return selectors.preview(cluster, policy, selectors.reached(cluster, policy), timezone.now())


@pytest.mark.parametrize("youngest", ["u1", "u3"])
def test_of_pods_that_cannot_all_stay_the_youngest_goes(north: Cluster, youngest: str) -> None:
    """Five want ten of the sixteen CPUs of one of four NUMA nodes; how old they are, the API server tells."""
    first = told(TEXT.replace("static", "none").replace("best-effort", "none"))
    assert first.kubelet is not None
    none = {name: Setting("none", "file", PATH) for name in ("topologyManagerPolicy", "cpuManagerPolicy")}
    kubelet = msgspec.structs.replace(first.kubelet, settings=first.kubelet.settings | none)
    uids = ("u1", "u2", "u3", "u4", "u5")
    containers = tuple(
        Container(id=uid, pod_uid=uid, name="main", qos="Guaranteed", cpu_request=10.0, memory_limit=1 << 30)
        for uid in uids
    )
    seeds.node(north, "full-0", msgspec.structs.replace(first, kubelet=kubelet, containers=containers))
    made = timezone.now()
    Pod.objects.bulk_create(
        Pod(
            cluster=north, uid=uid, kubelet_uid=uid, namespace="shop", name=uid, node_name="full-0",
            created=made + timedelta(seconds=uid == youngest),
        )
        for uid in uids
    )  # fmt: skip
    save(north, Target("cluster"), Wish(topology_policy="single-numa-node"))
    (node,) = [each for each in previewed(north) if each.node == "full-0"]
    assert node.change is not None
    assert node.change.changed is not None
    assert [each.pod.uid for each in node.change.changed.lost] == [youngest]


def test_a_node_that_is_as_wanted_has_nothing_to_do(as_operator: Client, north: Cluster) -> None:
    save(north, Target("cluster"), Wish(topology_policy="best-effort"))
    (node,) = [each for each in previewed(north) if each.node == "server-0"]
    assert node.outcome == "nothing", node.change
    assert "Its file already says what is wanted." in text(as_operator.get(ADDRESS))


def test_a_file_that_cannot_be_edited_is_refused_with_its_line(as_operator: Client, north: Cluster) -> None:
    seeds.node(north, "twice-0", told(TEXT + "cpuManagerPolicy: none\n"))
    save(north, Target("node", "twice-0"), SINGLE)
    shown = text(as_operator.get("/c/west/policies/node/twice-0/preview/"))
    assert "cannot be done here" in shown
    assert f"{PATH} has cpuManagerPolicy twice, line 8" in shown


def test_a_policy_that_is_off_is_imagined_on(as_operator: Client, north: Cluster) -> None:
    save(north, Target("cluster"), SINGLE, on=False)
    shown = text(as_operator.get(ADDRESS))
    assert "this is as if it were on" in shown
    assert "server-0" in shown


def test_nodes_of_a_nearer_policy_and_frozen_ones_are_left_out(north: Cluster) -> None:
    save(north, Target("cluster"), SINGLE)
    save(north, Target("node", "silent-0"), Wish(topology_policy="none"))
    cluster_policy = north.policies.get(level="cluster")
    assert selectors.reached(north, cluster_policy) == ["server-0"]
    made = pool(north, "gold", "pool=gold")
    save(north, Target("pool", made.name))
    assert selectors.reached(north, north.policies.get(level="pool")) == []


def test_who_may_not_preview_is_told_which_role_is_missing(
    as_viewer: Client, as_stranger: Client, as_administrator: Client, north: Cluster
) -> None:
    save(north, Target("cluster"), SINGLE)
    assert as_viewer.get(ADDRESS).status_code == 403
    assert as_stranger.get(ADDRESS).status_code == 403
    assert as_administrator.get(ADDRESS).status_code == 200
    assert "needs the role operator" in text(as_viewer.get("/c/west/policies/cluster/"))


def test_without_a_policy_there_is_nothing_to_preview(as_operator: Client, north: Cluster) -> None:
    answer = as_operator.get(ADDRESS)
    assert answer.status_code == 404
    assert "Nobody has written a policy for this yet." in answer.content.decode()


def test_a_store_that_does_not_answer_is_said(
    as_operator: Client, north: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(north, Target("cluster"), SINGLE)

    def fail() -> None:
        raise hot.StoreError("gone")

    monkeypatch.setattr(hot, "store", fail)
    assert "The newest state of the nodes cannot be read" in text(as_operator.get(ADDRESS))
