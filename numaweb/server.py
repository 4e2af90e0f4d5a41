"""The web process: uvicorn with the limits that this project wants. Used by `manage.py serve` and `manage.py local`."""

import errno
import socket

import uvicorn
from django.conf import settings

# What a page ever sends over a WebSocket is a few names; more is refused before it is read.
INBOUND_BYTES = 64 * 1024
GRACEFUL_SECONDS = 8


class AddressError(Exception):
    """The address cannot be listened on; the text names the cause and the remedy."""


def configuration() -> uvicorn.Config:
    return uvicorn.Config(
        "numaweb.asgi:application",
        host=settings.NUMAWEB_LISTEN,
        port=settings.NUMAWEB_PORT,
        loop="uvloop",
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # live messages are small or packed already; a deflate window costs 300 KB each
        ws_max_size=INBOUND_BYTES,
        ws_ping_interval=20,
        ws_ping_timeout=20,
        lifespan="on",
        proxy_headers=False,  # asgi.py does it, with our own list of proxies
        server_header=False,
        access_log=False,  # middleware.RequestLog writes a line with the request's id
        log_config=None,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        timeout_keep_alive=65,
        limit_concurrency=None,
        h11_max_incomplete_event_size=64 * 1024,
    )


def listen(address: str) -> None:
    """Listen on HOST:PORT, or on PORT of every address, instead of what the environment says."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise AddressError(f"{address!r} is not an address to listen on: write 127.0.0.1:30881.")
    settings.NUMAWEB_LISTEN, settings.NUMAWEB_PORT = host.strip("[]") or settings.NUMAWEB_LISTEN, int(port)


def ensure_free(host: str, port: int) -> None:
    """Raise AddressError when somebody listens there already, before anything else is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise AddressError(explain(error, host, port)) from None


def explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use: end the other program, or choose a port, such as NUMAWEB_PORT={port + 1}."
    return f"Cannot listen on {host}:{port}: {error.strerror}. Set NUMAWEB_LISTEN and NUMAWEB_PORT."
