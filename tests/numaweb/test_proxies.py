"""Only a trusted proxy may name a request."""

from typing import Any

import pytest

from numaweb.proxies import TrustedProxies

GIVEN = (b"x-request-id", b"0123456789abcdef")


@pytest.mark.parametrize(
    ("client", "kept"),
    [(("10.0.0.1", 4), True), (("10.0.0.2", 4), False), (("192.168.7.8", 4), True), (None, False)],
)
async def test_an_id_of_somebody_else_is_left_out(client: tuple[str, int] | None, kept: bool) -> None:
    seen: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.extend(scope["headers"])

    trusting: Any = TrustedProxies(app, trusted_hosts=["10.0.0.1", "192.168.0.0/16"])
    headers = [(b"accept", b"*/*"), GIVEN]
    await trusting({"type": "http", "client": client, "headers": headers}, None, None)
    assert seen == (headers if kept else headers[:1])
