"""Go programs are built once, whoever asks and however many at a time."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from tests import goprograms
from tests.cluster import programs
from tests.goprograms import Program

# A stand-in for the compiler: it notes each build, waits until a file is there, and leaves another.
COMPILER = """#!/bin/sh
[ "$1" = env ] && echo go1.27.1 && exit
[ "$1" = mod ] && exit
echo "$@" >> {folder}/calls
while [ ! -e {folder}/go-on ]; do sleep 0.02; done
[ -e {folder}/broken ] && echo it does not compile >&2 && exit 1
echo made > "$3"
"""


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with the stand-in first on the path, an empty cache and a module."""
    compiler = tmp_path / "go"
    compiler.write_text(COMPILER.format(folder=tmp_path))
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "go.mod").write_text("module one\n")
    return tmp_path


def tool(workshop: Path, flags: tuple[str, ...] = ()) -> Program:
    return Program("tool", workshop / "module", "somebody", "example.com/tool", flags)


def calls(workshop: Path) -> list[str]:
    return (workshop / "calls").read_text().splitlines()


def test_two_at_once_build_it_once(workshop: Path) -> None:
    told: list[str] = []
    building = Event()

    def first(line: str) -> None:
        told.append(line)
        building.set()

    def second(line: str) -> None:
        told.append(line)
        (workshop / "go-on").touch()

    with ThreadPoolExecutor() as pool:
        one = pool.submit(goprograms.built, tool(workshop), first)
        assert building.wait(20)
        other = pool.submit(goprograms.built, tool(workshop), second)
        assert one.result(20) == other.result(20)
    assert len(calls(workshop)) == 1
    assert told[:2] == [
        "Building tool, once; from nothing this takes minutes",
        "Waiting for another run that builds tool",
    ]
    assert one.result().read_text() == "made\n"


def test_other_flags_are_another_program(workshop: Path) -> None:
    (workshop / "go-on").touch()
    plain, stripped = (goprograms.built(tool(workshop, flags)) for flags in ((), ("-ldflags", "-s")))
    assert plain != stripped
    assert calls(workshop)[1].endswith("-ldflags -s example.com/tool")


def test_a_changed_module_is_built_anew(workshop: Path) -> None:
    (workshop / "go-on").touch()
    before = goprograms.built(tool(workshop))
    (workshop / "module" / "go.mod").write_text("module two\n")
    assert goprograms.built(tool(workshop)) != before


def test_what_does_not_compile_is_an_error_and_is_tried_again(workshop: Path) -> None:
    (workshop / "go-on").touch()
    (workshop / "broken").touch()
    with pytest.raises(subprocess.CalledProcessError):
        goprograms.built(tool(workshop))
    (workshop / "broken").unlink()
    assert goprograms.built(tool(workshop)).read_text() == "made\n"


def test_a_machine_without_go_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(goprograms.LackingError, match=r"^Go$"):
        programs.control_plane()


@pytest.mark.parametrize("program", programs.CONTROL_PLANE, ids=lambda program: program.name)
def test_a_module_names_every_program_that_is_built_from_it(program: Program) -> None:
    """Otherwise `go mod tidy` takes its modules out."""
    lines = (program.module / "go.mod").read_text().splitlines()
    assert program.package in {line.removeprefix("tool").strip() for line in lines}
