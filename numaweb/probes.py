"""/healthz, /readyz, /version and /metrics: for kubelets, load balancers and Prometheus, without sign-in or secrets.

They are answered before everything else, because a probe comes by the pod's address (no allowed host), by plain http
(no redirect to TLS) and must not depend on sessions.
"""

from collections.abc import Callable

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations import executor
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from prometheus_client import REGISTRY, exposition

from numaweb import __version__, metrics

log = structlog.get_logger(__name__)

REDIS_SECONDS = 2.0


class NotReadyError(Exception):
    """A part that does not work; the text is for everybody to see and names no address."""


def healthz(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


def version(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"version": __version__, "commit": settings.NUMAWEB_COMMIT or None})


def own_metrics(request: HttpRequest) -> HttpResponse:
    encode, content_type = exposition.choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(REGISTRY), content_type=content_type)


def readyz(_request: HttpRequest) -> HttpResponse:
    parts = {name: part_state(name, check) for name, check in PARTS.items()}
    ready = all(state == "ok" for state in parts.values())
    return JsonResponse(
        {"status": "ok" if ready else "not ready", "parts": parts}, status=200 if ready else 503
    )


def part_state(name: str, check: Callable[[], None]) -> str:
    try:
        check()
    except (NotReadyError, DatabaseError, redis.RedisError, OSError) as error:
        log.warning("not ready", part=name, error=str(error))  # the cause with its address stays in the log
        return (
            str(error) if isinstance(error, NotReadyError) else f"cannot be reached ({type(error).__name__})"
        )
    return "ok"


def check_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        metrics.DATABASE_ERRORS.inc()
        raise


def check_migrations() -> None:
    state = executor.MigrationExecutor(connection)
    waiting = state.migration_plan(state.loader.graph.leaf_nodes())
    if waiting:
        raise NotReadyError(f"{len(waiting)} migrations are not applied: run manage.py migrate")


def check_redis() -> None:
    if not settings.REDIS_URL:
        return
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
    )
    try:
        client.ping()
    finally:
        client.close()


PARTS: dict[str, Callable[[], None]] = {
    "database": check_database,
    "migrations": check_migrations,
    "redis": check_redis,
}
PROBES: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/healthz": healthz,
    "/readyz": readyz,
    "/version": version,
    "/metrics": own_metrics,
}


class Probes:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        probe = PROBES.get(request.path_info)
        if probe is None or request.method not in ("GET", "HEAD"):
            return self.get_response(request)
        return guarded(probe(request))


def guarded(response: HttpResponse) -> HttpResponse:
    """What the middleware after this one gives to every other answer, as far as it means something to a machine."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-store"  # yesterday's health out of a cache would be a lie
    return response
