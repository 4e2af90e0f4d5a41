"""Programs that local mode starts: kept running, ended in order, never left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from numaweb import children
from numaweb.children import Child
from tests.servers import ROOT


def until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return False


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def program(folder: Path, code: str) -> list[str]:
    """A program that writes its process id, one a line, and then runs `code`."""
    start = f"import os, signal, time\nwith open({str(folder / 'pids')!r}, 'a') as f: f.write(f'{{os.getpid()}}\\n')\n"
    (folder / "child.py").write_text(start + textwrap.dedent(code))
    return [sys.executable, str(folder / "child.py")]


def pids(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


Start = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts children and ends them after the test, whatever came of it."""
    started: list[Child] = []

    def start(name: str, command: list[str], log: Path) -> Child:
        started.append(Child(name, command, log))
        started[-1].start()
        return started[-1]

    yield start
    for child in started:
        child.stop()


def test_it_ends_a_program_that_it_started(tmp_path: Path, start: Start) -> None:
    child = start("sleeper", program(tmp_path, "time.sleep(100)"), tmp_path / "log")
    assert until(lambda: len(pids(tmp_path)) == 1)
    child.stop()
    assert not alive(pids(tmp_path)[0])


def test_it_kills_a_program_that_will_not_end(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "END_SECONDS", 0.3)
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen(__file__ + '.deaf', 'w').close()\ntime.sleep(100)"
    child = start("stubborn", program(tmp_path, code), tmp_path / "log")
    assert until((tmp_path / "child.py.deaf").exists)
    child.stop()
    assert until(lambda: not alive(pids(tmp_path)[0]))


def test_it_starts_a_program_again_that_ended(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(children, "RESTART_SECONDS", (0.01,))
    child = start(
        "fragile",
        program(tmp_path, "print('why it ended', flush=True)\nraise SystemExit(3)"),
        tmp_path / "log",
    )
    assert until(lambda: len(pids(tmp_path)) >= 2)
    child.stop()
    assert "fragile ended with 3" in caplog.text
    assert "why it ended" in (tmp_path / "log").read_text()


def test_a_program_does_not_survive_the_killed_process_that_started_it(tmp_path: Path) -> None:
    parent = f"""
        import time
        from pathlib import Path
        from numaweb.children import Child
        Child("orphan", {program(tmp_path, "time.sleep(100)")!r}, Path({str(tmp_path / "log")!r})).start()
        time.sleep(100)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(parent)], cwd=ROOT) as process:
        assert until(lambda: len(pids(tmp_path)) == 1)
        os.kill(process.pid, signal.SIGKILL)
    assert until(lambda: not alive(pids(tmp_path)[0]))


def test_it_finds_a_port_that_is_free() -> None:
    assert 1024 <= children.free_port() <= 65535
