"""The WebSockets: who may look, what a browser may say, and its mailbox at the hub. Payloads: `monitoring.live`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, Literal, cast

import msgspec
from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from monitoring import hot, metrics, selectors
from monitoring.live import guard, hub
from monitoring.live.guard import Person
from monitoring.live.mailbox import Mailbox, Send
from monitoring.live.together import Together
from monitoring.live.topics import Topic

INBOUND_BYTES = 1024
INBOUND_RATE = (20, 10.0)
"""Messages in so many seconds."""
POLICY_VIOLATION = 1008
REFUSALS = {"signed-out": 4401, "forbidden": 4403, "unknown": 4404, "too-many": 4429}


class Wish(msgspec.Struct, frozen=True):
    """What a browser may say."""

    type: Literal["resync", "pause", "resume"]


_wish = msgspec.json.Decoder(Wish)
_people: Together[str, Person] = Together(guard.people)
_clusters: Together[str, int] = Together(selectors.cluster_ids)
_nodes: Together[tuple[str, str], int] = Together(selectors.node_ids)


class RefusedError(Exception):
    """This browser may not look; the text is a key of REFUSALS."""


class LiveConsumer(AsyncWebsocketConsumer):
    """What both sockets have in common. No channel layer: the hub does the spreading, at a tenth of the cost."""

    channel_layer_alias = "none"
    mailbox: Mailbox | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Ends with the socket, or when the hub gave up on a browser that does not read."""
        self.given_up = asyncio.Event()
        self.heard_at: deque[float] = deque(maxlen=INBOUND_RATE[0])

        async def receive_or_end() -> Any:
            tasks = [asyncio.ensure_future(receive()), asyncio.ensure_future(self.given_up.wait())]
            done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()
            return tasks[0].result() if tasks[0] in done else {"type": "websocket.disconnect", "code": 1013}

        await super().__call__(scope, receive_or_end, send)

    async def dispatch(self, message: Any) -> None:
        """As the base class, without a walk to another thread for each message: only `Together` uses the database."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        await self.accept()
        key = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME, "")
        try:
            person = await self.authorise(key)
            topic = await self.topic()
            if not hub.enter(person.user):
                raise RefusedError("too-many")
        except RefusedError as refusal:
            await self.refuse(str(refusal))
            return
        self.mailbox = Mailbox(cast(Send, self.base_send), topic, person.user, key)
        self.mailbox.control(hello(topic))
        self.serving = asyncio.ensure_future(self.serve(topic, self.mailbox))
        self.serving.add_done_callback(lambda _: hub.leave(person.user))

    async def serve(self, topic: Topic, mailbox: Mailbox) -> None:
        try:
            await hub.run(topic, mailbox)
        finally:
            self.given_up.set()

    async def authorise(self, key: str) -> Person:
        person = await _people.ask(key) if key.isascii() and key.isalnum() else None
        if person is None:
            raise RefusedError("signed-out")
        if not person.may_read:
            raise RefusedError("forbidden")
        return person

    async def topic(self) -> Topic:
        """What this socket is about; raises RefusedError."""
        raise NotImplementedError

    async def refuse(self, code: str) -> None:
        metrics.REFUSED.labels(code).inc()
        await self.send(text_data=f'{{"type":"refused","code":"{code}"}}')
        await self.close(REFUSALS[code])

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.mailbox is None or self.mailbox.closing:
            return
        if self.too_much(text_data, bytes_data):
            self.mailbox.close(POLICY_VIOLATION, "too-much")
            return
        try:
            wish = _wish.decode(text_data or "")
        except msgspec.DecodeError:
            self.mailbox.close(POLICY_VIOLATION, "nonsense")
            return
        if wish.type == "resync":
            self.mailbox.renew()
        else:
            self.mailbox.pause(wish.type == "pause")

    def too_much(self, text_data: str | None, bytes_data: bytes | None) -> bool:
        now, (count, seconds) = time.monotonic(), INBOUND_RATE
        often = len(self.heard_at) == count and now - self.heard_at[0] < seconds
        self.heard_at.append(now)
        return often or bytes_data is not None or len(text_data or "") > INBOUND_BYTES

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - the signature is Channels'
        if self.mailbox is not None:
            self.serving.cancel()
            await asyncio.wait([self.serving])


class OverviewConsumer(LiveConsumer):
    """The cells of one cluster."""

    async def topic(self) -> Topic:
        cluster = await _clusters.ask(self.scope["url_route"]["kwargs"]["cluster"])
        if cluster is None:
            raise RefusedError("unknown")
        return await hub.overview(cluster)


class NodeConsumer(LiveConsumer):
    """One node."""

    async def topic(self) -> Topic:
        wanted = self.scope["url_route"]["kwargs"]
        known = (
            "\0" not in wanted["node"]
        )  # no name has it, and one such question would spoil all of its time
        node = await _nodes.ask((wanted["cluster"], wanted["node"])) if known else None
        if node is None:
            raise RefusedError("unknown")
        return await hub.node(node)


def hello(topic: Topic) -> str:
    """The first message: what the numbers that follow mean."""
    return msgspec.json.encode(
        {
            "type": "hello",
            "topic": topic.name,
            "epoch": topic.epoch,
            "unit": hot.UNIT,
            "unknown": hot.UNKNOWN,
            "period": float(settings.NUMAWEB_COLLECT_PERIOD),
            "tick": float(settings.NUMAWEB_LIVE_TICK),
            "watch": float(settings.NUMAWEB_LIVE_WATCH),
        }
    ).decode()
