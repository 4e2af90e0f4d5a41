"""WebSockets only from our own pages: a browser sends the Origin of the page, and it must be the Host that was asked.

Cookies go with every WebSocket whatever page opens it, and neither CSRF tokens nor CORS protect it; this does.
"""

from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import sync_to_async

from numaweb import refusals

DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
REFUSED = 4403  # a private code of ours, in the reason's words for people


class SameOrigin:
    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin, host = headers.get(b"origin", ""), headers.get(b"host", "")
        if same(origin, host):
            await self.application(scope, receive, send)
            return
        await sync_to_async(report)(scope, origin, host)
        await receive()  # websocket.connect
        await send({"type": "websocket.close", "code": REFUSED, "reason": "Origin must equal Host"})


def same(origin: str, host: str) -> bool:
    """Whether an Origin header names the host and port of the Host header; a missing or odd one never does."""
    try:
        parts = urlsplit(origin)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        asked = urlsplit(f"//{host}")
        return (
            bool(parts.hostname)
            and parts.hostname == asked.hostname
            and port in ports(asked.port, parts.scheme)
        )
    except (ValueError, KeyError):
        return False


def ports(port: int | None, scheme: str) -> set[int]:
    return {port} if port else {DEFAULT_PORTS[scheme]}


def report(scope: dict[str, Any], origin: str, host: str) -> None:
    client = scope.get("client") or ("", 0)
    refusals.note(
        action="forged origin",
        actor="",
        address=str(client[0]),
        target=f"WebSocket {scope.get('path', '')}",
        detail=f"Origin {origin[:200] or '(none)'} is not Host {host[:200]}",
    )
