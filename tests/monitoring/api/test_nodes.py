"""One node: the report and its parts, live and stored, with age, source and reasons."""

from __future__ import annotations

import pytest

from numacore.kubelet.restart import Survival
from numacore.whatif import surviving
from numacore.whatif.surviving import Outlook
from tests.monitoring.api.conftest import Get
from tests.monitoring.api.inventory import CONTAINERS, GIB, SECRET, Lab


def test_it_reports_a_live_node(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-1/")
    assert found["node"]["name"] == "worker-1"
    assert found["node"]["state"] == "ok"
    assert found["node"]["source"] == "exporter"
    assert found["data"]["live"] is True
    assert found["data"]["stale"] is False
    assert 0 <= found["data"]["age"] < 30
    assert found["data"]["sections"]["containers"]["hash"] == CONTAINERS.hash
    assert found["data"]["sections"]["containers"]["source"] == "exporter"
    report = found["report"]
    assert report["reserved"] == "0"
    assert report["exclusive"] == "2-3"
    assert (report["pinned"], report["pinnable"]) == (2, 7)
    assert report["cpus"][2] == {
        "id": 2,
        "numa": 0,
        "socket": 0,
        "core": 2,
        "owner": "exclusive",
        "busy": 0.25,  # 100 of 400 ticks
        "occupied": True,
        "containers": [0],
    }
    assert found["attributes"]["hostname"] == "worker-1"
    assert found["exporter"] == {
        "node": "worker-1",
        "machine_id": None,
        "boot_id": None,
        "version": "0.1.0",
        "started": None,
    }
    assert found["problems"] == [
        {
            "reader": "memory-state",
            "name": "State of the memory manager",
            "what": "/var/lib/kubelet/memory_manager_state",
            "code": "damaged",
            "cause": "it is damaged: it is empty",
            "text": "it is damaged: it is empty",
            "remedy": "A kubelet does not start with a state file that it cannot read: drain the node, remove this file and restart the "
            "kubelet, which writes a new one.",
            "count": 4,
        }
    ]
    assert found["data"]["ownership_age"] is None
    assert found["endpoint"]["url"] == "http://10.0.0.1:9105"


def test_unknown_fields_are_null_and_not_missing(get: Get, lab: Lab) -> None:
    report = get("nodes/worker-1/")["report"]
    batch = report["containers"][1]
    assert batch["locality"] is None
    assert batch["pages"] is None
    assert batch["container"]["memory_limit"] is None
    assert batch["container"]["runtime"] is None
    assert report["numa"][0]["memory"]["file"] is None


def test_it_shows_what_was_stored_of_a_silent_node(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-2/")
    assert found["node"]["state"] == "no-data"
    assert found["node"]["source"] == "store"
    assert found["data"]["live"] is False
    assert found["data"]["stale"] is True
    assert found["data"]["age"] >= 3600
    assert found["data"]["cause"] == "endpoint-failing"
    assert "connection refused" in found["data"]["cause_text"]
    assert found["data"]["sections"]["containers"]["source"] == "store"
    assert [each["container"]["name"] for each in found["report"]["containers"]] == ["web", "batch"]
    assert found["report"]["busy"] is None
    assert found["exporter"] is None


def test_it_shows_topology_and_attributes(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-1/topology/")
    assert found["hash"] == lab.node.topology_id
    assert found["topology"]["cpus"][5] == {
        "id": 5,
        "socket": 1,
        "die": None,
        "cluster": None,
        "core": 5,
        "numa": 1,
        "online": True,
        "sibling": None,
    }
    assert found["topology"]["nodes"][1]["cpus"] == "4-7"
    assert found["attributes"]["devices"][0]["names"] == ["eth1"]
    assert found["attributes"]["memory"] == {"0": 16 * GIB, "1": 16 * GIB}


def test_it_shows_distances(get: Get, lab: Lab) -> None:
    assert get("nodes/worker-1/distances/") == {
        "numa_nodes": [0, 1],
        "distances": [[10, 21], [21, 10]],
        "performance": [],
    }


def test_it_says_why_a_container_is_pinned_and_what_it_costs(get: Get, lab: Lab) -> None:
    web, batch = get("nodes/worker-1/containers/")["results"]
    assert web["placement"]["kind"] == "exclusive"
    assert web["placement"]["cpu_nodes"] == [0]
    assert web["placement"]["pages"] == {"0": 3 * GIB, "1": GIB}
    assert web["placement"]["locality"] == 0.75
    assert web["placement"]["cost"] == pytest.approx(1.275)
    assert web["placement"]["cross"] == ["memory"]
    assert web["placement"]["cpu_use"] == 1.0
    assert web["pinning"]["code"] == "pinned"
    assert "2 CPUs" in web["pinning"]["text"]
    assert web["memory"]["code"] == "memory-manager-none"
    assert web["memory"]["remedy"]
    assert batch["placement"]["kind"] == "floating"
    assert batch["pinning"]["code"] == "qos"
    assert batch["memory"] is None


def test_sentences_follow_the_callers_language(get: Get, lab: Lab) -> None:
    english = get("nodes/worker-1/containers/", Accept_Language="en")["results"][1]["pinning"]
    assert english["text"].startswith("Not pinned")
    assert english["remedy"].startswith("Give every container")


def test_it_shows_the_kubelet_with_the_origin_of_each_setting(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-1/kubelet/")
    assert found["kubelet"]["settings"]["topologyManagerPolicy"] == {
        "value": "best-effort",
        "source": "drop-in",
        "where": "/etc/kubernetes/kubelet.d/10-numa.conf",
    }
    assert found["kubelet"]["cpu_state"]["default"] == "0-1,4-7"
    assert found["policy"]["cpu_in_force"] == "static"
    assert [each["code"] for each in found["contradictions"]] == ["cpu-policy-differs"]
    assert found["contradictions"][0]["remedy"]
    assert found["restart"]["outcome"] == "refuses"
    assert "differs from state checkpoint policy" in found["restart"]["message"]
    assert found["restart"]["by_chance"] is False


def test_a_start_that_chance_decides_is_said_to_be_one(
    get: Get, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `numacore` tells of overlapping groups of NUMA nodes, without a node that has them."""
    told = Outlook(survival=Survival("the expected machine state is different", chance=True))
    monkeypatch.setattr(surviving, "outlook", lambda facts: told)
    found = get("nodes/worker-1/kubelet/")["restart"]
    assert (found["outcome"], found["by_chance"]) == ("refuses", True)
    assert "it would be chance whether it starts" in found["text"]


def test_a_kubelet_that_nobody_heard_of_is_null(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-2/kubelet/")
    assert found["kubelet"] is None
    assert (found["restart"]["outcome"], found["restart"]["message"]) == ("unknown", None)
    assert found["policy"] is None
    assert found["data"]["cause"] == "endpoint-failing"


def test_it_hands_out_what_the_exporter_sent(get: Get, lab: Lab) -> None:
    sections = get("nodes/worker-1/document/")["sections"]
    assert sorted(sections) == ["containers", "kubelet", "machine", "usage"]
    assert sections["containers"]["containers"][0]["id"] == "containerd://web"
    assert sections["usage"]["cpu"]["busy"] == [300] * 8
    assert get("nodes/worker-2/document/")["sections"] == {}


def test_events_come_newest_first(get: Get, lab: Lab) -> None:
    found = get("nodes/worker-1/events/")
    assert [each["code"] for each in found["results"]] == ["rebooted", "first-seen"]
    assert found["results"][0]["text"] == "rebooted"
    assert found["results"][0]["values"] == {"boot_id": "b"}
    assert [each["code"] for each in get("nodes/worker-1/events/?code=first-seen")["results"]] == [
        "first-seen"
    ]
    assert get("nodes/worker-1/events/?after=2100-01-01T00:00:00Z")["results"] == []
    assert get("nodes/worker-2/events/")["results"] == []


def test_a_topology_is_found_by_its_hash(get: Get, lab: Lab) -> None:
    found = get(f"/api/v1/topologies/{lab.node.topology_id}/")
    assert found["hash"] == lab.node.topology_id
    assert found["nodes"] == 1
    assert len(found["topology"]["cpus"]) == 8


@pytest.mark.parametrize(
    "path",
    [
        "nodes/worker-9/",
        "nodes/worker-9/topology/",
        "nodes/worker-9/events/",
        "nodes/worker-1%00/",
        "nodes/%F0%9F%A6%8A/",
        "/api/v1/clusters/none/nodes/worker-1/",
        "/api/v1/clusters/none/overview/",
        "/api/v1/clusters/none/fleet/",
        "/api/v1/clusters/none/",
        "/api/v1/topologies/none/",
        "/api/v1/endpoints/999999/",
        "/api/v1/endpoints/99999999999999999999999/",
        "/api/v1/nowhere/",
    ],
)
def test_what_is_not_there_is_a_problem_with_a_way_on(get: Get, lab: Lab, path: str) -> None:
    problem = get(path, 404)
    assert problem["status"] == 404
    assert problem["title"] == "Not Found"
    assert problem["detail"]


def test_no_answer_shows_a_secret(get: Get, lab: Lab) -> None:
    for path in (
        "nodes/worker-1/",
        "endpoints/",
        f"/api/v1/endpoints/{lab.endpoint.pk}/",
        "/api/v1/settings/",
    ):
        assert SECRET not in str(get(path))
    assert get("endpoints/")["results"][0]["has_token"] is True
