"""The emulated node is what the other tests here take it for."""

from tests.node import pods
from tests.node.lab import NAME, Lab


def test_it_is_a_server_with_two_numa_nodes(lab: Lab) -> None:
    assert lab.run("cat /sys/devices/system/node/node*/cpulist").split() == ["0-3", "4-7"]
    assert lab.run("cat /sys/devices/system/node/node*/distance").split() == ["10", "21", "21", "10"]
    assert lab.configz()["topologyManagerPolicy"] == "single-numa-node"
    [node] = lab.plane.api.items("/api/v1/nodes")
    assert (node["metadata"]["name"], node["status"]["nodeInfo"]["kubeletVersion"]) == (NAME, "v1.37.2")


def test_each_test_meets_it_without_what_an_earlier_one_did(lab: Lab) -> None:
    lab.plane.api.create(pods.pinned("one", cpus=2))
    lab.until_phase("one", "Running")
    lab.configure(("topologyManagerPolicy: single-numa-node", "topologyManagerPolicy: none"))
    lab.fresh()
    assert lab.plane.api.items("/api/v1/pods") == []
    assert lab.state("cpu_manager_state").get("entries", {}) == {}
    assert "topologyManagerPolicy: single-numa-node" in lab.settings()
