"""The kubelet's PodResources socket: what it tells, and when it does not answer."""

from __future__ import annotations

import shutil
import socket as sockets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaagent.readers import podresources_pb2 as api
from numaagent.readers.files import Files
from numaagent.readers.podresources import MAX_AGE, Client
from numacore.cpuset import CpuSet
from numacore.workload import DeviceClaim, MemoryBlock
from tests.numaagent import trees
from tests.numaagent.conftest import Open, seen
from tests.numaagent.kubelet import Socket, nodes, pod
from tests.numaagent.test_containers import NAMES, SYSTEMD_V2, WEB


@pytest.fixture
def root() -> Iterator[Path]:
    """A short path: a Unix socket's has at most 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="na"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def socket(root: Path) -> Iterator[Socket]:
    web = api.ContainerResources(
        name="web",
        cpu_ids=[4, 5],
        memory=[api.ContainerMemory(memory_type="memory", size=1 << 30, topology=nodes(1))],
        devices=[
            api.ContainerDevices(resource_name="vendor.com/nic", device_ids=["a"], topology=nodes(0)),
            api.ContainerDevices(resource_name="vendor.com/nic", device_ids=["b"], topology=nodes(1)),
            api.ContainerDevices(resource_name="vendor.com/gpu", device_ids=["g0"]),
        ],
    )
    found = Socket(
        root / "var/lib/kubelet/pod-resources/kubelet.sock",
        api.ListPodResourcesResponse(
            pod_resources=[
                pod("shop", "web-0", web, api.ContainerResources(name="side-car")),
                pod("kube-system", "new-pod", api.ContainerResources(name="main", cpu_ids=[6])),
            ]
        ),
        api.AllocatableResourcesResponse(
            cpu_ids=range(1, 8),
            memory=[api.ContainerMemory(memory_type="memory", size=5, topology=nodes(0))],
            devices=[
                api.ContainerDevices(resource_name="vendor.com/nic", device_ids=["c"], topology=nodes(1)),
                api.ContainerDevices(resource_name="vendor.com/nic", device_ids=["a"], topology=nodes(0)),
                api.ContainerDevices(resource_name="vendor.com/nic", device_ids=["b"], topology=nodes(1)),
                api.ContainerDevices(resource_name="vendor.com/nic", device_ids=["x"], topology=nodes(1, 0)),
                api.ContainerDevices(resource_name="vendor.com/gpu", device_ids=["g0"]),
            ],
        ),
    )
    yield found
    found.stop()


def ask(root: Path, socket: Socket, client: Client, now: float = 0.0) -> object:
    return client.read(str(socket.path), now, 1_000.0 + now, required=True)


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    made = Client(Files(str(root)), timeout=0.2)
    yield made
    made.close()


def causes(client: Client) -> list[str]:
    return [problem.cause for problem in client._files.problems.listed()]


def test_it_tells_what_each_container_owns(open_node: Open, root: Path, socket: Socket) -> None:
    socket.start()
    found = seen(open_node(trees.build(SYSTEMD_V2 + NAMES, root)))
    web = found.container(f"{WEB}.scope")
    assert web.exclusive == CpuSet.parse("4-5")
    assert web.memory_blocks == (MemoryBlock("memory", 1 << 30, (1,)),)
    assert web.devices == (
        DeviceClaim("vendor.com/nic", ("a", "b"), (0, 1)),
        DeviceClaim("vendor.com/gpu", ("g0",), ()),
    )
    [side] = [each for each in found.containers if each.name == "side-car"]
    assert side.exclusive == CpuSet()
    assert found.kubelet.allocatable_cpus == CpuSet.parse("1-7")
    assert found.kubelet.allocatable_memory == (MemoryBlock("memory", 5, (0,)),)
    assert found.kubelet.allocatable_devices == (
        DeviceClaim("vendor.com/gpu", ("g0",), ()),
        DeviceClaim("vendor.com/nic", ("a",), (0,)),
        DeviceClaim("vendor.com/nic", ("x",), (0, 1)),
        DeviceClaim("vendor.com/nic", ("b", "c"), (1,)),
    )


def test_it_keeps_containers_that_have_no_group_here(open_node: Open, root: Path, socket: Socket) -> None:
    socket.start()
    found = seen(open_node(trees.build(SYSTEMD_V2 + NAMES, root)))
    new = found.container("kube-system/new-pod/main")
    assert (new.cgroup, new.namespace, new.pod, new.name) == (None, "kube-system", "new-pod", "main")
    assert new.exclusive == CpuSet([6])
    assert found.usage.containers is not None
    assert found.usage.containers.cpu_time[-1] is None


def test_it_gives_up_on_a_socket_that_hangs_and_keeps_the_last_answer(
    root: Path, socket: Socket, client: Client
) -> None:
    socket.start()
    first = ask(root, socket, client, 10.0)
    assert first is not None
    socket.hang = True
    before = time.monotonic()
    assert ask(root, socket, client, 20.0) == first
    assert time.monotonic() - before < 1.0
    assert client.stale_since == 1_010.0
    assert causes(client) == ["the kubelet did not answer within 0.2 s; see whether it is busy or stuck"]
    assert ask(root, socket, client, 11.0 + MAX_AGE) is None
    assert client.stale_since is None


def test_it_knows_a_kubelet_without_the_second_call(root: Path, socket: Socket, client: Client) -> None:
    socket.start(old=True)
    found = client.read(str(socket.path), 0.0, 0.0, required=True)
    assert found is not None
    assert (found.allocatable_cpus, found.allocatable_devices) == (None, None)
    assert causes(client) == []


def test_it_knows_a_kubelet_that_has_the_second_call_switched_off(
    root: Path, socket: Socket, client: Client
) -> None:
    """The gate KubeletPodResourcesGetAllocatable, before 1.28: devices are unknown, not none."""
    socket.switched_off = "Pod Resources API GetAllocatableResources disabled"
    socket.start()
    found = client.read(str(socket.path), 0.0, 0.0, required=True)
    assert found is not None
    assert found.allocatable_devices is None
    assert found.containers["shop", "web-0", "web"].cpus == CpuSet([4, 5])
    assert causes(client) == []


def test_a_device_whose_name_cannot_be_kept_is_refused_with_its_cause(
    root: Path, socket: Socket, client: Client
) -> None:
    socket.allowed.devices.append(api.ContainerDevices(resource_name="vendor.com/nic", device_ids=["a\0b"]))
    socket.start()
    assert client.read(str(socket.path), 0.0, 0.0, required=True) is None
    assert causes(client) == ["its answer cannot be used: a name has a NUL character"]


def test_it_does_not_take_empty_for_nothing_may_be_given(root: Path, socket: Socket, client: Client) -> None:
    socket.allowed = api.AllocatableResourcesResponse()
    socket.start()
    found = client.read(str(socket.path), 0.0, 0.0, required=True)
    assert found is not None
    assert (found.allocatable_cpus, found.allocatable_memory) == (None, None)
    assert found.allocatable_devices == ()


def test_it_says_that_nobody_answers(root: Path, client: Client) -> None:
    path = root / "kubelet.sock"
    with sockets.socket(sockets.AF_UNIX) as left:
        left.bind(str(path))
    assert client.read(str(path), 0.0, 0.0, required=True) is None
    assert causes(client) == [
        "nobody answers on the socket; see whether the kubelet runs, and whether its folder is mounted here"
    ]


def test_it_says_that_there_is_no_socket(root: Path, client: Client) -> None:
    assert client.read(str(root / "kubelet.sock"), 0.0, 0.0, required=True) is None
    (root / "file").write_text("")
    assert client.read(str(root / "file"), 0.0, 0.0, required=True) is None
    assert causes(client) == ["it is not a socket"]


def test_it_refuses_ids_that_cannot_be(root: Path, socket: Socket, client: Client) -> None:
    socket.listed.pod_resources[0].containers[0].cpu_ids.append(1 << 40)
    socket.start()
    assert client.read(str(socket.path), 0.0, 0.0, required=True) is None
    assert causes(client)[0].startswith("its answer cannot be used: ")


def test_it_refuses_names_that_cannot_be(root: Path, socket: Socket, client: Client) -> None:
    socket.listed.pod_resources[0].name = "web\0"
    socket.start()
    assert client.read(str(socket.path), 0.0, 0.0, required=True) is None
    assert causes(client) == ["its answer cannot be used: a name has a NUL character"]


def test_it_says_that_the_path_is_too_long(root: Path, client: Client) -> None:
    folder = root / ("x" * 120)
    folder.mkdir()
    with sockets.socket(sockets.AF_UNIX) as left:
        left.bind(str(root / "s"))
    (root / "s").rename(folder / "s")
    assert client.read(str(folder / "s"), 0.0, 0.0, required=True) is None
    assert causes(client) == ["the path of a socket has at most 107 bytes; name a shorter root"]
