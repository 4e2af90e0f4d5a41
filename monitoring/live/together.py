"""Questions that are asked at the same time, answered together.

A thousand browsers come back at once when a server was restarted, and each needs the same few rows. Nothing is
remembered: an answer is always read after it was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from channels.db import database_sync_to_async

Q = TypeVar("Q")
A = TypeVar("A")


class Together(Generic[Q, A]):
    """`judge` answers many questions in a thread; those that come meanwhile wait for its next call."""

    def __init__(self, judge: Callable[[list[Q]], Mapping[Q, A]]) -> None:
        self._judge = judge
        self._waiting: dict[Q, list[asyncio.Future[A | None]]] = {}
        self._work: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A | None:
        """The answer; None where there is none. Raises what `judge` raises."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A | None] = loop.create_future()
        self._waiting.setdefault(question, []).append(answer)
        if self._work is None or self._work.done() or self._work.get_loop() is not loop:
            self._work = loop.create_task(self._answer())
        return await answer

    async def _answer(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, {}
            work = asyncio.ensure_future(database_sync_to_async(self._judge)(list(asked)))
            await asyncio.wait([work])
            error = work.exception()
            self._tell(asked, error if error is not None else work.result())

    @staticmethod
    def _tell(asked: dict[Q, list[asyncio.Future[A | None]]], found: Mapping[Q, A] | BaseException) -> None:
        for question, answers in asked.items():
            for answer in answers:
                if answer.done():
                    continue  # whoever asked has left
                if isinstance(found, BaseException):
                    answer.set_exception(found)
                else:
                    answer.set_result(found.get(question))
