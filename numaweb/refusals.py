"""One door for everything that was refused: counted, logged, and written to the audit log.

A stranger can cause refusals without end, so each address may write so many entries a minute; more are counted only.
"""

import structlog
from django.core.cache import cache
from redis import RedisError

from numaweb import metrics
from policies import audit

log = structlog.get_logger(__name__)

PER_MINUTE = 60


def note(*, action: str, actor: str, address: str, target: str, detail: str) -> None:
    metrics.REFUSALS.labels(reason=action).inc()
    log.warning("refused", action=action, actor=actor, address=address, target=target, detail=detail)
    if within_budget(address):
        audit.record(
            audit.Event(
                action=action,
                actor=actor,
                address=address,
                target=target,
                result=audit.Result.REFUSED,
                detail=detail,
            )
        )


def within_budget(address: str) -> bool:
    key = f"refusals-{address or 'unknown'}"
    try:
        cache.add(key, 0, timeout=60)
        return cache.incr(key) <= PER_MINUTE
    except ValueError:  # it expired between the two calls
        return True
    except RedisError as error:  # better an entry too many than none
        log.warning("refusals are not bounded, the cache is away", error=type(error).__name__)
        return True
