"""What happens around every request: an id and a log line, static files, session limits, no copies in caches."""

import logging
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import add_never_cache_headers
from whitenoise.middleware import WhiteNoiseMiddleware

from numaweb import metrics

log = structlog.get_logger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponseBase]

SEEN_EVERY_SECONDS = 60  # how often a session in use is written, instead of at each request
STARTED, SEEN = "numaweb_started", "numaweb_seen"
REQUEST_ID = re.compile(r"[A-Za-z0-9-]{16,64}")
"""32 hexadecimal digits (nginx), a UUID (Envoy) and what is like them; nothing that could be more than an id in a log."""
QUIET_PATHS = ("/healthz", "/readyz", "/metrics", "/static/")


class RequestLog:
    """Gives each request an id (in its log lines and its X-Request-ID), counts it and writes one line about it."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        request_id = request.request_id = id_of(request)  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
            response["X-Request-ID"] = request_id
            self.report(request, response, time.perf_counter() - started)
        return response

    def report(self, request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
        match = request.resolver_match
        view = match.view_name if match and match.view_name else "none"
        metrics.REQUESTS.labels(
            view=view, method=known_method(request), status=str(response.status_code)
        ).inc()
        metrics.SECONDS.observe(seconds)
        level = logging.DEBUG if request.path.startswith(QUIET_PATHS) else logging.INFO
        log.log(
            level,
            "request",
            method=request.method,
            path=request.path,
            status=response.status_code,
            milliseconds=round(seconds * 1000, 1),
            user_id=getattr(getattr(request, "user", None), "pk", None)
            if hasattr(request, "session")
            else None,
        )


def id_of(request: HttpRequest) -> str:
    """The proxy's id (`proxies.py` lets no other through) where it has the form of one, else a new one."""
    given = request.headers.get("X-Request-ID", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def known_method(request: HttpRequest) -> str:
    """A label from a short list: a visitor may invent methods, and each would become a series."""
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return request.method if request.method in known else "other"


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise whose answers are whole: under ASGI Django would read its streams in one piece anyway and complain."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response


class NoStore:
    """Pages show what only some may see: no cache may keep them, unless a view says otherwise."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if "Cache-Control" not in response:
            add_never_cache_headers(response)
        return response


class SessionLimits:
    """Ends a session that is too old, and keeps one in use from ending as idle."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            self.watch(request, time.time())
        return self.get_response(request)

    def watch(self, request: HttpRequest, now: float) -> None:
        session = request.session
        if now - session.setdefault(STARTED, now) > settings.NUMAWEB_SESSION_LONGEST:
            auth.logout(request)
        elif now - session.get(SEEN, 0.0) > SEEN_EVERY_SECONDS:
            session[SEEN] = now  # a change makes Django write the session and renew its end
