"""The WebSockets: who may look, what a browser may say, and its mailbox at the hub. Payloads: `monitoring.live`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, Literal, cast

import msgspec
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from monitoring import hot, metrics, selectors
from monitoring.live import guard, hub
from monitoring.live.mailbox import Mailbox, Send
from monitoring.live.topics import Topic
from monitoring.models import Cluster, Node

INBOUND_BYTES = 1024
INBOUND_RATE = (20, 10.0)
"""Messages in so many seconds."""
POLICY_VIOLATION = 1008
REFUSALS = {"signed-out": 4401, "forbidden": 4403, "unknown": 4404, "too-many": 4429}


class Wish(msgspec.Struct, frozen=True):
    """What a browser may say."""

    type: Literal["resync", "pause", "resume"]


_wish = msgspec.json.Decoder(Wish)


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

    async def connect(self) -> None:
        await self.accept()
        try:
            await self.authorise()
            topic = await self.topic()
        except RefusedError as refusal:
            await self.refuse(str(refusal))
            return
        # The session middleware looks at its session before each message; ours never change it.
        send = cast(Send, self.scope.get("direct_send", self.base_send))
        self.mailbox = Mailbox(send, topic, self.user().pk, self.session_key())
        self.mailbox.control(hello(topic))
        self.serving = asyncio.ensure_future(self.serve(topic, self.mailbox))

    async def serve(self, topic: Topic, mailbox: Mailbox) -> None:
        try:
            await hub.run(topic, mailbox)
        finally:
            self.given_up.set()

    async def authorise(self) -> None:
        user = self.user()
        if not user.is_authenticated:
            raise RefusedError("signed-out")
        if not await database_sync_to_async(guard.may_read)(user):
            raise RefusedError("forbidden")
        if hub.full(user.pk):
            raise RefusedError("too-many")

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

    def user(self) -> Any:
        return self.scope["user"]

    def session_key(self) -> str:
        return self.scope["session"].session_key or ""


class OverviewConsumer(LiveConsumer):
    """The cells of one cluster."""

    async def topic(self) -> Topic:
        try:
            cluster = await database_sync_to_async(selectors.cluster)(
                self.scope["url_route"]["kwargs"]["cluster"]
            )
        except Cluster.DoesNotExist:
            raise RefusedError("unknown") from None
        return await hub.overview(cluster.pk)


class NodeConsumer(LiveConsumer):
    """One node."""

    async def topic(self) -> Topic:
        wanted = self.scope["url_route"]["kwargs"]
        try:
            node = await database_sync_to_async(_node_id)(wanted["cluster"], wanted["node"])
        except Node.DoesNotExist:
            raise RefusedError("unknown") from None
        return await hub.node(node)


def _node_id(cluster: str, node: str) -> int:
    return Node.objects.values_list("pk", flat=True).get(cluster__slug=cluster, name=node, gone_at=None)


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
