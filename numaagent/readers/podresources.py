"""What the kubelet's PodResources socket tells: exclusive CPUs, memory and devices of each container, and what may be
given out. gRPC over a Unix socket, version 1 of the API.

A call has a deadline and runs in a thread of the slow readers, so a socket that hangs delays nobody's scrape.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import TypeVar

import grpc
import msgspec
from google.protobuf.message import Message

from numaagent.readers import podresources_pb2 as api
from numaagent.readers.files import Files, Source
from numacore.cpuset import CpuSet, CpuSetError
from numacore.workload import DeviceClaim, MemoryBlock

TIMEOUT = 2.0
"""Seconds that one call may take."""
MAX_AGE = 600.0
"""Seconds for which the last good answer still stands when the socket fails."""
MAX_MESSAGE = 16 * 1024 * 1024
MAX_PATH = 107
"""Bytes of a Unix socket's path (unix(7))."""
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_reconnect_backoff_ms", 10_000),
)


Response = TypeVar("Response", bound=Message)


class Told(msgspec.Struct, frozen=True):
    """What the socket tells of one container."""

    cpus: CpuSet
    memory: tuple[MemoryBlock, ...]
    devices: tuple[DeviceClaim, ...]


class PodResources(msgspec.Struct, frozen=True):
    """One answer. `containers` by namespace, pod and container name."""

    containers: dict[tuple[str, str, str], Told]
    allocatable_cpus: CpuSet | None
    allocatable_memory: tuple[MemoryBlock, ...] | None
    allocatable_devices: tuple[DeviceClaim, ...] | None
    """Every healthy device, used or not, those with the same NUMA nodes together; None = this kubelet does not tell."""


