"""`python -m benchmarks [NAME ...]`: runs the benches one after the other, prints the table, writes results.md.

Every bench stands alone: one that fails or lacks a program becomes a line that says so, and the others go on. The exit
status is 1 when a goal is missed or a bench broke.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import (
    api,
    collector,
    exporter,
    judging,
    live,
    page,
    plan,
    pods,
    preview,
    results,
    rollout,
    scale,
    store,
    watch,
)
from benchmarks.outcome import NotRun, Outcome, table

BENCHES: dict[str, Callable[[], list[Outcome]]] = {
    "exporter": exporter.run,
    "collector": collector.run,
    "rounds": scale.rounds,
    "ages": scale.ages,
    "pages": scale.slowest_page,
    "live": live.run,
    "page": page.run,
    "store": store.run,
    "api": api.run,
    "judging": judging.run,
    "plan": plan.run,
    "rollout": rollout.run,
    "preview": preview.run,
    "pods": pods.run,
    "watch": watch.run,
}
RESULTS = Path(__file__).with_name("results.md")


def attempt(name: str, bench: Callable[[], list[Outcome]]) -> list[Outcome | NotRun]:
    """One bench; whatever stops it becomes an outcome (tests/servers.py skips and fails in pytest's way)."""
    print(f"== {name}", flush=True)
    started = time.monotonic()
    try:
        found: list[Outcome | NotRun] = [*bench()]
    except (pytest.skip.Exception, pytest.fail.Exception) as stopped:
        found = [NotRun(name, str(stopped).strip())]
    except (OSError, RuntimeError, ValueError, LookupError) as error:
        found = [NotRun(name, f"{type(error).__name__}: {error}")]
    for outcome in found:
        print("   " + " | ".join(outcome.cells), flush=True)
    print(f"   {time.monotonic() - started:.0f} s", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], help="which benches; all without a name")
    parser.add_argument("--no-file", action="store_true", help="do not write results.md")
    arguments = parser.parse_args()
    names = arguments.names or list(BENCHES)
    outcomes = [outcome for name in names for outcome in attempt(name, BENCHES[name])]
    print("\n" + table(outcomes))
    if not arguments.no_file and names == list(BENCHES):
        RESULTS.write_text(results.document(outcomes), encoding="utf-8")
    return 0 if all(isinstance(outcome, Outcome) and outcome.met for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
