"""Label selectors as Kubernetes writes them: `zone=a,tier in (gold, silver),!legacy,cores>64`. All parts must hold.

Rules: apimachinery 1.37, pkg/labels/selector.go. `!=` and `notin` hold for whoever lacks the label; `>` and `<` compare whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

Operator = Literal["in", "notin", "exists", "absent", ">", "<"]

LONGEST = 1000
"""Characters of a whole selector; more than any page or object needs."""
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_MOST_DOMAIN = 253
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)
_MOST_WHOLE = 1 << 63
_SYMBOLS = frozenset(("==", "!=", "=", "!", "<", ">", "(", ")", ","))

Fault = Literal["empty", "too-long", "key", "value", "number", "syntax"]


class SelectorError(ValueError):
    """A selector that the API server would refuse: a code for which pages have a sentence, and the part that is wrong."""

    def __init__(self, code: Fault, part: str = "") -> None:
        super().__init__(f"{code}: {part}" if part else code)
        self.code: Fault = code
        self.part = part[:80]


class Requirement(msgspec.Struct, frozen=True):
    """One part: a label and what has to hold for it."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        has = self.key in labels
        match self.operator:
            case "exists":
                return has
            case "absent":
                return not has
            case "in":
                return has and labels[self.key] in self.values
            case "notin":
                return not has or labels[self.key] not in self.values
        if not has or (value := _whole(labels[self.key])) is None:
            return False
        bound = int(next(iter(self.values)))
        return value > bound if self.operator == ">" else value < bound


class Selector(msgspec.Struct, frozen=True):
    """Parts that must all hold. One without parts holds for everybody."""

    parts: tuple[Requirement, ...]

    def holds(self, labels: Mapping[str, str]) -> bool:
        return all(part.holds(labels) for part in self.parts)


def parse(text: str) -> Selector:
    """Raises SelectorError. An empty text is an error here: whoever means every node says so otherwise."""
    if len(text) > LONGEST:
        raise SelectorError("too-long", str(LONGEST))
    tokens = _TOKEN.findall(text)
    if not tokens:
        raise SelectorError("empty")
    reader = _Reader(tokens)
    parts = [reader.requirement()]
    while reader.left:
        reader.expect(",")
        parts.append(reader.requirement())
    return Selector(tuple(parts))


class _Reader:
    """What is left of the tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens

    def requirement(self) -> Requirement:
        if self._taken("!"):
            return Requirement(self._key(), "absent")
        key = self._key()
        match self.left[0] if self.left else ",":
            case ",":
                return Requirement(key, "exists")
            case "=" | "==":
                return Requirement(key, "in", frozenset((self._value_after_sign(),)))
            case "!=":
                return Requirement(key, "notin", frozenset((self._value_after_sign(),)))
            case ">":
                return Requirement(key, ">", self._bound())
            case "<":
                return Requirement(key, "<", self._bound())
            case "in":
                return Requirement(key, "in", self._set())
            case "notin":
                return Requirement(key, "notin", self._set())
            case other:
                raise SelectorError("syntax", other)

    def expect(self, symbol: str) -> None:
        if not self._taken(symbol):
            raise SelectorError("syntax", self.left[0] if self.left else symbol)

    def _taken(self, symbol: str) -> bool:
        if self.left and self.left[0] == symbol:
            self.left = self.left[1:]
            return True
        return False

    def _word(self) -> str:
        """The next word; "" where a sign stands or nothing."""
        if not self.left or self.left[0] in _SYMBOLS:
            return ""
        word, *self.left = self.left
        return word

    def _key(self) -> str:
        key = self._word()
        prefix, slash, name = key.rpartition("/")
        good_prefix = not slash or (_DOMAIN.fullmatch(prefix) and len(prefix) <= _MOST_DOMAIN)
        if not good_prefix or not _NAME.fullmatch(name):
            raise SelectorError("key", key or (self.left[0] if self.left else ""))
        return key

    def _value_after_sign(self) -> str:
        self.left = self.left[1:]
        return self._value()

    def _value(self) -> str:
        """A label may be empty, so a value may be too."""
        value = self._word()
        if value and not _NAME.fullmatch(value):
            raise SelectorError("value", value)
        return value

    def _bound(self) -> frozenset[str]:
        value = self._value_after_sign()
        if _whole(value) is None:
            raise SelectorError("number", value)
        return frozenset((value,))

    def _set(self) -> frozenset[str]:
        self.left = self.left[1:]
        self.expect("(")
        values = {self._value()}
        while self._taken(","):
            values.add(self._value())
        self.expect(")")
        return frozenset(values)


def _whole(text: str) -> int | None:
    """A 64-bit number as Go's ParseInt reads it."""
    if not _WHOLE.fullmatch(text):
        return None
    value = int(text)
    return value if -_MOST_WHOLE <= value < _MOST_WHOLE else None
