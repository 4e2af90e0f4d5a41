"""Turns the addresses of the database and of Redis into what Django, Celery and Channels expect. For settings.py only."""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from numaweb.env import EnvError

# A reader never waits for the writer in WAL; a second writer waits this long before "database is locked".
SQLITE_BUSY_SECONDS = 20
SQLITE_PRAGMAS = "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA journal_size_limit=67108864"


def database(url: str, local_file: Path, pool: int) -> dict[str, Any]:
    """Django's DATABASES["default"]: SQLite in `local_file` without an address, else what the address says."""
    parts = urlsplit(url)
    if not url:
        return sqlite(local_file)
    if parts.scheme == "sqlite":
        return sqlite(Path("/", parts.path.lstrip("/")))
    return postgres(url, pool)


def sqlite(file: Path) -> dict[str, Any]:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": file,
        # IMMEDIATE takes the write lock at the start, where waiting is allowed; an upgrade midway fails at once.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": SQLITE_BUSY_SECONDS,
            "init_command": SQLITE_PRAGMAS,
        },
    }


def postgres(url: str, pool: int) -> dict[str, Any]:
    parts = urlsplit(url)
    if not parts.path.strip("/"):
        raise EnvError("NUMAWEB_DATABASE_URL has no database name: write postgresql://user@host:port/name.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        # A pool, because under ASGI each request has its own thread and a kept connection would be lost with it.
        "OPTIONS": {
            "connect_timeout": 5,
            "application_name": "numaweb",
            **dict(parse_qsl(parts.query)),
            "pool": {"min_size": 0, "max_size": pool, "timeout": 10},
        },
    }


def redis_database(url: str, offset: int) -> str:
    """The same server with its database number raised, so that broker, cache and live data can be flushed alone."""
    parts = urlsplit(url)
    number = parts.path.strip("/") or "0"
    if not number.isdigit():
        raise EnvError("NUMAWEB_REDIS_URL must end with a database number: write redis://host:6379/0.")
    return urlunsplit(parts._replace(path=f"/{int(number) + offset}"))


def caches(url: str) -> dict[str, Any]:
    """Django's CACHES: this process's memory without Redis."""
    if not url:
        return {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    location = redis_database(url, 1)
    return {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": location}}


def channel_layers(url: str) -> dict[str, Any]:
    """Channels' CHANNEL_LAYERS: this process's memory without Redis."""
    if not url:
        return {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    return {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [url]}}
    }


class Mail(NamedTuple):
    """Django's EMAIL_... settings. Without a host no mail is sent."""

    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    tls: bool = False
    """TLS from the first byte; else STARTTLS if `upgrade`."""
    upgrade: bool = False


def mail(url: str) -> Mail:
    """smtps://user:password@host:465 speaks TLS at once, smtp://host:587?starttls=1 after a plain beginning, smtp://host:25 never."""
    parts = urlsplit(url)
    if not url:
        return Mail()
    tls = parts.scheme == "smtps"
    return Mail(
        parts.hostname or "",
        parts.port or (465 if tls else 25),
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        tls,
        not tls and dict(parse_qsl(parts.query)).get("starttls") == "1",
    )


def local_key(file: Path) -> str:
    """The secret key of a machine without settings: made once, readable by its owner only.

    It is written aside and linked into place, so that of two processes that start together both get the same key.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists():
        make_key(file)
    key = file.read_text(encoding="ascii").strip()
    if not key:
        raise EnvError(f"{file} is empty: remove it, a new key is made at the next start.")
    return key


def make_key(file: Path) -> None:
    descriptor, aside = tempfile.mkstemp(dir=file.parent, prefix="key-")  # readable by its owner only
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as handle:
            handle.write(secrets.token_urlsafe(64))
        with contextlib.suppress(FileExistsError):
            os.link(aside, file)
    finally:
        Path(aside).unlink()
