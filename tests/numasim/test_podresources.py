"""The simulated kubelet's socket speaks the PodResources API."""

from pathlib import Path

import grpc
import pytest

from numaagent.readers import podresources_pb2 as api
from numasim import podresources, scenario
from numasim.node import Node

SPECS = {spec.name: spec for spec in scenario.cluster(8)}


def ask(root: Path, method: str) -> bytes:
    with grpc.insecure_channel(f"unix://{root / podresources.SOCKET}") as channel:
        call = channel.unary_unary(f"/v1.PodResourcesLister/{method}", None, None)
        answer = call(b"", timeout=10)
        assert isinstance(answer, bytes)
        return answer


def test_one_process_serves_many_nodes(place: Path) -> None:
    server = podresources.Server()
    nodes = {name: Node(SPECS[name], 1) for name in ("gpu-xeon-1", "gpu-grace-1", "edge-1")}
    try:
        for name, node in nodes.items():
            server.add(place / name, node)
        for name, node in nodes.items():
            listed = api.ListPodResourcesResponse.FromString(ask(place / name, "List"))
            pods = {(pod.namespace, pod.name) for pod in listed.pod_resources}
            assert pods == {(r[0].pod.namespace, r[0].pod.name) for r in node.running.values()}
            told = {
                (pod.name, container.name): list(container.cpu_ids)
                for pod in listed.pod_resources
                for container in pod.containers
            }
            assert told == {(c.pod.name, c.want.name): list(c.place.cpus) for c in node.containers()}
    finally:
        server.close()


def test_it_says_what_may_be_given_out(place: Path) -> None:
    server = podresources.Server()
    node = Node(SPECS["gpu-xeon-1"], 1)
    try:
        server.add(place, node)
        answer = api.AllocatableResourcesResponse.FromString(ask(place, "GetAllocatableResources"))
    finally:
        server.close()
    assert list(answer.cpu_ids) == [*range(2, 56), *range(58, 112)]
    gpus = [entry for entry in answer.devices if entry.resource_name == "nvidia.com/gpu"]
    assert [[numa.ID for numa in entry.topology.nodes] for entry in gpus] == [[0], [1], [2], [3]]
    memory = {entry.topology.nodes[0].ID for entry in answer.memory if entry.memory_type == "memory"}
    assert memory == {0, 1, 2, 3}


def test_it_answers_with_the_present_after_a_change(place: Path) -> None:
    server = podresources.Server()
    node = Node(SPECS["edge-1"], 1)
    try:
        server.add(place, node)
        before = ask(place, "List")
        node.advance(1800.0)
        server.update(node)
        assert ask(place, "List") != before
    finally:
        server.close()


def test_it_refuses_a_root_whose_socket_path_is_too_long() -> None:
    with pytest.raises(
        podresources.SocketPathError, match="107 is the most that Linux takes: choose a directory"
    ):
        podresources.check_path(Path("/tmp") / ("x" * 70))
