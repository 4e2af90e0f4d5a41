"""What a bench needs done within Django, as commands of a process of its own: `python -m benchmarks.inside COMMAND`."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
import numpy as np
from numpy.typing import NDArray

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import SESSION_KEY, get_user_model, login  # noqa: E402
from django.contrib.auth.models import Group  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpRequest  # noqa: E402

from monitoring import hot, live, services  # noqa: E402
from monitoring.models import Cluster, Container, Endpoint, Node  # noqa: E402

NUMA = 8
KNOWN_SECONDS = 240
SLUG = "bench"


def people(count: int, role: str) -> None:
    """People of a role who are signed in; their session cookies as JSON."""
    group = Group.objects.get(name=role)
    keys = []
    for number in range(count):
        user = get_user_model().objects.create_user(f"{role}-{number}")
        user.groups.add(group)
        request = HttpRequest()
        request.session = SessionStore()
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        assert request.session[SESSION_KEY] == str(user.pk)
        request.session.save()
        keys.append(f"{settings.SESSION_COOKIE_NAME}={request.session.session_key}")
    say(json.dumps(keys))


class Cells:
    """Cells of a cluster that nobody collects: `nodes` nodes with 8 NUMA nodes each, some of which change."""

    def __init__(self, slug: str, nodes: int) -> None:
        self.cluster = Cluster.objects.get_or_create(
            slug=slug, defaults={"name": slug, "kind": "simulated", "cells": nodes * NUMA}
        )[0]
        self.nodes = nodes
        self.random = np.random.default_rng(1)
        self.busy = self.random.integers(0, 200, nodes * NUMA, np.uint8)
        self.pinned = self.random.integers(0, 200, nodes * NUMA, np.uint8)

    def change(self, share: float) -> None:
        changed = self.random.random(len(self.busy)) < share
        self.busy[changed] = (self.busy[changed] + 1 + self.random.integers(0, 99, int(changed.sum()))) % 200

    def block(self) -> hot.Cells:
        now = time.time()
        return hot.Cells(
            taken=now,
            nodes=np.arange(self.nodes, dtype="<i4").tobytes(),
            slots=(np.arange(self.nodes, dtype="<u4") * NUMA).tobytes(),
            widths=np.full(self.nodes, NUMA, "<u2").tobytes(),
            received=np.full(self.nodes, now, "<f8").tobytes(),
            pinned=self.pinned.tobytes(),
            busy=self.busy.tobytes(),
        )


def ticks(slug: str, nodes: int, share: float, period: float) -> None:
    """Publishes cells of which `share` changed, every `period` seconds, until it is stopped."""
    cells = Cells(slug, nodes)
    hot.store().put_cells(cells.cluster.pk, 0, cells.block())
    say("ready")
    due = time.monotonic()
    while True:
        due += period
        time.sleep(max(0.0, due - time.monotonic()))
        cells.change(share)
        live.bus().publish(live.CellsNews(cells.cluster.pk, cells.block()))


def register(announced: Path) -> None:
    """The endpoints of a simulated fleet, as somebody enters them who knows nothing but their addresses."""
    told = json.loads(announced.read_text())["exporters"]
    cluster = Cluster.objects.create(slug=SLUG, name="Bench", kind="simulated")
    Endpoint.objects.bulk_create(
        Endpoint(cluster=cluster, name=each["name"], url=each["url"]) for each in told
    )


def collect() -> None:
    """Shift after shift over everything, as a worker does it."""
    say("ready")
    while services.collect(0) != "lost":
        pass


def complete() -> None:
    """Gives every node without a report a copy of another one's: summary and containers."""
    summary = [field.column for field in Node._meta.concrete_fields if field.null and field.name != "gone_at"]
    copied = [
        str(field.column)
        for field in Container._meta.concrete_fields
        if field.name not in ("id", "node", "container_id")
    ]
    changes = ", ".join(f"{name} = model.{name}" for name in summary)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE reported AS SELECT *, row_number() OVER () AS place FROM monitoring_node WHERE containers IS NOT NULL"
        )
        cursor.execute("CREATE TEMP TABLE bare AS SELECT id FROM monitoring_node WHERE containers IS NULL")
        pairs = "bare JOIN reported model ON model.place = 1 + bare.id % (SELECT count(*) FROM reported)"
        cursor.execute(
            f"UPDATE monitoring_node SET {changes} FROM {pairs} WHERE monitoring_node.id = bare.id"
        )
        cursor.execute(
            f"INSERT INTO monitoring_container (node_id, container_id, {', '.join(copied)}) "
            f"SELECT bare.id, row.container_id || '-' || bare.id, {', '.join(f'row.{name}' for name in copied)} "
            f"FROM {pairs} JOIN monitoring_container row ON row.node_id = model.id ON CONFLICT DO NOTHING"
        )
        cursor.execute("ANALYZE")


def ages(nodes: int, seconds: float) -> None:
    """How old the newest answer of every node is, four times a second, once all were heard."""
    cluster = Cluster.objects.get(slug=SLUG)
    started, heard = time.monotonic(), received(cluster.pk)
    while len(heard) < nodes or not heard.all():
        if time.monotonic() - started > KNOWN_SECONDS:
            sys.exit(f"{np.count_nonzero(heard)} of {nodes} nodes were heard in {KNOWN_SECONDS} s")
        time.sleep(1)
        heard = received(cluster.pk)
    waited = time.monotonic() - started
    found: list[NDArray[np.float64]] = []
    for _ in range(int(seconds * 4)):
        time.sleep(0.25)
        heard = received(cluster.pk)
        found.append(time.time() - heard)
    every = np.concatenate(found)
    figures = {"median": np.median(every), "p95": np.percentile(every, 95), "most": every.max()}
    say(
        json.dumps(
            {**{name: float(value) for name, value in figures.items()}, "nodes": len(heard), "waited": waited}
        )
    )


def received(cluster: int) -> NDArray[np.float64]:
    """When each node was heard last, as pages find it."""
    blocks = [np.frombuffer(block.received, "<f8") for block in hot.store().cells(cluster)]
    return np.concatenate([np.zeros(0), *blocks])


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inside", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for work, arguments in COMMANDS.items():
        command = commands.add_parser(work.__name__, help=work.__doc__)
        for name, kind in arguments.items():
            command.add_argument(name, type=kind)
        command.set_defaults(work=work)
    options = vars(parser.parse_args())
    options.pop("work")(**options)


COMMANDS: dict[Callable[..., None], dict[str, Callable[[str], Any]]] = {
    people: {"count": int, "role": str},
    ticks: {"slug": str, "nodes": int, "share": float, "period": float},
    register: {"announced": Path},
    collect: {},
    complete: {},
    ages: {"nodes": int, "seconds": float},
}


if __name__ == "__main__":
    main()
