"""The newest state in Redis, where several web and worker processes find it.

A node is a hash: `meta` (everything but the sections) and one field per section, so that a round rewrites only what
changed. The two newest readings lie in the fields `usage:0` and `usage:1`, which take turns; `meta` says which is the
newest. Everything expires, so that a node which nobody collects any more leaves by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import redis

from monitoring.hot.state import Cells, HotNode, Note, Reading, StoreError
from numacore import wire

PREFIX = "numaweb:hot:"
KEEP = 24 * 3600
SECONDS = 2.0
BATCH = 100
"""Nodes of one pipeline."""


class Meta(msgspec.Struct, frozen=True):
    """What a node's hash holds beside its sections."""

    state: HotNode
    """Without sections and readings."""
    turn: int
    """Which of the two usage fields is the newest."""
    compares: bool
    """Whether the other one is the reading before it."""


class Written(msgspec.Struct, frozen=True):
    """What this process last wrote of a node."""

    hashes: dict[str, str]
    turn: int
    fields: frozenset[str]
    usage: bytes | None

    def wrote(self, state: HotNode) -> bool:
        """Whether the reading before this state's newest lies in Redis already."""
        before = state.before
        return before is not None and before.containers is None and before.data is self.usage


NOTHING = Written({}, 1, frozenset(), None)

_pack = msgspec.msgpack.Encoder().encode
_meta = msgspec.msgpack.Decoder(Meta)
_cells = msgspec.msgpack.Decoder(Cells)
_note = msgspec.msgpack.Decoder(Note)
_reading = msgspec.msgpack.Decoder(Reading)


