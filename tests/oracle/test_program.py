"""Building and asking the oracle."""

from pathlib import Path

import pytest

from tests import goprograms
from tests.oracle import program

pytestmark = pytest.mark.timeout(1800)

SHORT = {
    "ID": "short",
    "Machine": [{"ID": 0, "Memory": 1 << 30, "Cores": [{"ID": 0, "Socket": 0, "Threads": [0, 1]}]}],
}
SETTINGS = {"TopologyPolicy": "none", "Scope": "container", "CPUPolicy": "none", "MemoryPolicy": "None"}
EMPTY = SHORT | {"Config": SETTINGS, "Steps": []}


def executable(file: Path, lines: str) -> Path:
    file.write_text("#!/bin/sh\n" + lines)
    file.chmod(0o755)
    return file


def test_a_machine_without_go_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(goprograms.LackingError, match="Go"):
        program.oracle()


@pytest.mark.parametrize("version", ["go1.25.9", "go1.9", "devel"])
def test_an_old_go_is_named(version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable(tmp_path / "go", f"echo {version}\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(goprograms.LackingError, match=f"Go 1.26 .it has {version}"):
        program.oracle()


def test_it_is_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for the compiler: it notes each call and leaves a file."""
    calls = tmp_path / "calls"
    executable(
        tmp_path / "go",
        f'[ "$1" = env ] && echo go1.27.1 && exit\necho "$@" >> {calls}\n[ "$1" = mod ] || echo made > "$3"\n',
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = program.oracle()
    assert program.oracle() == first
    assert first.read_text() == "made\n"
    assert first.is_relative_to(tmp_path / "cache" / "numaweb" / "bin")
    assert calls.read_text().count("build") == 1


def test_modules_that_cannot_be_had_are_named_with_the_cause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    executable(
        tmp_path / "go",
        '[ "$1" = env ] && echo go1.27.1 && exit\necho trying >&2\necho no route >&2\nexit 1\n',
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(goprograms.LackingError, match=r"modules of Kubernetes \(no route\)"):
        program.oracle()


def test_answers_come_in_the_order_of_the_cases(binary: Path) -> None:
    asked = [EMPTY | {"ID": str(nth)} for nth in range(2 * program.BATCH + 1)]
    assert [answer["id"] for answer in program.ask_oracle(binary, asked)] == [case["ID"] for case in asked]


def test_the_oracle_goes_on_after_a_case_that_does_not_come_back(tmp_path: Path) -> None:
    """A stand-in that answers one case and ends as the oracle does after a hang."""
    echo = executable(tmp_path / "oracle", f"head -1\nexit {program.AFTER_HANG}\n")
    asked = [EMPTY | {"ID": str(nth)} for nth in range(4)]
    assert program.ask_oracle(echo, asked) == asked


def test_an_oracle_that_breaks_is_no_agreement(tmp_path: Path) -> None:
    broken = executable(tmp_path / "oracle", "echo it broke >&2\nexit 1\n")
    with pytest.raises(RuntimeError, match="it broke"):
        program.ask_oracle(broken, [EMPTY])


def test_a_process_that_stays_answers_one_by_one(binary: Path) -> None:
    with program.Kept(binary) as kept:
        answers = [kept.ask(EMPTY | {"ID": str(nth)}) for nth in range(3)]
    assert answers == [{"id": str(nth), "steps": None} for nth in range(3)]
