"""NUMAWEB_ALIVE_FILE is touched by whoever works, and by nobody who hangs."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django_celery_beat.schedulers import DatabaseScheduler
from pytest_django.fixtures import Settings

from numaweb import alive


@pytest.fixture
def file(tmp_path: Path, settings: Settings) -> Path:
    settings.NUMAWEB_ALIVE_FILE = str(tmp_path / "alive")
    return tmp_path / "alive"


class Loop:
    """A worker's main loop, which a test turns by hand."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call_repeatedly(self, _seconds: float, call: Callable[[], None]) -> Any:
        self.calls.append(call)
        return SimpleNamespace(cancel=lambda: self.calls.remove(call))

    def turn(self) -> None:
        for call in self.calls:
            call()


def consumer(connection: object) -> Any:
    return SimpleNamespace(timer=Loop(), connection=connection)


def test_a_worker_touches_it_in_its_main_loop_and_nowhere_else(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alive, "EVERY_SECONDS", 0.001)
    works = consumer(connection=object())
    pulse = alive.Pulse(works)
    assert pulse.include_if(works)
    pulse.start(works)
    file.unlink()
    works.timer.turn()
    assert file.exists()
    pulse.shutdown(works)
    assert works.timer.calls == []


def test_a_worker_without_a_broker_lives(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = threading.Event()
    monkeypatch.setattr(alive, "EVERY_SECONDS", 0.001)
    monkeypatch.setattr(alive, "touch", touched.set)
    works = consumer(connection=None)
    pulse = alive.Pulse(works)
    assert touched.wait(30)
    works.connection = object()
    pulse.shutdown(works)


def test_beat_touches_it_at_every_look(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DatabaseScheduler, "tick", lambda *_: 5.0)
    assert alive.Scheduler.tick(alive.Scheduler.__new__(alive.Scheduler)) == 5.0
    assert file.exists()


def test_nobody_who_was_not_asked_writes_a_file(settings: Settings) -> None:
    settings.NUMAWEB_ALIVE_FILE = ""
    assert not alive.Pulse(consumer(None)).include_if(consumer(None))
    alive.touch()
