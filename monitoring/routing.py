"""Addresses of the WebSockets, for `numaweb.asgi`."""

from typing import Any

from django.urls import path, re_path

from monitoring import consumers


async def refuse(_scope: Any, receive: Any, send: Any) -> None:
    """Any other address: the handshake is refused."""
    await receive()  # websocket.connect
    await send(
        {"type": "websocket.close", "code": consumers.REFUSALS["unknown"], "reason": "no such address"}
    )


# Django's types know views only; Channels puts ASGI applications in their place.
overview: Any = consumers.OverviewConsumer.as_asgi()
node: Any = consumers.NodeConsumer.as_asgi()
nowhere: Any = refuse

websocket_urlpatterns = [
    path("ws/c/<slug:cluster>/overview/", overview),
    path("ws/c/<slug:cluster>/nodes/<str:node>/", node),
    # Without it Channels fails, with a traceback in the log for each try of a stranger.
    re_path(r"", nowhere),
]
