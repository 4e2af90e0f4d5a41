"""Serves the kubelet's PodResources API (v1) of simulated nodes on their unix sockets.

Messages are written by their field numbers (kubelet 1.34, staging/src/k8s.io/kubelet/pkg/apis/podresources/v1), apart
from what the exporter reads them with, so that the two can disagree and a test can notice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent import futures
from pathlib import Path

import grpc

from numacore.cpuset import CpuSet
from numacore.workload import DeviceClaim
from numasim import managers
from numasim.kubeletstate import Block
from numasim.node import Node
from numasim.running import Running

SOCKET = "var/lib/kubelet/pod-resources/kubelet.sock"
PATH_LIMIT = 107
"""Bytes of a unix socket's path (unix(7): 108 with the ending zero)."""


class SocketPathError(ValueError):
    """A directory whose name is too long for a socket below it."""


def check_path(root: Path) -> None:
    """Raises SocketPathError if the socket's path below this root would be too long."""
    path = os.fsencode(root / SOCKET)
    if len(path) > PATH_LIMIT:
        raise SocketPathError(
            f"{root}: the kubelet's socket below it would have a path of {len(path)} bytes, {PATH_LIMIT} is the most "
            "that Linux takes: choose a directory with a shorter name"
        )


class Server:
    """The sockets of many nodes, in one process."""

    def __init__(self) -> None:
        self._pool = futures.ThreadPoolExecutor(max_workers=4, thread_name_prefix="podresources")
        self._servers: list[grpc.Server] = []
        self._answers: dict[str, tuple[bytes, bytes]] = {}

    def add(self, root: Path, node: Node) -> None:
        """Opens the socket of a node."""
        check_path(root)
        path = root / SOCKET
        path.parent.mkdir(parents=True, exist_ok=True)
        self.update(node)
        server = grpc.server(self._pool, maximum_concurrent_rpcs=8)
        server.add_generic_rpc_handlers([self._handler(node.spec.name)])
        server.add_insecure_port(f"unix://{path}")
        server.start()
        self._servers.append(server)

    def update(self, node: Node) -> None:
        """Takes up what now runs on a node."""
        self._answers[node.spec.name] = (list_response(node), allocatable_response(node))

    def close(self) -> None:
        """Closes all sockets."""
        for stopped in [server.stop(grace=0) for server in self._servers]:
            stopped.wait()
        self._pool.shutdown()

    def _handler(self, name: str) -> grpc.GenericRpcHandler[bytes, bytes]:
        return grpc.method_handlers_generic_handler(
            "v1.PodResourcesLister",
            {
                "List": _method(lambda: self._answers[name][0]),
                "GetAllocatableResources": _method(lambda: self._answers[name][1]),
            },
        )


def _method(answer: Callable[[], bytes]) -> grpc.RpcMethodHandler[bytes, bytes]:
    def call(_request: bytes, _context: grpc.ServicerContext) -> bytes:
        return answer()

    return grpc.unary_unary_rpc_method_handler(call)


def list_response(node: Node) -> bytes:
    """`ListPodResourcesResponse`: exclusive CPUs, memory blocks and devices of every container."""
    return b"".join(_field(1, _pod(running)) for running in node.running.values())


def allocatable_response(node: Node) -> bytes:
    """`AllocatableResourcesResponse`."""
    devices = b"".join(_field(1, _claim(claim)) for claim in _all_devices(node))
    memory = b"".join(_field(3, _block(block)) for block in _all_memory(node))
    return devices + _packed(2, node.allocatable) + memory


def _all_devices(node: Node) -> Iterable[DeviceClaim]:
    names = {"accelerator": node.spec.accelerator, "network": node.spec.network}
    for device in node.spec.machine.attributes.devices:
        if device.kind in names:
            yield DeviceClaim(
                names[device.kind], (device.address,), () if device.numa is None else (device.numa,)
            )


def _all_memory(node: Node) -> Iterable[Block]:
    for numa, table in managers.memory_tables(node).items():
        for kind, row in table.tables.items():
            if row.allocatable:
                yield Block((numa,), kind, row.allocatable)


def _pod(running: list[Running]) -> bytes:
    pod = running[0].pod
    containers = b"".join(_field(3, _container(each)) for each in running)
    return _text(1, pod.name) + _text(2, pod.namespace) + containers


def _container(each: Running) -> bytes:
    devices = b"".join(_field(2, _claim(claim)) for claim in each.place.claims)
    memory = b"".join(_field(4, _block(block)) for block in each.place.blocks)
    return _text(1, each.want.name) + devices + _packed(3, each.place.cpus) + memory


def _claim(claim: DeviceClaim) -> bytes:
    ids = b"".join(_text(2, device) for device in claim.ids)
    return _text(1, claim.resource) + ids + (_field(3, _nodes(claim.numa)) if claim.numa else b"")


def _block(block: Block) -> bytes:
    return _text(1, block.kind) + _number(2, block.size) + _field(3, _nodes(block.numa))


def _nodes(numa: Iterable[int]) -> bytes:
    """`TopologyInfo`. Proto3 leaves a zero out, so NUMA node 0 is an empty message."""
    return b"".join(_field(1, _number(1, node)) for node in numa)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _field(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _field(field, text.encode())


def _packed(field: int, numbers: CpuSet) -> bytes:
    return _field(field, b"".join(map(_varint, numbers))) if numbers else b""
