"""What browsers can subscribe to: the cells of a cluster, and one node. A topic encodes once for all of its browsers."""

from __future__ import annotations

import secrets
import time
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from monitoring import hot, metrics
from monitoring.hot import Cells, Planes
from monitoring.live import frames
from monitoring.live.mailbox import Mailbox
from monitoring.live.payloads import ContainerTick, NodeTick
from numacore import wire

WHOLE_NUMBERS = 2**32
LATE = 10.0
"""Seconds by which news may come late and is then ignored; what is older still was made after our clock went back."""
_json = msgspec.json.Encoder().encode


class Topic:
    """A group of mailboxes with one numbered sequence of messages."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.epoch = secrets.randbelow(WHOLE_NUMBERS)
        self.sequence = 0
        self.mailboxes: set[Mailbox] = set()
        self.sent = metrics.SENT.labels(self.name)

    def whole(self) -> dict[str, Any] | None:
        """The newest whole state as an ASGI message, made once for all; None while there is none."""
        raise NotImplementedError

    def add(self, mailbox: Mailbox) -> None:
        self.mailboxes.add(mailbox)
        metrics.SOCKETS.labels(self.name).inc()

    def remove(self, mailbox: Mailbox) -> None:
        if mailbox in self.mailboxes:
            self.mailboxes.remove(mailbox)
            metrics.SOCKETS.labels(self.name).dec()

    def say(self, **message: Any) -> None:
        """A control message to everybody."""
        text = _json(message).decode()
        for mailbox in list(self.mailboxes):
            mailbox.control(text)

    def renew(self) -> None:
        """Everybody needs the whole state: what came before may have missed something."""
        for mailbox in self.mailboxes:
            mailbox.renew()

    def _next(self) -> int:
        self.sequence = (self.sequence + 1) % WHOLE_NUMBERS
        return self.sequence

    def _spread(self, message: dict[str, Any]) -> None:
        for mailbox in self.mailboxes:
            mailbox.tick(message)


class OverviewTopic(Topic):
    """The cells of one cluster. `load` brings everything, `take` what changed, `beat` tells the browsers."""

    name = "overview"

    def __init__(self, cluster: int) -> None:
        super().__init__()
        self.cluster = cluster
        self.taken = 0.0
        self.loaded = False
        self._now = _unknown(0)
        self._told = _unknown(0)
        self._whole: tuple[int, dict[str, Any]] | None = None
        self._changed = False

    def load(self, blocks: list[Cells], size: int) -> None:
        """The whole state as the store has it; where it is behind what was told already (it came back empty, or was
        read just before), what it lacks stays as it was."""
        before, self._now = self._now, hot.planes(blocks, max(size, len(self._now.busy)))
        newest = max((block.taken for block in blocks), default=0.0)
        if newest < self.taken:
            _fill(self._now.pinned, before.pinned)
            _fill(self._now.busy, before.busy)
        self.taken = max(self.taken, newest)
        self.loaded = True
        self._start()

    def take(self, block: Cells) -> None:
        """Newer cells of some nodes."""
        if not self.loaded:
            return
        positions = block.positions()
        grown = self._grow(int(positions.max(initial=-1)) + 1)
        self._now.pinned[positions] = np.frombuffer(block.pinned, np.uint8)
        self._now.busy[positions] = np.frombuffer(block.busy, np.uint8)
        self.taken = max(self.taken, block.taken)
        self._changed = True
        if grown:
            self._start()

    def beat(self) -> None:
        """One tick to the browsers, if there is news."""
        if not self._changed or not self.loaded:
            return
        self._changed = False
        if not any(not mailbox.paused for mailbox in self.mailboxes):
            self._told, self._whole = _copy(self._now), None
            self._next()
            self._spread({})
            return
        start = self.sequence * frames.LIMIT
        frame = frames.delta(self._told, self._now, self.epoch, self._next(), self.taken, start)
        self._changed = bool(
            (self._told.busy != self._now.busy).any() or (self._told.pinned != self._now.pinned).any()
        )
        self._whole = None
        self._spread({"type": "websocket.send", "bytes": frame})

    def whole(self) -> dict[str, Any] | None:
        """The state that the last tick left the browsers with: the next delta follows it."""
        if not self.loaded:
            return None
        if self._whole is None or self._whole[0] != self.sequence:
            frame = frames.full(self._told, self.epoch, self.sequence, self.taken)
            self._whole = (self.sequence, {"type": "websocket.send", "bytes": frame})
        return self._whole[1]

    def _grow(self, size: int) -> bool:
        more = size - len(self._now.busy)
        if more > 0:
            self._now = Planes(_longer(self._now.pinned, more), _longer(self._now.busy, more))
        return more > 0

    def _start(self) -> None:
        self._told = _copy(self._now)
        self._next()
        self.renew()


class NodeTopic(Topic):
    """One node. The first message has all of its containers, later ones those that changed."""

    name = "node"

    def __init__(self, node: int) -> None:
        super().__init__()
        self.node = node
        self.newest: NodeTick | None = None
        self._whole: tuple[int, dict[str, Any]] | None = None

    def take(self, tick: NodeTick) -> None:
        """A newer state of the node."""
        before = self.newest
        if before is not None and 0 <= before.received - tick.received < LATE:
            return
        self.newest, self._whole = tick, None
        number = self._next()
        if before is None:
            self.renew()
            return
        self._reload_parts(before, tick)
        changed = {name: now for name, now in tick.containers.items() if before.containers.get(name) != now}
        self._spread(self._message(tick, number, changed))

    def whole(self) -> dict[str, Any] | None:
        """Everything that is known now."""
        if self.newest is None:
            return None
        if self._whole is None or self._whole[0] != self.sequence:
            self._whole = (self.sequence, self._message(self.newest, self.sequence, self.newest.containers))
        return self._whole[1]

    def _reload_parts(self, before: NodeTick, after: NodeTick) -> None:
        for part in (wire.MACHINE, wire.KUBELET, wire.CONTAINERS):
            if before.hashes.get(part) != after.hashes.get(part):
                self.say(type="reload-part", part=part)

    def _message(self, tick: NodeTick, number: int, containers: dict[str, ContainerTick]) -> dict[str, Any]:
        text = _json(
            {
                "type": "node",
                "epoch": self.epoch,
                "seq": number,
                "taken": tick.received,
                "age": round(max(0.0, time.time() - tick.received), 3),
                "busy": tick.busy,
                "numa": tick.numa,
                "containers": containers,
                "containers_hash": tick.hashes.get(wire.CONTAINERS),
            }
        )
        return {"type": "websocket.send", "text": text.decode()}


def _unknown(size: int) -> Planes:
    return hot.planes([], size)


def _copy(planes: Planes) -> Planes:
    return Planes(planes.pinned.copy(), planes.busy.copy())


def _fill(plane: NDArray[np.uint8], older: NDArray[np.uint8]) -> None:
    """Puts older cells where nothing is known."""
    part = plane[: len(older)]
    np.copyto(part, older, where=part == hot.UNKNOWN)


def _longer(plane: NDArray[np.uint8], more: int) -> NDArray[np.uint8]:
    return np.concatenate([plane, np.full(more, hot.UNKNOWN, np.uint8)])
