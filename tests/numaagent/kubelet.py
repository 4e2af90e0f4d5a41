"""A kubelet's PodResources socket for tests: the real gRPC library on a real Unix socket."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from numaagent.readers import podresources_pb2 as api


class Socket:
    """Answers List and GetAllocatableResources; `hang` makes it silent, `old` makes it lack the second call, `switched_off` makes it
    refuse that with these words, as a kubelet does whose gate is off."""

    def __init__(
        self, path: Path, listed: api.ListPodResourcesResponse, allowed: api.AllocatableResourcesResponse
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.listed = listed
        self.allowed = allowed
        self.hang = False
        self.switched_off = ""
        self.calls = 0
        self._released = threading.Event()
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        self._methods = {"List": self._list, "GetAllocatableResources": self._allocatable}

    def start(self, *, old: bool = False) -> None:
        methods = {
            name: self._handler(call) for name, call in self._methods.items() if not (old and name != "List")
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1.PodResourcesLister", methods),)
        )
        self._server.add_insecure_port(f"unix://{self.path}")
        self._server.start()

    def stop(self) -> None:
        self._released.set()
        self._server.stop(None).wait()

    def _handler(self, call: Callable[[], Any]) -> grpc.RpcMethodHandler[bytes, Any]:
        def answer(_: bytes, context: grpc.ServicerContext) -> Any:
            self.calls += 1
            if self.switched_off and call == self._allocatable:
                context.abort(grpc.StatusCode.UNKNOWN, self.switched_off)
            if self.hang:
                self._released.wait(10)
            return call()

        return grpc.unary_unary_rpc_method_handler(
            answer, response_serializer=lambda message: message.SerializeToString()
        )

    def _list(self) -> api.ListPodResourcesResponse:
        return self.listed

    def _allocatable(self) -> api.AllocatableResourcesResponse:
        return self.allowed


def nodes(*ids: int) -> api.TopologyInfo:
    return api.TopologyInfo(nodes=[api.NUMANode(ID=node) for node in ids])


def pod(namespace: str, name: str, *containers: api.ContainerResources) -> api.PodResources:
    return api.PodResources(namespace=namespace, name=name, containers=containers)
