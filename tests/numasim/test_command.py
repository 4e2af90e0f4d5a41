"""The command line: a cluster from start to end, and clear words when it cannot be."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numacore import wire
from numacore.usage import Usage
from numasim import __main__ as numasim
from tests.numasim.conftest import Read

PATIENCE = 40.0


@contextmanager
def running(
    place: Path, models: str = "edge"
) -> Iterator[tuple[subprocess.Popen[bytes], list[dict[str, str]]]]:
    """`numasim run` with these machines, once it has announced itself."""
    file = place / "announce.json"
    command = [sys.executable, "-m", "numasim", "run", "--dir", str(place / "c"), "--announce", str(file)]
    process = subprocess.Popen(
        [*command, "--nodes", str(len(models.split(","))), "--models", models, "--period", "0.1"]
    )
    try:
        wait(file.exists)
        yield process, json.loads(file.read_text())["exporters"]
    finally:
        process.kill()
        process.wait()


def wait(come: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not come():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def snapshot(url: str) -> wire.Snapshot:
    with urllib.request.urlopen(f"{url}/v1/snapshot", timeout=10) as answer:
        return wire.decode(answer.read())


def use(url: str) -> Usage:
    data = snapshot(url).sections[wire.USAGE].data
    assert data is not None
    return wire.decode_section(Usage, data)


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_cluster_runs_moves_and_leaves_nothing_behind(place: Path) -> None:
    with running(place, "edge,laptop") as (process, exporters):
        assert [each["name"] for each in exporters] == ["edge-1", "laptop-2"]
        for each in exporters:
            assert snapshot(each["url"]).exporter.node == each["name"]
            assert snapshot(each["url"]).problems == ()
        first = use(exporters[1]["url"]).cpu
        wait(lambda: use(exporters[1]["url"]).cpu != first)
        exported = children(process.pid)
        assert len(exported) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert not any(map(alive, exported))
        assert list(place.iterdir()) == []


def test_children_die_with_a_cluster_that_is_killed_hard(place: Path) -> None:
    with running(place) as (process, _):
        exported = children(process.pid)
        assert len(exported) == 1
        process.kill()
        process.wait()
        wait(lambda: not any(map(alive, exported)))


def test_an_exporter_that_dies_ends_the_cluster_with_its_name(place: Path) -> None:
    file, log = place / "announce.json", place / "log"
    command = [sys.executable, "-m", "numasim", "run", "--dir", str(place / "c"), "--announce", str(file)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--models", "edge", "--nodes", "1", "--period", "0.1"], stderr=output
        )
    try:
        wait(file.exists)
        os.kill(children(process.pid)[0], signal.SIGKILL)
        assert process.wait(15) == 1
    finally:
        process.kill()
        process.wait()
    assert "numasim: the exporter of edge-1 ended" in log.read_text()
    assert not (place / "c").exists()


def test_what_a_killed_cluster_left_is_cleared_away(place: Path) -> None:
    left = place / "c" / "edge-1" / "proc"
    left.mkdir(parents=True)
    (place / "c" / ".numasim").write_text("999999999\n")
    with running(place) as (process, exporters):
        assert snapshot(exporters[0]["url"]).exporter.node == "edge-1"
        again = [
            sys.executable,
            "-m",
            "numasim",
            "run",
            "--dir",
            str(place / "c"),
            "--announce",
            str(place / "x"),
        ]
        second = subprocess.run(again, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        assert second.returncode == 1
        assert f"belongs to the simulator that runs as process {process.pid}: end it" in second.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0


def test_without_a_directory_it_takes_one_of_its_own_and_removes_it(place: Path) -> None:
    file = place / "announce.json"
    command = [
        sys.executable,
        "-m",
        "numasim",
        "run",
        "--announce",
        str(file),
        "--nodes",
        "1",
        "--models",
        "edge",
    ]
    process = subprocess.Popen(command)
    try:
        wait(file.exists)
        exporter = Path(f"/proc/{children(process.pid)[0]}/cmdline").read_text().split("\0")
        root = Path(exporter[exporter.index("--root") + 1])
        assert (root / "proc/stat").exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert not root.parent.exists()
    finally:
        process.kill()
        process.wait()


def test_one_tree_is_written_for_whoever_wants_to_look(place: Path, read: Read) -> None:
    assert (
        numasim.main(["tree", "--model", "epyc-nps4", "--dir", str(place / "t"), "--containers", "250"]) == 0
    )
    found = read(place / "t")
    assert len(found.machine.topology.cpus) == 384
    assert len(found.by_id) == 250


def test_it_lists_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert numasim.main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert lines[1] == "epyc-nps4      2-socket EPYC 9654 at NPS4, 384 CPUs, 8 NUMA nodes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tree", "--model", "vax", "--dir", "x"], "no server model is named 'vax'; there are: xeon-snc"),
        (["run", "--dir", "/tmp/{long}", "--announce", "x"], "choose a directory with a shorter name"),
        (
            ["run", "--dir", "/proc/self", "--announce", "x"],
            "not a simulator's: name an empty or new directory",
        ),
        (["run", "--dir", "x", "--announce", "y", "--models", "edge,vax"], "no server model is named 'vax'"),
        (["fleet", "--announce", "x", "--faults", "rain:1"], "no fault is named 'rain'"),
    ],
)
def test_it_says_what_is_wrong_and_what_helps(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert numasim.main([each.format(long="n" * 70) for each in arguments]) == 1
    told = capsys.readouterr().err
    assert told.startswith("numasim: ")
    assert message in told


@pytest.mark.parametrize(
    "arguments", [["run"], ["fly"], [], ["run", "--dir", "x", "--announce", "y", "--period", "0"]]
)
def test_it_refuses_arguments_that_it_does_not_know(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        numasim.main(arguments)
    assert caught.value.code == 2


def test_it_writes_into_no_directory_that_is_in_use(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "mine").write_text("keep")
    assert numasim.main(["tree", "--model", "edge", "--dir", str(place)]) == 1
    assert "is not empty: name an empty or new directory" in capsys.readouterr().err
    assert [path.name for path in place.iterdir()] == ["mine"]
