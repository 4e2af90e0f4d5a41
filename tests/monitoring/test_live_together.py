"""Questions that come at once are asked as one, and nobody waits for ever."""

import asyncio
import threading

import pytest

from monitoring.live.together import Together

# Its thread may hold a connection that an earlier test opened, and looks after it.
pytestmark = pytest.mark.django_db


class Judge:
    """Answers with the length of each word, and knows not every word."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.called = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.free = threading.Event()
        self.free.set()

    def __call__(self, words: list[str]) -> dict[str, int]:
        self.calls.append(sorted(words))
        self.loop.call_soon_threadsafe(self.called.set)
        assert self.free.wait(5)
        if "broken" in words:
            raise LookupError("broken")
        return {word: len(word) for word in words if word != "unknown"}


async def test_it_asks_once_for_all_that_wait() -> None:
    judge = Judge()
    judge.free.clear()
    together = Together(judge)
    first = asyncio.ensure_future(together.ask("a"))
    await judge.called.wait()
    others = [asyncio.ensure_future(together.ask(word)) for word in ("bb", "ccc", "bb", "unknown")]
    await asyncio.sleep(0.01)
    judge.free.set()
    assert await asyncio.gather(first, *others) == [1, 2, 3, 2, None]
    assert judge.calls == [["a"], ["bb", "ccc", "unknown"]]


async def test_it_remembers_nothing() -> None:
    judge = Judge()
    together = Together(judge)
    assert [await together.ask("a"), await together.ask("a")] == [1, 1]
    assert judge.calls == [["a"], ["a"]]


async def test_a_failure_reaches_everybody_who_asked_and_nobody_later() -> None:
    together = Together(Judge())
    found = await asyncio.gather(together.ask("broken"), together.ask("a"), return_exceptions=True)
    assert all(isinstance(each, LookupError) for each in found)
    assert await together.ask("a") == 1


async def test_who_leaves_disturbs_nobody() -> None:
    judge = Judge()
    judge.free.clear()
    together = Together(judge)
    leaver, stayer = asyncio.ensure_future(together.ask("a")), asyncio.ensure_future(together.ask("a"))
    await judge.called.wait()
    leaver.cancel()
    judge.free.set()
    assert await stayer == 1
    with pytest.raises(asyncio.CancelledError):
        await leaver
