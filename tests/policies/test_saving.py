"""Tables of policies, rollouts and clean-ups as files."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from django.test import Client
from django.utils import timezone

from monitoring.models import Cluster
from numacore.change.wish import Wish
from numacore.diagnosis import Reason
from policies.models import Act, Cleanup, CleanupPod, Original
from policies.services import policy
from policies.services.policy import Target
from policies.services.who import Who
from tests.policies import rollouts
from tests.policies.rollouts import Outcome, State

ADA = Who("ada", "10.0.0.9")


def lines(client: Client, address: str, table: str, **query: str) -> list[dict[str, str]]:
    answer = client.get(address, {"save": f"{table}.csv", **query})
    assert answer.status_code == 200, answer.content
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def values(client: Client, address: str, table: str, **query: str) -> list[dict[str, Any]]:
    answer = client.get(address, {"save": f"{table}.json", **query})
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = json.loads(answer.getvalue())
    return found


def test_policies_and_where_nodes_stand_are_saved(west: Cluster, as_viewer: Client) -> None:
    now = timezone.now()
    policy.save(west, Target("cluster"), Wish(topology_policy="restricted"), True, ADA, now)
    policy.save_pool(west, "gold", "tier=gold", ADA, now)
    west.nodes.filter(name="slow-0").update(topology_policy="none")
    address = "/c/west/policies/"
    cluster, pool = values(as_viewer, address, "policies")
    assert (cluster["level"], cluster["policy"]["topology_policy"], cluster["on"]) == (
        "cluster",
        "restricted",
        True,
    )
    assert (pool["name"], pool["policy"], pool["nodes"]) == ("gold", None, None)
    assert {each["node"] for each in lines(as_viewer, address, "nodes")} == {
        "fast-0",
        "fast-1",
        "slow-0",
        "plain-0",
    }
    (differing,) = values(as_viewer, address, "nodes", show="differs")
    assert differing["node"] == "slow-0"
    assert differing["differences"][0] == {
        "field": "topologyManagerPolicy",
        "is_now": "none",
        "wanted": "restricted",
    }
    (version,) = lines(as_viewer, f"{address}cluster/", "versions")
    assert (version["version"], version["by"]) == ("1", "ada")


def test_rollouts_their_nodes_and_a_log_are_saved_whole(west: Cluster, as_viewer: Client) -> None:
    made = rollouts.rollout(west, State.STOPPED, nodes=60, ended=timezone.now())
    rollouts.settle(made, "node-0", Outcome.CHANGED)
    failed = rollouts.settle(
        made, "node-1", Outcome.FAILED, Reason("kubelet-dies", {"times": 3, "status": 255})
    )
    failed.answer = {"words": "=HYPERLINK(1)"}
    failed.save()
    for number in range(230):
        Act.objects.create(node=failed, kind="note", subject=f"{number}", state="done", at=timezone.now())
    (listed,) = lines(as_viewer, "/c/west/rollouts/", "rollouts")
    assert (listed["state"], listed["nodes"], listed["ended"]) == ("stopped", "60", "2")
    address = f"/c/west/rollouts/{made.pk}/"
    assert len(lines(as_viewer, address, "nodes")) == 60
    (bad,) = lines(as_viewer, address, "nodes", show="bad")
    assert (bad["name"], bad["outcome"], bad["said"]) == ("node-1", "failed", "'=HYPERLINK(1)")
    assert "255" in bad["cause"]
    assert len(lines(as_viewer, address, "log", node="node-1")) == 230
    assert lines(as_viewer, address, "log") == []


def test_clean_ups_and_their_pods_are_saved(west: Cluster, as_viewer: Client) -> None:
    made = Cleanup.objects.create(cluster=west, state="done", made=timezone.now(), made_by="otto")
    for number in range(60):
        CleanupPod.objects.create(
            cleanup=made, uid=f"{number}", namespace="shop", name=f"web-{number}", owner_kind="Job",
            owner_name="web", reason="TopologyAffinityError", outcome="deleted",
        )  # fmt: skip
    (listed,) = lines(as_viewer, "/c/west/cleanups/", "cleanups")
    assert (listed["state"], listed["made_by"]) == ("done", "otto")
    address = f"/c/west/cleanups/{made.pk}/"
    assert len(lines(as_viewer, address, "pods")) == 60
    assert lines(as_viewer, address, "owners") == [{"owner": "shop/Job web", "pods": "60"}]


def test_what_stands_changed_is_saved(west: Cluster, as_viewer: Client) -> None:
    Original.objects.create(
        cluster=west, node_name="fast-0", uid="", path="/etc/kubelet.yaml", drop_in=False, taken=timezone.now(),
        fields={"topologyManagerPolicy": "none"},
    )  # fmt: skip
    (line,) = values(as_viewer, "/c/west/policies/restore/", "changed")
    assert (line["node"], line["why_not"]) == ("fast-0", None)
    assert line["changes"] == [{"field": "topologyManagerPolicy", "now": None, "original": "none"}]


def test_a_table_is_for_whoever_may_read_its_page(west: Cluster, as_stranger: Client, client: Client) -> None:
    for address in ("/c/west/policies/", "/c/west/rollouts/", "/c/west/cleanups/"):
        assert as_stranger.get(address, {"save": "nodes.csv"}).status_code == 403
        assert client.get(address, {"save": "nodes.csv"}).status_code == 302
