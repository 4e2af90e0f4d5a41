"""benchmarks/results.md: the table, how each line was measured, on what kind of machine, with which versions."""

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import ROUNDS
from benchmarks.outcome import NotRun, Outcome, table

PACKAGES = ("uvicorn", "uvloop", "websockets", "msgspec", "django", "psycopg", "numpy")
PROGRAMS = (
    ("prometheus", "--version"),
    ("prometheus-node-exporter", "--version"),
    ("redis-server", "--version"),
    ("chromium", "--version"),
)

HEAD = """# What `make bench` measured

Both sides of a ratio ran in the same minutes on the same machine, taking turns; a figure is the median of {rounds} rounds
[least-most] unless its line says otherwise. CPU is user and system time of the measured process as the kernel counts it.
Everything is on one machine and its loopback interface, so client and server share caches; ratios carry over to other
machines, absolute figures do not.
"""


def document(outcomes: Sequence[Outcome | NotRun]) -> str:
    parts = [
        HEAD.format(rounds=ROUNDS),
        table(list(outcomes)),
        "\n## How each line was measured\n",
        *(f"* **{outcome.what}**: {outcome.how}" for outcome in outcomes if isinstance(outcome, Outcome)),
        "\n## Where\n",
        f"* {machine()}",
        f"* {', '.join(versions())}",
        f"* {datetime.now(UTC):%Y-%m-%d}",
        "",
    ]
    return "\n".join(parts)


def machine() -> str:
    """Kind of machine: processor, CPUs, memory, kernel; no name and no place."""
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith(("model name", "CPU part"))
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{len(os.sched_getaffinity(0))} CPUs ({processor}), {memory:.0f} GiB, Linux {platform.release()}"


def versions() -> list[str]:
    found = [f"Python {platform.python_version()}"]
    found += [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return found + [line for program in PROGRAMS if (line := first_line(program))]


def first_line(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except OSError:
        return ""
    return (done.stdout or done.stderr).partition("\n")[0].partition("(")[0].strip().rstrip(",")