class Client:
    """Asks one socket, and keeps its last good answer."""

    def __init__(self, files: Files, timeout: float = TIMEOUT) -> None:
        self._files = files
        self._timeout = timeout
        self._channel: grpc.Channel | None = None
        self._path: str | None = None
        self._last: PodResources | None = None
        self._answered = 0.0
        self._answered_at = 0.0
        self.stale_since: float | None = None
        """Wall clock of the answer that is given, if the newest attempt failed."""

    def read(self, path: str, now: float, wall: float, *, required: bool) -> PodResources | None:
        """The newest answer, or the last good one; None = the kubelet tells nothing.

        `now`: monotonic seconds; `wall`: seconds since 1970.
        """
        source = self._files.reader("podresources")
        found = self._ask(source, path, required)
        if found is not None:
            self._last, self._answered, self._answered_at = found, now, wall
        elif now - self._answered > MAX_AGE:
            self._last = None
        self.stale_since = self._answered_at if found is None and self._last is not None else None
        return self._last

    def close(self) -> None:
        """Ends the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _ask(self, source: Source, path: str, required: bool) -> PodResources | None:
        try:
            place = self._files.place(path)
            if not stat.S_ISSOCK(os.lstat(place).st_mode):
                source.fail(path, "it is not a socket")
                return None
        except OSError as error:
            source.refused(path, error, required)
            return None
        if len(place.encode()) > MAX_PATH:
            source.fail(path, f"the path of a socket has at most {MAX_PATH} bytes; name a shorter root")
            return None
        return self._answer(source, path, place)

    def _answer(self, source: Source, path: str, place: str) -> PodResources | None:
        if self._channel is None or self._path != place:
            self.close()
            self._channel, self._path = grpc.insecure_channel(f"unix://{place}", options=_OPTIONS), place
        try:
            listed = self._call("List", api.ListPodResourcesRequest(), api.ListPodResourcesResponse)
            allowed = self._allocatable()
            if b"\0" in b"".join((*_names(listed), *_device_names(allowed.devices if allowed else ()))):
                source.fail(path, "its answer cannot be used: a name has a NUL character")
                return None
            return _read(listed, allowed)
        except grpc.RpcError as error:
            source.fail(path, _cause(error, self._timeout))
        except CpuSetError as error:
            source.fail(path, f"its answer cannot be used: {error}")
        return None

    def _call(self, method: str, request: Message, response: type[Response]) -> Response:
        assert self._channel is not None
        call = self._channel.unary_unary(
            f"/v1.PodResourcesLister/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        answer = call(request, timeout=self._timeout)
        assert isinstance(answer, response)
        return answer

    def _allocatable(self) -> api.AllocatableResourcesResponse | None:
        """Kubelets before 1.23 do not have this call."""
        try:
            return self._call(
                "GetAllocatableResources", api.AllocatableResourcesRequest(), api.AllocatableResourcesResponse
            )
        except grpc.RpcError as error:
            if _code(error) in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN):
                return None
            raise


def _code(error: grpc.RpcError) -> grpc.StatusCode | None:
    ask = getattr(error, "code", None)  # the stubs leave it out
    code = ask() if callable(ask) else None
    return code if isinstance(code, grpc.StatusCode) else None


def _cause(error: grpc.RpcError, timeout: float) -> str:
    code = _code(error)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"the kubelet did not answer within {timeout:g} s; see whether it is busy or stuck"
    if code is grpc.StatusCode.UNAVAILABLE:
        return "nobody answers on the socket; see whether the kubelet runs, and whether its folder is mounted here"
    return f"the kubelet refused: {code.name if code else 'unknown error'}"


def _names(listed: api.ListPodResourcesResponse) -> Iterable[bytes]:
    for pod in listed.pod_resources:
        yield from (pod.name.encode(), pod.namespace.encode())
        for each in pod.containers:
            yield each.name.encode()
            yield from (block.memory_type.encode() for block in each.memory)
            yield from _device_names(each.devices)


def _device_names(entries: Iterable[api.ContainerDevices]) -> Iterable[bytes]:
    for entry in entries:
        yield from (name.encode() for name in (entry.resource_name, *entry.device_ids))


def _read(
    listed: api.ListPodResourcesResponse, allowed: api.AllocatableResourcesResponse | None
) -> PodResources:
    containers = {
        (pod.namespace, pod.name, each.name): Told(
            CpuSet(each.cpu_ids), _memory(each.memory), _devices(each.devices)
        )
        for pod in listed.pod_resources
        for each in pod.containers
    }
    return PodResources(
        containers=containers,
        # Empty without the static policies, which is not the same as "none may be given".
        allocatable_cpus=CpuSet(allowed.cpu_ids) if allowed and allowed.cpu_ids else None,
        allocatable_memory=_memory(allowed.memory) if allowed and allowed.memory else None,
        allocatable_devices=_by_place(allowed.devices) if allowed else None,
    )


def _memory(blocks: Iterable[api.ContainerMemory]) -> tuple[MemoryBlock, ...]:
    return tuple(
        MemoryBlock(block.memory_type, block.size, tuple(sorted(node.ID for node in block.topology.nodes)))
        for block in blocks
    )


def _devices(entries: Iterable[api.ContainerDevices]) -> tuple[DeviceClaim, ...]:
    """One claim for each resource; the kubelet sends an entry for each resource and NUMA node."""
    ids: dict[str, list[str]] = {}
    nodes: dict[str, set[int]] = {}
    for entry in entries:
        ids.setdefault(entry.resource_name, []).extend(entry.device_ids)
        nodes.setdefault(entry.resource_name, set()).update(node.ID for node in entry.topology.nodes)
    return tuple(DeviceClaim(name, tuple(ids[name]), tuple(sorted(nodes[name]))) for name in ids)


def _by_place(entries: Iterable[api.ContainerDevices]) -> tuple[DeviceClaim, ...]:
    """A claim for each resource and set of NUMA nodes: which device lies where matters here."""
    found: dict[tuple[str, tuple[int, ...]], set[str]] = {}
    for entry in entries:
        numa = tuple(sorted({node.ID for node in entry.topology.nodes}))
        found.setdefault((entry.resource_name, numa), set()).update(entry.device_ids)
    return tuple(DeviceClaim(name, tuple(sorted(ids)), numa) for (name, numa), ids in sorted(found.items()))
