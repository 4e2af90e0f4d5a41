"""The ASGI application: pages and REST by Django, WebSockets by Channels, the live hub's life by lifespan.

Run it with `uvicorn --no-proxy-headers numaweb.asgi:application`: forwarded headers are believed here, and only from
NUMAWEB_TRUSTED_PROXIES.
"""

import os
from typing import Any, cast

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import CookieMiddleware
from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
pages = get_asgi_application()  # before the imports below: they need the apps to be loaded

from monitoring import live, routing  # noqa: E402
from numaweb.origins import SameOrigin  # noqa: E402
from numaweb.proxies import TrustedProxies  # noqa: E402


class Lifespan:
    """Starts the live hub with the server and stops it with it."""

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await live.hub.start()
            else:
                await live.hub.stop()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


application = TrustedProxies(
    cast(
        Any,
        ProtocolTypeRouter(
            {
                "http": pages,
                "websocket": SameOrigin(CookieMiddleware(URLRouter(routing.websocket_urlpatterns))),
                "lifespan": Lifespan(),
            }
        ),
    ),
    trusted_hosts=settings.NUMAWEB_TRUSTED_PROXIES,
)
