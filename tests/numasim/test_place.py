"""A simulator's own directory: in memory where there is room, and what a killed one left is removed by the next."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from numasim import place

NOBODY = 2**22 + 1
"""No process has this number: it is above Linux's largest."""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr(place, "SHARED_MEMORY", folder)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "disk"))
    return folder


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_it_removes_what_a_killed_simulator_left_and_nothing_else(memory: Path, where: str) -> None:
    base = memory.parent / where
    left, foreign = base / f"{place.PREFIX}left", base / f"{place.PREFIX}foreign"
    for folder in (left, foreign):
        folder.mkdir()
    (left / place.MARK).write_text(f"{NOBODY}\n")
    with place.claimed(None) as mine:
        assert mine.parent == memory
        assert not left.exists()
        assert foreign.exists()
    assert not mine.exists()


def test_it_goes_to_the_disk_where_memory_has_no_room(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "ROOM", 1 << 62)
    with place.claimed(None) as mine:
        assert mine.parent == memory.parent / "disk"
