"""/healthz, /readyz, /version and /metrics: for kubelets, load balancers and Prometheus, without sign-in; none of them tells a secret.

They are answered before everything else, because a probe comes by the pod's address (no allowed host), by plain http
(no redirect to TLS) and must not depend on sessions.
"""

from collections.abc import Callable
from functools import cache, partial

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.crypto import constant_time_compare
from prometheus_client import REGISTRY, exposition

from monitoring import hot
from numaweb import __version__, gauges, metrics
from numaweb.bounded import Asker

log = structlog.get_logger(__name__)

REDIS_SECONDS = 2.0
READY_SECONDS = 0.8
"""For all parts together: probes give up after a second unless somebody tells them otherwise."""


class NotReadyError(Exception):
    """A part that does not work; the text is for everybody to see and names no address."""


def healthz(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


def version(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"version": __version__, "commit": settings.NUMAWEB_COMMIT or None})


def own_metrics(request: HttpRequest) -> HttpResponse:
    wanted = f"Bearer {settings.NUMAWEB_METRICS_TOKEN}"
    given = request.headers.get("Authorization", "")
    if settings.NUMAWEB_METRICS_TOKEN and not constant_time_compare(given, wanted):
        return HttpResponse(
            "the bearer token of NUMAWEB_METRICS_TOKEN is wanted\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
        )
    encode, content_type = exposition.choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(REGISTRY), content_type=content_type)


def readyz(request: HttpRequest) -> HttpResponse:
    """JSON, or a line for each part to whoever asks for text/plain."""
    parts = part_states()
    ready = all(state == "ok" for state in parts.values())
    status, word = (200, "ok") if ready else (503, "not ready")
    if request.get_preferred_type(["application/json", "text/plain"]) == "text/plain":
        lines = [word, *(f"{name}: {state}" for name, state in parts.items()), ""]
        return HttpResponse("\n".join(lines), status=status, content_type="text/plain; charset=utf-8")
    return JsonResponse({"status": word, "parts": parts}, status=status)


def part_states() -> dict[str, str]:
    """Of each part that this installation has "ok" or what is wrong with it, within READY_SECONDS, whatever a part does."""
    known_migrations()  # read from files, once: no part's time is spent on that
    calls = {name: partial(part_state, name, check) for name, check in there().items()}
    late = f"does not answer within {READY_SECONDS:g} s"
    return {name: state or late for name, state in _asker.ask(calls, READY_SECONDS).items()}


def there() -> dict[str, Callable[[], None]]:
    """What this installation has: without an address of Redis there is none."""
    return {name: check for name, check in PARTS.items() if name != "redis" or settings.REDIS_URL}


def part_state(name: str, check: Callable[[], None]) -> str:
    try:
        check()
    except (NotReadyError, DatabaseError, redis.RedisError, hot.StoreError, OSError) as error:
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
    waiting = known_migrations() - set(MigrationRecorder(connection).applied_migrations())
    if waiting:
        raise NotReadyError(f"{len(waiting)} migrations are not applied: run manage.py migrate")


@cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """App and name of every migration of this program."""
    return frozenset(MigrationLoader(None).graph.nodes)


def check_redis() -> None:
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
    )
    try:
        client.ping()
    finally:
        client.close()


def check_hot() -> None:
    """Where the newest state lies: in another database of Redis, or in this process."""
    hot.store().counts()


REGISTRY.register(gauges.Gauges())  # only who serves /metrics needs them
_asker: Asker[str] = Asker()
PARTS: dict[str, Callable[[], None]] = {
    "database": check_database,
    "migrations": check_migrations,
    "redis": check_redis,
    "hot store": check_hot,
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
