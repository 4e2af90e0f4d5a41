"""What a bench needs done within Django, as commands of a process of its own: `python -m benchmarks.inside COMMAND`."""

import argparse
import os
import sys
import time

import django
import msgspec
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import SESSION_KEY, get_user_model, login  # noqa: E402
from django.contrib.auth.models import Group  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.http import HttpRequest  # noqa: E402

from monitoring import hot, live  # noqa: E402
from monitoring.models import Cluster  # noqa: E402

NUMA = 8
SLUG = "bench"


def people(count: int) -> None:
    """Viewers who are signed in; their session cookies as JSON."""
    group = Group.objects.get(name="viewer")
    keys = []
    for number in range(count):
        user = get_user_model().objects.create_user(f"viewer-{number}")
        user.groups.add(group)
        request = HttpRequest()
        request.session = SessionStore()
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        assert request.session[SESSION_KEY] == str(user.pk)
        request.session.save()
        keys.append(f"{settings.SESSION_COOKIE_NAME}={request.session.session_key}")
    sys.stdout.write(msgspec.json.encode(keys).decode())


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
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    due = time.monotonic()
    while True:
        due += period
        time.sleep(max(0.0, due - time.monotonic()))
        cells.change(share)
        live.bus().publish(live.CellsNews(cells.cluster.pk, cells.block()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inside", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("people")
    command.add_argument("count", type=int)
    command.set_defaults(act=lambda options: people(options.count))
    command = commands.add_parser("ticks")
    command.add_argument("slug")
    command.add_argument("nodes", type=int)
    command.add_argument("share", type=float)
    command.add_argument("period", type=float)
    command.set_defaults(
        act=lambda options: ticks(options.slug, options.nodes, options.share, options.period)
    )
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
