"""Logs: one JSON object a line on standard error, with the request's id. No secret gets in.

`configuration` and `configure` are called by Django with the settings; everybody else uses the standard logging
module or structlog, both of which end here.
"""

import logging.config
from collections.abc import MutableMapping
from typing import Any

import structlog

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
HIDDEN = "(hidden)"
# Parts of a key's name that mean its value is never written down.
SECRET_WORDS = ("password", "secret", "token", "authorization", "cookie", "api_key")

Event = MutableMapping[str, Any]


def hide_secrets(_logger: object, _method: str, event: Event) -> Event:
    for key in event:
        if any(word in key.lower() for word in SECRET_WORDS):
            event[key] = HIDDEN
    return event


def drop_request(_logger: object, _method: str, event: Event) -> Event:
    """Django hands the whole request to its loggers; its path is enough, its headers and form are not ours to keep."""
    request = event.pop("request", None)
    if request is not None:
        event["path"] = getattr(request, "path", None)
    return event


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
FOREIGN: list[Any] = [*SHARED, structlog.stdlib.ExtraAdder(("request", "status_code"))]
RENDER: list[Any] = [
    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
    drop_request,
    hide_secrets,
    structlog.processors.format_exc_info,
    structlog.processors.JSONRenderer(),
]


def configuration(level: str) -> dict[str, Any]:
    quiet = {"level": "WARNING", "handlers": [], "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": FOREIGN,
                "processors": RENDER,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Our own line per request says more than theirs.
            "django.request": {"level": "ERROR", "handlers": [], "propagate": True},
            "django.server": quiet,
            "django.security.csrf": {"level": "ERROR", "handlers": [], "propagate": True},
            "uvicorn.access": quiet,
            # refusals.py has a line of its own for each of theirs.
            "axes": {"level": "ERROR", "handlers": [], "propagate": True},
        },
    }


def configure(settings: dict[str, Any]) -> None:
    logging.config.dictConfig(settings)
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
