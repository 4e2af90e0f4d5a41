"""The two programs that answer cases: the oracle, which is built once, and our engine.

The oracle's binary lies in a cache folder outside the repository, under a name made from its sources and the Go version.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from tests import servers

Case = dict[str, Any]
Answer = dict[str, Any]

SOURCES = Path(__file__).parent / "kubelet"
OLDEST_GO = (1, 26)
AFTER_HANG = 3
"""The oracle's exit code when it answered a case in which the kubelet hangs; the rest has to be asked anew."""
BATCH = 250
"""Cases per process: managers leave a sleeping goroutine each, and an answer should not wait for thousands of others."""
MEMORY_FOLDER = Path("/dev/shm")
"""State files are written and read a lot; where there is a folder in memory they go there."""


class LackingError(Exception):
    """What this machine would need to have."""


def oracle() -> Path:
    """The oracle's binary, built if it is not there yet (minutes).

    Raises:
        LackingError: there is no Go, an old one, or no modules for it.
        subprocess.CalledProcessError: the build failed.
    """
    go = shutil.which("go")
    if go is None:
        raise LackingError("Go")
    version = _output([go, "env", "GOVERSION"])
    if not _new_enough(version):
        raise LackingError(f"Go {OLDEST_GO[0]}.{OLDEST_GO[1]} (it has {version})")
    binary = _cache() / _digest(version) / "kubelet-oracle"
    if not binary.exists():
        _build(go, binary)
    return binary


def _new_enough(version: str) -> bool:
    numbers = version.removeprefix("go").split(" ")[0].split(".")
    return (
        len(numbers) > 1 and all(map(str.isdigit, numbers[:2])) and tuple(map(int, numbers[:2])) >= OLDEST_GO
    )


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=True).stdout.strip()


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numaweb" / "bin"


def _digest(version: str) -> str:
    digest = hashlib.sha256(version.encode())
    for file in sorted(path for path in SOURCES.iterdir() if path.is_file()):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _build(go: str, binary: Path) -> None:
    """Builds beside its place and moves it there, so that two runs at once end with one whole binary.

    Raises:
        LackingError: the modules of Kubernetes cannot be had.
        subprocess.CalledProcessError: they are here, and the program does not build.
    """
    fetched = subprocess.run([go, "mod", "download"], cwd=SOURCES, capture_output=True, text=True)
    if fetched.returncode:
        raise LackingError(f"the Go modules of Kubernetes ({fetched.stderr.strip().splitlines()[-1][:200]})")
    binary.parent.mkdir(parents=True, exist_ok=True)
    being_made = binary.with_name(f"{binary.name}.{os.getpid()}")
    subprocess.run([go, "build", "-o", str(being_made), "."], cwd=SOURCES, check=True)
    being_made.replace(binary)


def ask_oracle(binary: Path, cases: Sequence[Case]) -> list[Answer]:
    """The kubelet's answers, in the order of the cases."""
    return _ask([str(binary)], cases, _folder())


def _folder() -> dict[str, str]:
    return {"TMPDIR": str(MEMORY_FOLDER)} if os.access(MEMORY_FOLDER, os.W_OK) else {}


def ask_engine(cases: Sequence[Case]) -> list[Answer]:
    """Our answers, through the command that everybody has."""
    return _ask([sys.executable, "-m", "numacore", "judge", "--kubelet", "1.37"], cases, {})


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
