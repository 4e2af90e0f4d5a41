"""A support bundle: what somebody who helps from afar wants to know, as files in a tar archive, without secrets.

Names of clusters, nodes, pods and people are in it; the README in it says so to whoever sends it.
"""

from __future__ import annotations

import io
import os
import platform
import tarfile
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError
from django.db.models import QuerySet

from monitoring.models import ClusterEvent, Connection, Endpoint, Failure, NodeEvent, WatchHealth
from numaweb import __version__, doctor
from numaweb.env import Env
from numaweb.scrubbing import Scrubber
from policies.models import AuditEntry, Notice, Rollout, RolloutNode

MOST = 200
"""Rows of each kind, the newest."""
LOG_BYTES = 1024 * 1024
"""Of the end of each log."""
README = """A support bundle of numaweb.

versions.json  this program, Python and all libraries
settings.json  which environment variables are set; of those that may hold a secret only whether they are
doctor.json    what manage.py doctor says
rows.json      how many rows each table has
failures.json  what failed: exporters, connections, watches, rollouts, notices, refused pods
events.json    what happened: to nodes, in clusters, and who did what (audit, without contents)
logs/          the end of each log that is a file

It holds no password, token or key. It holds names of clusters, nodes, pods and people, and addresses: look
whether you may give these away.
"""


def write(file: Path, logs: Sequence[Path] = ()) -> list[str]:
    """Writes a new archive that only its owner may read; the names in it. Raises FileExistsError, OSError."""
    scrubber = scrubbing()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as target, tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in contents(logs):
            add(archive, name, scrubber.clean(text))
        return archive.getnames()


def scrubbing() -> Scrubber:
    try:
        return Scrubber()
    except DatabaseError:
        return Scrubber(stored=False)  # then nothing that it holds can get into the bundle either


def add(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    entry = tarfile.TarInfo(f"numaweb-bundle/{name}")
    entry.size, entry.mtime = len(data), int(time.time())
    archive.addfile(entry, io.BytesIO(data))


def contents(logs: Sequence[Path]) -> Iterable[tuple[str, str]]:
    yield "README.txt", README
    parts: dict[str, Callable[[], Any]] = {
        "versions": versions,
        "settings": environment,
        "doctor": lambda: list(doctor.examine()),
        "rows": rows,
        "failures": failures,
        "events": events,
    }
    for name, part in parts.items():
        try:
            found = part()
        except DatabaseError as error:
            found = {"error": f"the database fails: {type(error).__name__}"}
        yield f"{name}.json", msgspec.json.format(msgspec.json.encode(found, enc_hook=str)).decode()
    for number, log in enumerate([*logs, *sorted(Path(settings.STATE_DIR).glob("*.log"))]):
        yield f"logs/{number}-{log.name}", end_of(log)


def versions() -> dict[str, Any]:
    return {
        "numaweb": __version__,
        "commit": settings.NUMAWEB_COMMIT or None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {
            each.name: each.version for each in sorted(metadata.distributions(), key=lambda d: d.name)
        },
    }


def environment() -> dict[str, str]:
    """What settings.py asked the environment for."""
    env: Env = settings.NUMAWEB_ENVIRONMENT
    told = {}
    for name in sorted(env.asked):
        value = env.source.get(name, "").strip()
        told[name] = (
            ("(set)" if name.removesuffix("_FILE") in env.secrets else value) if value else "(not set)"
        )
    return told


def rows() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


def failures() -> dict[str, Any]:
    return {
        "exporters": table(
            Endpoint.objects.filter(state=Endpoint.State.FAILING),
            *("cluster__slug", "url", "last_ok", "failures", "error", "remedy", "conflict"),
        ),
        "connections": table(
            Connection.objects.all(),
            *(
                "cluster__slug",
                "source",
                "state",
                "version",
                "last_try",
                "last_ok",
                "error",
                "remedy",
                "missing",
            ),
        ),
        "watches": table(
            WatchHealth.objects.all(),
            *(
                "connection__cluster__slug",
                "resource",
                "state",
                "since",
                "listed",
                "heard",
                "failures",
                "error",
            ),
        ),
        "rollouts": table(
            Rollout.objects.order_by("-pk"),
            *(
                "pk",
                "cluster__slug",
                "level",
                "state",
                "made",
                "confirmed",
                "changed",
                "ended",
                "cause",
                "waits_for",
            ),
        ),
        "rollout nodes": table(
            RolloutNode.objects.exclude(cause=None).order_by("-pk"),
            *("rollout_id", "name", "step", "outcome", "cause", "epoch", "looked"),
        ),
        "notices": table(
            Notice.objects.exclude(error="").order_by("-pk"), *("channel", "event", "state", "tries", "error")
        ),
        "refused pods": table(
            Failure.objects.order_by("-last"),
            *(
                "cluster__slug",
                "namespace",
                "owner_kind",
                "owner_name",
                "node_name",
                "reason",
                "message",
                "count",
                "last",
            ),
        ),
    }


def events() -> dict[str, Any]:
    return {
        "nodes": table(NodeEvent.objects.order_by("-pk"), "node__name", "at", "code", "values"),
        "clusters": table(
            ClusterEvent.objects.order_by("-last"),
            *(
                "cluster__slug",
                "kind",
                "namespace",
                "name",
                "node_name",
                "reason",
                "message",
                "count",
                "last",
            ),
        ),
        # Without before, after and detail: what somebody typed is not needed.
        "audit": table(
            AuditEntry.objects.order_by("-sequence"), "sequence", "at", "actor", "action", "target", "result"
        ),
    }


def table(query: QuerySet[Any], *columns: str) -> list[dict[str, Any]]:
    return list(query.values(*columns)[:MOST])


def end_of(log: Path) -> str:
    """Whole lines. A file that cannot be read says so itself."""
    try:
        with log.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - LOG_BYTES)
            file.seek(start)
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"cannot be read: {error.strerror}\n"
    return text.partition("\n")[2] if start else text
