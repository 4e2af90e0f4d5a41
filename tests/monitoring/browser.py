"""What a page does with the frames of an overview: for tests that read as a browser reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from asgiref.testing import ApplicationCommunicator
from numpy.typing import NDArray

from monitoring.live import frames


class Page:
    """Planes as a page has them. `gap`: it would ask for the whole state again."""

    def __init__(self) -> None:
        self.pinned: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.busy: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.epoch = self.sequence = -1
        self.taken = 0.0
        self.gap = False

    def hear(self, frame: bytes) -> None:
        magic, version, kind, epoch, sequence, base, size, self.taken = frames.HEADER.unpack_from(frame)
        assert (magic, version, base) == (b"NW", 1, 0)
        body = np.frombuffer(frame, np.uint8, offset=frames.HEADER.size)
        if kind == frames.FULL:
            assert len(body) == 2 * size
            self.pinned, self.busy = body[:size].copy(), body[size:].copy()
            self.gap = False
        elif epoch != self.epoch or sequence != self.sequence + 1 or size != len(self.busy):
            self.gap = True
        else:
            body = self._change(self.pinned, body, size)
            body = self._change(self.busy, body, size)
            assert not len(body)
        self.epoch, self.sequence = epoch, sequence

    @staticmethod
    def _change(plane: NDArray[np.uint8], body: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
        length = (size + 7) // 8
        marks = np.unpackbits(body[:length], bitorder="little", count=size).astype(bool)
        count = int(marks.sum())
        plane[marks] = body[length : length + count]
        return body[length + count :]


class Socket(ApplicationCommunicator):
    """A WebSocket to an ASGI application, without a server between."""

    def __init__(self, application: Any, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": headers,
            "subprotocols": [],
            "client": ("127.0.0.1", 50000),
        }
        super().__init__(application, scope)

    async def connect(self) -> bool:
        """Whether the server takes the socket."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(5)
        return bool(answer["type"] == "websocket.accept")

    async def say(self, text: str | None = None, data: bytes | None = None) -> None:
        await self.send_input({"type": "websocket.receive", "text": text, "bytes": data})

    async def leave(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(5)
