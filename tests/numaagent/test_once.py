"""`python -m numaagent exporter --root DIR --once`: an operator's way to look at a node."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from numacore import wire
from tests.numaagent import trees
from tests.servers import ROOT


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "numaagent", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    return trees.machine("16em64t-4s2c2t-offlines", tmp_path / "host-7")


def test_it_prints_one_snapshot_and_ends(machine: Path) -> None:
    done = run("exporter", "--root", str(machine), "--once")
    assert (done.returncode, done.stderr) == (0, "")
    snapshot = wire.decode(done.stdout.encode())
    assert set(snapshot.sections) == set(wire.SECTIONS)
    assert all(section.data for section in snapshot.sections.values())
    assert snapshot.exporter.node == "host-7"
    assert [problem.reader for problem in snapshot.problems] == ["cgroups"]


def test_it_prints_lines_for_people_on_a_terminal(machine: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "numaagent", "exporter", "--root", str(machine), "--once"],
        cwd=ROOT,
        stdout=theirs,
    ) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the terminal is closed once the program has ended
                break
            if not part:
                break
            text += part
        assert process.wait(10) == 0
    os.close(ours)
    assert b'\n  "version": 1,' in text.replace(b"\r", b"")
    json.loads(text)


def test_it_takes_the_nodes_name_from_its_environment(machine: Path) -> None:
    done = run("exporter", "--root", str(machine), "--once", NODE_NAME="worker-3")
    assert wire.decode(done.stdout.encode()).exporter.node == "worker-3"


def test_it_refuses_a_folder_that_does_not_exist() -> None:
    done = run("exporter", "--root", "/nowhere/at/all", "--once")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "numaagent exporter: --root or NUMAAGENT_ROOT: /nowhere/at/all is not a folder\n"


def test_it_refuses_a_folder_that_is_no_machine(tmp_path: Path) -> None:
    done = run("exporter", "--root", str(tmp_path), "--once")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is neither" in done.stderr
    assert "name the folder that holds the machine's sys and proc" in done.stderr


def test_it_explains_itself() -> None:
    text = run("exporter", "--help").stdout
    assert "--once" in text
    assert "NUMAAGENT_TOKEN_FILE" in text
    assert run().returncode == 2
    assert "usage: python -m numaagent {exporter} ..." in run().stderr


def test_it_reads_this_very_machine() -> None:
    done = run("exporter", "--once")
    assert done.returncode == 0
    sections = wire.decode(done.stdout.encode()).sections
    data = sections[wire.MACHINE].data
    assert data is not None
    machine = wire.decode_section(wire.Machine, data)
    assert set(machine.topology.online) >= os.sched_getaffinity(0)
