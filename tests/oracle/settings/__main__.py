"""`python -m tests.oracle.settings`: random settings for the kubelet's own reading of them and for the checks.

With `--record FOLDER` it writes cases with the kubelet's answers, which the tests read; without, it compares fresh ones, prints the seed
and what differs. `--minor` says which kubelet is built, `--binary` names one that is built already. Exit code 0 = they agree.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.oracle.settings.comparison import differences
from tests.oracle.settings.generator import cases
from tests.oracle.settings.written import WRITTEN

SOURCES = Path(__file__).parent
TAGS = {34: "before135,before136", 35: "before136", 36: "", 37: ""}
"""What is named otherwise in the sources of a version (Go build tags)."""
NEWEST = max(TAGS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.settings", description=__doc__)
    parser.add_argument("--minor", type=int, default=NEWEST, choices=TAGS)
    parser.add_argument("--binary", type=Path, help="the program for this version, built already")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--record", type=Path, metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    asked = [*WRITTEN, *cases(chosen.seed, chosen.cases)]
    with tempfile.TemporaryDirectory() as folder:
        said = ask(chosen.binary or build(chosen.minor, Path(folder)), asked)
    if chosen.record:
        record(chosen.record / f"settings-1.{chosen.minor}.jsonl.gz", asked, said)
        return 0
    print(f"seed {chosen.seed}, {len(asked)} cases")
    differing = 0
    for case, answer in zip(asked, said, strict=True):
        if found := differences(case, answer, chosen.minor):
            differing += 1
            print(json.dumps(case), *found, sep="\n    ")
    print(f"{differing} of {len(asked)} cases differ")
    return 1 if differing else 0


def build(minor: int, folder: Path) -> Path:
    """Minutes, when nothing is cached. Raises subprocess.CalledProcessError."""
    go = shutil.which("go")
    if go is None:
        raise SystemExit("This machine lacks Go")
    binary = folder / "settings"
    module = [] if minor == NEWEST else [f"-modfile=v1.{minor}.mod"]
    subprocess.run(
        [go, "build", *module, "-tags", TAGS[minor], "-o", str(binary), "."], cwd=SOURCES, check=True
    )
    return binary


def ask(binary: Path, asked: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The kubelet's answers in the order of the cases; what it logs besides goes nowhere."""
    lines = "".join(json.dumps(case) + "\n" for case in asked)
    done = subprocess.run([os.fspath(binary)], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def record(file: Path, asked: Sequence[dict[str, Any]], said: Sequence[dict[str, Any]]) -> None:
    """The same cases give the same bytes."""
    lines = "".join(
        json.dumps({"case": case, "answer": answer}, sort_keys=True) + "\n"
        for case, answer in zip(asked, said, strict=True)
    )
    file.write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    sys.exit(main())