class RedisStore:
    """One connection pool per process; every call is one round trip, or one per `BATCH` nodes."""

    def __init__(self, url: str) -> None:
        self._redis: Any = redis.Redis.from_url(
            url, socket_timeout=SECONDS, socket_connect_timeout=SECONDS, health_check_interval=30
        )
        self._written: dict[int, Written] = {}

    def begin(self) -> None:
        """Another process may have written since: every section is written once more."""
        self._written.clear()

    def put(self, states: Iterable[HotNode]) -> None:
        for batch in _batches(states):
            with self._pipeline() as pipeline:
                for state in batch:
                    self._put(pipeline, state)
                lengths = pipeline.execute()[1::3]
            for state, length in zip(batch, lengths, strict=True):
                if length < len(self._written[state.node].fields):
                    del self._written[state.node]  # Redis came back empty: write everything again

    def _put(self, pipeline: Any, state: HotNode) -> None:
        last = self._written.get(state.node, NOTHING)
        turn, key = 1 - last.turn, f"{PREFIX}node:{state.node}"
        bare = msgspec.structs.replace(state, sections={}, before=None)
        fields: dict[str, bytes] = {"meta": _pack(Meta(bare, turn, state.before is not None))}
        for name, data in state.sections.items():
            if name == wire.USAGE:
                fields[f"usage:{turn}"] = _pack(Reading(data))
            elif last.hashes.get(name) != state.hashes.get(name):
                fields[name] = data
        if state.before is not None and not last.wrote(state):
            fields[f"usage:{last.turn}"] = _pack(state.before)
        pipeline.hset(key, mapping=fields)
        pipeline.hlen(key)
        pipeline.expire(key, KEEP)
        self._written[state.node] = Written(
            state.hashes, turn, last.fields | fields.keys(), state.sections.get(wire.USAGE)
        )

    def get(self, node: int) -> HotNode | None:
        return self.get_many([node]).get(node)

    def get_many(self, nodes: Iterable[int]) -> dict[int, HotNode]:
        found: dict[int, HotNode] = {}
        for batch in _batches(nodes):
            with self._reads() as pipeline:
                for node in batch:
                    pipeline.hgetall(f"{PREFIX}node:{node}")
                answers = pipeline.execute()
            found.update((node, _node(fields)) for node, fields in zip(batch, answers, strict=True) if fields)
        return found

    def sections(self, nodes: Iterable[int], name: str) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for batch in _batches(nodes):
            with self._reads() as pipeline:
                for node in batch:
                    pipeline.hget(f"{PREFIX}node:{node}", name)
                answers = pipeline.execute()
            found.update((node, data) for node, data in zip(batch, answers, strict=True) if data is not None)
        return found

    def forget(self, nodes: Collection[int]) -> None:
        if nodes:
            with self._pipeline() as pipeline:
                pipeline.delete(*(f"{PREFIX}node:{node}" for node in nodes))
                pipeline.srem(f"{PREFIX}watched", *nodes)
        for node in nodes:
            self._written.pop(node, None)

    def put_cells(self, cluster: int, shard: int, block: Cells) -> None:
        with self._pipeline() as pipeline:
            pipeline.hset(f"{PREFIX}cells:{cluster}", str(shard), _pack(block))
            pipeline.expire(f"{PREFIX}cells:{cluster}", KEEP)

    def cells(self, cluster: int) -> list[Cells]:
        with self._reads() as pipeline:
            blocks = pipeline.hvals(f"{PREFIX}cells:{cluster}").execute()[0]
        return [_cells.decode(block) for block in blocks]

    def watch(self, node: int, seconds: float) -> None:
        with self._pipeline() as pipeline:
            pipeline.set(f"{PREFIX}watch:{node}", b"1", px=max(1, int(seconds * 1000)))
            pipeline.sadd(f"{PREFIX}watched", node)

    def watched(self) -> set[int]:
        with self._reads() as pipeline:
            named = sorted(int(node) for node in pipeline.smembers(f"{PREFIX}watched").execute()[0])
            if not named:
                return set()
            alive = pipeline.mget([f"{PREFIX}watch:{node}" for node in named]).execute()[0]
        over = [node for node, mark in zip(named, alive, strict=True) if mark is None]
        if over:
            with self._pipeline() as pipeline:
                pipeline.srem(f"{PREFIX}watched", *over)
        return set(named) - set(over)

    def count(self, name: str, amount: int) -> None:
        with self._pipeline() as pipeline:
            pipeline.hincrby(f"{PREFIX}counts", name, amount)

    def counts(self) -> dict[str, int]:
        with self._reads() as pipeline:
            found = pipeline.hgetall(f"{PREFIX}counts").execute()[0]
        return {name.decode(): int(value) for name, value in found.items()}

    def note(self, name: str, note: Note) -> None:
        with self._pipeline() as pipeline:
            pipeline.hset(f"{PREFIX}notes", name, _pack(note))

    def notes(self) -> dict[str, Note]:
        with self._reads() as pipeline:
            found = pipeline.hgetall(f"{PREFIX}notes").execute()[0]
        return {name.decode(): _note.decode(value) for name, value in found.items()}

    @contextmanager
    def _reads(self) -> Iterator[Any]:
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                yield pipeline
        except redis.RedisError as error:
            raise StoreError(f"Redis cannot be read: {error}") from error

    @contextmanager
    def _pipeline(self) -> Iterator[Any]:
        """Commands that are sent together at the end of the block."""
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                yield pipeline
                pipeline.execute()
        except redis.RedisError as error:
            self._written.clear()  # it may have come back empty: the next round writes every section again
            raise StoreError(f"Redis cannot be written: {error}") from error


def _node(fields: dict[bytes, bytes]) -> HotNode:
    meta = _meta.decode(fields[b"meta"])
    sections = {name: fields[name.encode()] for name in wire.SECTIONS if name.encode() in fields}
    newest, other = fields.get(b"usage:%d" % meta.turn), fields.get(b"usage:%d" % (1 - meta.turn))
    if newest is not None:
        sections[wire.USAGE] = _reading.decode(newest).data
    before = _reading.decode(other) if meta.compares and other is not None else None
    return msgspec.structs.replace(meta.state, sections=sections, before=before)


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
