"""Questions to dependencies of which nobody knows whether they answer: each in a thread of its own, with one time for all.

A question that hangs keeps one thread, however often it is asked: whoever comes meanwhile waits for the same answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import structlog
from django.db import connection

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Question(Generic[T]):
    """One call that runs in a daemon thread: it keeps no process from ending."""

    def __init__(self, name: str, call: Callable[[], T]) -> None:
        self._name, self._call, self.over = name, call, threading.Event()
        self.answer: T | None = None
        threading.Thread(target=self._run, name=f"ask-{name}", daemon=True).start()

    def _run(self) -> None:
        try:
            self.answer = self._call()
        except Exception:
            log.exception("question", part=self._name)  # nobody else would hear of it in this thread
        finally:
            connection.close()  # that of this thread, or it would be lost with it
            self.over.set()


class Asker(Generic[T]):
    """Asks the same questions again and again."""

    def __init__(self) -> None:
        self._open: dict[str, Question[T]] = {}
        self._lock = threading.Lock()

    def ask(self, calls: Mapping[str, Callable[[], T]], seconds: float) -> dict[str, T | None]:
        """What each call returned; None = it did not return within `seconds`, or raised. All are asked at once."""
        asked = {name: self._asked(name, call) for name, call in calls.items()}
        until = time.monotonic() + seconds
        for question in asked.values():
            question.over.wait(max(0.0, until - time.monotonic()))
        return {name: each.answer if each.over.is_set() else None for name, each in asked.items()}

    def _asked(self, name: str, call: Callable[[], T]) -> Question[T]:
        with self._lock:
            question = self._open.get(name)
            if question is None or question.over.is_set():
                question = self._open[name] = Question(name, call)
            return question
