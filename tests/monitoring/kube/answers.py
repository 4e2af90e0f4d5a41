"""Answers of an API server: as Kubernetes words them, and with faults on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def line(event: str, thing: dict[str, Any]) -> bytes:
    return json.dumps({"type": event, "object": thing}, separators=(",", ":")).encode() + b"\n"


def as_json(value: object, code: int = 200) -> web.Response:
    return web.json_response(value, status=code)


def status_object(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def status(code: int, reason: str, message: str) -> web.Response:
    return as_json(status_object(code, reason, message), code)


def refusing(code: int, reason: str, message: str = "no", retry_after: int = 0) -> Answer:
    """A Status, as an error of HTTP."""

    async def answer(_: web.Request) -> web.StreamResponse:
        response = status(code, reason, message)
        if retry_after:
            response.headers["Retry-After"] = str(retry_after)
        return response

    return answer


def saying(body: bytes, code: int = 200, /, **headers: str) -> Answer:
    """Any bytes."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=code, headers=headers, content_type="application/json")

    return answer


def breaking_off(body: bytes) -> Answer:
    """A part of an answer, and then a cut connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(body) + 1000)})
        await response.prepare(request)
        await response.write(body)
        await asyncio.sleep(0.01)
        assert request.transport is not None
        request.transport.abort()
        return response

    return answer


def endless(piece: bytes) -> Answer:
    """An answer that never ends."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(piece)
        return response

    return answer


async def stuck(_: web.Request) -> web.StreamResponse:
    """No answer at all."""
    await asyncio.Event().wait()
    raise AssertionError
