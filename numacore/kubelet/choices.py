"""Where the kubelet itself is not deterministic (Go walks maps in any order): which way to go, and all ways there are.

The engine takes the first way unless a script says otherwise; `every` goes all ways by asking again with other scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Picks at the open points of one run, by a script; beyond its end always the first."""

    def __init__(self, script: tuple[int, ...] = ()) -> None:
        self._script = script
        self.made: list[tuple[int, int]] = []
        """(picked, number of ways) in order."""
        self.devices_alike = True
        """Devices on the same NUMA nodes are the same choice. Not so where plugins report anew later: then it matters which were taken."""

    def pick(self, ways: int) -> int:
        """Which of `ways` ways to go."""
        if ways < 2:
            return 0
        at = len(self.made)
        picked = self._script[at] if at < len(self._script) else 0
        self.made.append((picked, ways))
        return picked


def every(run: Callable[[Choices], T], limit: int) -> Iterator[T]:
    """The result of each way through `run`, at most `limit` of them; the first is the one without a script."""
    waiting: list[tuple[int, ...]] = [()]
    while waiting and limit:
        script = waiting.pop()
        choices = Choices(script)
        yield run(choices)
        limit -= 1
        picked = [way for way, _ in choices.made]
        for at in range(len(script), len(choices.made)):
            waiting += [(*picked[:at], way) for way in range(1, choices.made[at][1])]
