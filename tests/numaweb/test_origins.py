"""WebSockets only from our own pages."""

from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from numaweb import origins
from policies.models import AuditEntry


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://numa.example.org", "numa.example.org"),
        ("http://numa.example.org:80", "numa.example.org"),
        ("https://numa.example.org", "numa.example.org:443"),
        ("http://192.0.2.1:30881", "192.0.2.1:30881"),
        ("http://[2001:db8::1]:30881", "[2001:db8::1]:30881"),
        ("HTTP://Numa.Example.org", "numa.example.ORG"),
    ],
)
def test_it_accepts_the_page_of_the_same_host(origin: str, host: str) -> None:
    assert origins.same(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("", "numa.example.org"),
        ("null", "numa.example.org"),
        ("http://evil.example", "numa.example.org"),
        ("http://numa.example.org.evil.example", "numa.example.org"),
        ("http://numa.example.org@evil.example", "numa.example.org"),
        ("http://numa.example.org:8080", "numa.example.org"),
        ("http://numa.example.org", "numa.example.org:8080"),
        ("https://numa.example.org", "numa.example.org:80"),
        ("file://numa.example.org", "numa.example.org"),
        ("http://numa.example.org:99999", "numa.example.org"),
        ("http://[::1", "numa.example.org"),
        ("http://numa.example.org", ""),
    ],
)
def test_it_refuses_every_other(origin: str, host: str) -> None:
    assert not origins.same(origin, host)


async def accepting(_scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})


async def answer(origin: bytes | None) -> dict[str, Any]:
    """What the server says to a WebSocket that wants to open."""
    headers = [(b"host", b"numa.example.org"), *([(b"origin", origin)] if origin is not None else [])]
    scope = {
        "type": "websocket",
        "path": "/ws/c/prod/overview/",
        "headers": headers,
        "client": ("192.0.2.1", 1),
    }
    socket = ApplicationCommunicator(origins.SameOrigin(accepting), scope)
    await socket.send_input({"type": "websocket.connect"})
    return dict(await socket.receive_output())


async def test_it_lets_our_own_page_through() -> None:
    assert await answer(b"http://numa.example.org") == {"type": "websocket.accept"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("origin", [None, b"http://evil.example", b"\xff\xfe"])
async def test_it_refuses_counts_and_records_a_foreign_page(origin: bytes | None) -> None:
    told = await answer(origin)
    assert (told["type"], told["code"], told["reason"]) == ("websocket.close", 4403, "Origin must equal Host")
    entry = await AuditEntry.objects.aget()
    assert (entry.action, entry.result, entry.address) == ("forged origin", "refused", "192.0.2.1")
    assert entry.target == "WebSocket /ws/c/prod/overview/"
    assert "is not Host numa.example.org" in entry.detail
