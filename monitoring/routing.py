"""Addresses of the WebSockets, for `numaweb.asgi`."""

from typing import Any

from django.urls import path

from monitoring import consumers

# Django's types know views only; Channels puts ASGI applications in their place.
overview: Any = consumers.OverviewConsumer.as_asgi()
node: Any = consumers.NodeConsumer.as_asgi()

websocket_urlpatterns = [
    path("ws/c/<slug:cluster>/overview/", overview),
    path("ws/c/<slug:cluster>/nodes/<str:node>/", node),
]
