"""A bounded memory for what is dear to make and stays right as long as its key is the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Memory(Generic[T]):
    """The newest `most` values by their keys. Two threads that miss at once both make the value; one of them stays."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key]

    def put(self, key: Hashable, value: T) -> T:
        with self._lock:
            self._held[key] = value
            self._held.move_to_end(key)
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return value

    def got(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value, made if it is not there."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
