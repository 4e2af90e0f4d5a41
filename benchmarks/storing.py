"""One snapshot of 5,000 x 8 into PostgreSQL, ours and bare COPY in turns: `python -m benchmarks.storing` within an
installation's environment; prints its figures as JSON.
"""

import functools
import io
import json
import os
import struct
import sys
import time
from collections.abc import Callable

import django
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "numaweb.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402

from benchmarks import measure  # noqa: E402
from monitoring import history  # noqa: E402
from monitoring.history.metrics import PER_NODE, PER_NUMA  # noqa: E402
from monitoring.models import HistoryJournal  # noqa: E402

NODES, NUMA = 5_000, 8
STEP = 10
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
END = struct.pack("!h", -1)
COLUMNS = ("node int, numa int, at bigint", *(f"m{i} bigint" for i in range(len(PER_NUMA))))


class Machine:
    """5,000 nodes whose figures wander, as samples and as a buffer of COPY's binary rows."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(1)
        self.values = self.random.integers(0, 10_000, (len(PER_NUMA), NODES, NUMA))
        self.at = 1_700_000_000

    def step(self) -> None:
        self.at += STEP
        self.values = np.abs(self.values + self.random.integers(-200, 201, self.values.shape))

    def samples(self) -> list[history.NodeSample]:
        columns = self.values.tolist()
        return [
            history.NodeSample(
                node + 1, range(NUMA), [metric[node] for metric in columns], [0] * len(PER_NODE)
            )
            for node in range(NODES)
        ]

    def rows(self) -> bytes:
        """A row is a count of fields, and each field its length and its value, all big-endian."""
        fields: list[tuple[str, str]] = [("count", ">i2")]
        for name, kind in [("node", ">i4"), ("numa", ">i4"), ("at", ">i8")]:
            fields += [(f"{name}_size", ">i4"), (name, kind)]
        for metric in range(len(PER_NUMA)):
            fields += [(f"m{metric}_size", ">i4"), (f"m{metric}", ">i8")]
        table = np.zeros(NODES * NUMA, np.dtype(fields))
        table["count"] = 3 + len(PER_NUMA)
        table["node"], table["numa"], table["at"] = (
            np.repeat(np.arange(NODES) + 1, NUMA),
            np.tile(range(NUMA), NODES),
            self.at,
        )
        for name, _kind in fields:
            if name.endswith("_size"):
                table[name] = np.dtype(dict(fields)[name.removesuffix("_size")]).itemsize
        for metric in range(len(PER_NUMA)):
            table[f"m{metric}"] = self.values[metric].reshape(-1)
        return HEADER + table.tobytes() + END


def copy(statement: str, data: bytes) -> None:
    with transaction.atomic(), connection.cursor() as cursor, cursor.copy(statement) as copying:
        copying.write(data)


def clocked(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def packed() -> bytes:
    """The journal's newest rows as one buffer for COPY."""
    newest = HistoryJournal.objects.order_by("-at").values_list("at", flat=True)[0]
    rows = HistoryJournal.objects.filter(at=newest).values_list("bucket", "at", "shard", "data")
    out = io.BytesIO()
    out.write(HEADER)
    for bucket, at, shard, data in rows:
        out.write(struct.pack("!hiiiqii", 4, 4, bucket, 8, at, 4, shard))
        out.write(struct.pack("!i", len(data)) + bytes(data))
    return out.getvalue() + END


def run() -> dict[str, list[float]]:
    machine = Machine()
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE UNLOGGED TABLE bench_rows ({', '.join(COLUMNS)}, PRIMARY KEY (node, numa, at))"
        )
        cursor.execute("ALTER TABLE bench_rows SET LOGGED")
        cursor.execute("CREATE TABLE bench_packed (bucket int, at bigint, shard int, data bytea)")
    found: dict[str, list[float]] = {name: [] for name in ("ours", "ours_cpu", "rows", "rows_cpu", "packed")}
    blobs = rows = b""
    for turn in range(measure.ROUNDS + 1):
        machine.step()
        samples, rows = machine.samples(), machine.rows()

        def store(samples: list[history.NodeSample] = samples) -> None:
            with transaction.atomic():
                history.write_journal(0, machine.at, samples)

        ours = clocked(store)
        peer = clocked(functools.partial(copy, "COPY bench_rows FROM STDIN BINARY", rows))
        blobs = packed()
        bare = clocked(functools.partial(copy, "COPY bench_packed FROM STDIN BINARY", blobs))
        if turn:
            for name, value in zip(found, (*ours, *peer, bare[0]), strict=True):
                found[name].append(value)
    found["bytes"] = [float(len(blobs)), float(len(rows))]
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run()))
