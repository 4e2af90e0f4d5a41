"""What each path of the exporter answers, and to whom."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable

import msgspec

from numaagent.config import Config
from numaagent.exporter import exposition
from numaagent.exporter.http import Request, Response
from numaagent.exporter.keeper import FIRST_INTERVAL, UNEXPECTED
from numaagent.exporter.metrics import Page
from numaagent.exporter.node import Node, NotReadyError
from numacore import wire

STALE_PERIODS = 3
"""Periods without a reading of its own after which the exporter calls itself unwell."""
INDEX = """numaweb node exporter
/metrics      Prometheus text, or OpenMetrics if asked for
/v1/snapshot  everything about this node as JSON
/healthz      whether reading works
"""
logger = logging.getLogger(__name__)


class Application:
    """Answers requests from one node's state."""

    def __init__(self, told: Config, node: Node, started: float) -> None:
        self._told = told
        self._node = node
        self._page = Page(node, started)
        self._token = told.token.encode() if told.token else None
        self._paths: dict[str, Callable[[Request], Response]] = {
            "/": lambda _: Response(INDEX.encode()),
            "/metrics": self._metrics,
            "/v1/snapshot": self._snapshot,
            "/healthz": self._health,
        }

    def answer(self, request: Request) -> Response:
        """The answer to a request."""
        handler = self._paths.get(request.path)
        if handler is None:
            return Response(b"There is no such page here. Known: /metrics /v1/snapshot /healthz\n", 404)
        if request.method not in ("GET", "HEAD"):
            return Response(b"The exporter only answers GET and HEAD.\n", 405, headers={"Allow": "GET, HEAD"})
        try:
            return handler(request)
        except NotReadyError as error:
            return Response(f"Not ready: {error}.\n".encode(), 503, headers={"Retry-After": "1"})
        except UNEXPECTED as error:
            logger.exception("no answer to %s", request.path)
            self._node.files.problems.note("server", request.path, f"unexpected: {error!r}")
            return Response(b"The node could not be read; the exporter's log tells why.\n", 500)

    def _metrics(self, request: Request) -> Response:
        openmetrics = exposition.wants_open(request.headers.get("accept", ""))
        body = self._page.text(time.monotonic(), time.time(), openmetrics)
        return Response(body, kind=exposition.OPEN if openmetrics else exposition.TEXT)

    def _snapshot(self, request: Request) -> Response:
        if not self._allowed(request):
            text = b"This exporter asks for a bearer token: Authorization: Bearer TOKEN\n"
            return Response(text, 401, headers={"WWW-Authenticate": 'Bearer realm="numaweb"'})
        have = wire.parse_have(request.query.get("have", ""))
        wanted = request.query.get("usage", "")
        found = self._node.snapshot(time.monotonic(), time.time(), have, wanted)
        return Response(wire.encode(found), kind="application/json")

    def _health(self, _: Request) -> Response:
        age = self._node.age(time.monotonic())
        well = age is not None and age < STALE_PERIODS * max(self._told.period, FIRST_INTERVAL)
        body = {
            "status": "ok" if well else "stale",
            "age_seconds": None if age is None else round(age, 3),
            "problems": len(self._node.files.problems.listed()),
        }
        return Response(msgspec.json.encode(body) + b"\n", 200 if well else 503, "application/json")

    def _allowed(self, request: Request) -> bool:
        if self._token is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self._token)
        return right and scheme.lower() == "bearer"
