"""The two programs that answer cases: the oracle, which is built once (tests/goprograms.py), and our engine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from tests import goprograms, servers
from tests.goprograms import Program

Case = dict[str, Any]
Answer = dict[str, Any]

NEWEST = 37
TAGS = {34: "before135,before137", 35: "before137", 36: "before137", NEWEST: ""}
"""What is named otherwise in the sources of a minor version (Go build tags)."""
AFTER_HANG = 3
"""The oracle's exit code when it answered a case in which the kubelet hangs; the rest has to be asked anew."""
BATCH = 250
"""Cases per process: managers leave a sleeping goroutine each, and an answer should not wait for thousands of others."""
MEMORY_FOLDER = Path("/dev/shm")
"""State files are written and read a lot; where there is a folder in memory they go there."""


def oracle(minor: int = NEWEST) -> Path:
    """The oracle's binary, built if it is not there yet (minutes); errors as in goprograms.built."""
    module = () if minor == NEWEST else (f"-modfile=v1.{minor}.mod", "-tags", TAGS[minor])
    return goprograms.built(
        Program("kubelet-oracle", Path(__file__).parent / "kubelet", "Kubernetes", flags=module)
    )


def ask_oracle(binary: Path, cases: Sequence[Case]) -> list[Answer]:
    """The kubelet's answers, in the order of the cases."""
    return _ask([str(binary)], cases, _folder())


def _folder() -> dict[str, str]:
    return {"TMPDIR": str(MEMORY_FOLDER)} if os.access(MEMORY_FOLDER, os.W_OK) else {}


def ask_engine(cases: Sequence[Case], minor: int = NEWEST) -> list[Answer]:
    """Our answers, through the command that everybody has."""
    return _ask([sys.executable, "-m", "numacore", "judge", "--kubelet", f"1.{minor}"], cases, {})


def _ask(command: Sequence[str], cases: Sequence[Case], surroundings: Mapping[str, str]) -> list[Answer]:
    batches = [cases[start : start + BATCH] for start in range(0, len(cases), BATCH)]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        answered = pool.map(lambda batch: list(_answers(command, batch, surroundings)), batches)
        return [answer for batch in answered for answer in batch]


def _answers(
    command: Sequence[str], cases: Sequence[Case], surroundings: Mapping[str, str]
) -> Iterable[Answer]:
    while cases:
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        done = subprocess.run(
            command,
            input=lines,
            capture_output=True,
            text=True,
            cwd=servers.ROOT,
            env=os.environ | surroundings,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        cut_short = done.returncode == AFTER_HANG and answers
        if not cut_short and (done.returncode != 0 or len(answers) != len(cases)):
            raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-4000:]}")
        yield from answers
        cases = cases[len(answers) :]


class Kept:
    """The oracle as a process that stays, for cases that follow from one another."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def ask(self, case: Case) -> Answer | None:
        """Its answer; None = the process ended without one."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [str(self._binary)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=os.environ | _folder(),
            )
        asked, told = self._process.stdin, self._process.stdout
        assert asked is not None
        assert told is not None
        asked.write(json.dumps(case) + "\n")
        asked.flush()
        line = told.readline()
        return json.loads(line) if line else None
