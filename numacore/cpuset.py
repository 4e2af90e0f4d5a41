"""Sets of CPU ids or NUMA node ids, in the kernel's list format ("0-3,8").

A `CpuSet` is immutable and held as one integer with a bit per id, which keeps unions and intersections of a
1,024-CPU machine at nanoseconds and its memory at a few words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_ID = 65_535
"""Largest id that is accepted. Linux is built for at most 8,192 CPUs; the bound keeps "0-4294967295" from a broken or
hostile file from becoming half a gigabyte of bits."""
MAX_PARTS = 32_768
"""Most parts of a list that is accepted: every second id up to `MAX_ID`. A longer list says something twice."""
MAX_WORDS = (MAX_ID + 1) // 32
"""Most 32-bit words of a mask that is accepted."""


class CpuSetError(ValueError):
    """A text that is not in the kernel's list format, or names an id above `MAX_ID`."""


class CpuSet:
    """An immutable set of ids. Compares, hashes and prints by its members."""

    __slots__ = ("_bits",)
    _bits: int

    def __init__(self, ids: Iterable[int] = ()) -> None:
        bits = 0
        for member in ids:
            _check(member, str(member))
            bits |= 1 << member
        self._bits = bits

    @classmethod
    def parse(cls, text: str) -> CpuSet:
        """Reads the kernel's list format; empty text is the empty set.

        Also reads the strided form `0-15:2/4` of cpuset(7) ("List Format"): of every 4 ids, the first 2.

        Raises:
            CpuSetError: with the part that could not be read.
        """
        if not (text := text.strip()):
            return EMPTY
        if text.count(",") >= MAX_PARTS:
            raise CpuSetError(f"the list {_shown(text)} has more than {MAX_PARTS} parts")
        bits = 0
        for part in text.split(","):
            if not (part := part.strip()):
                raise CpuSetError(f"empty part in the list {_shown(text)}")
            bits |= _range_bits(part)
        return cls.of_bits(bits)

    @classmethod
    def parse_mask(cls, text: str) -> CpuSet:
        """Reads the kernel's mask format: 32-bit words in hexadecimal, most significant first, split by commas."""
        words = text.strip().split(",")
        if len(words) > MAX_WORDS:
            raise CpuSetError(f"the CPU mask has more than {MAX_WORDS} words")
        for word in words:
            if not 0 < len(word) <= 8 or set(word) - _HEXADECIMAL:
                raise CpuSetError(f"{_shown(word)} is not a 32-bit hexadecimal word of a CPU mask")
        return cls.of_bits(int("".join(word.rjust(8, "0") for word in words), 16))

    @classmethod
    def of_bits(cls, bits: int) -> CpuSet:
        """The set whose members are the positions of the ones in `bits`."""
        made = cls.__new__(cls)
        made._bits = bits
        return made

    @property
    def bits(self) -> int:
        """The members as an integer with a bit per id."""
        return self._bits

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __bool__(self) -> bool:
        return self._bits != 0

    def __iter__(self) -> Iterator[int]:
        bits = self._bits
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low

    def __contains__(self, member: object) -> bool:
        return isinstance(member, int) and member >= 0 and bool(self._bits >> member & 1)

    def __or__(self, other: CpuSet) -> CpuSet:
        return CpuSet.of_bits(self._bits | other._bits)

    def __and__(self, other: CpuSet) -> CpuSet:
        return CpuSet.of_bits(self._bits & other._bits)

    def __sub__(self, other: CpuSet) -> CpuSet:
        return CpuSet.of_bits(self._bits & ~other._bits)

    def __le__(self, other: CpuSet) -> bool:
        return self._bits & ~other._bits == 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CpuSet) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __str__(self) -> str:
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in self.ranges())

    def __repr__(self) -> str:
        return f"CpuSet({str(self)!r})"

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The members as runs (first, last), ascending."""
        bits = self._bits
        base = 0
        while bits:
            gap = (bits & -bits).bit_length() - 1
            bits >>= gap
            run = (~bits & (bits + 1)).bit_length() - 1
            yield base + gap, base + gap + run - 1
            bits >>= run
            base += gap + run


EMPTY = CpuSet()


def union(sets: Iterable[CpuSet]) -> CpuSet:
    """The union of any number of sets."""
    bits = 0
    for each in sets:
        bits |= each.bits
    return CpuSet.of_bits(bits)


def _range_bits(part: str) -> int:
    span, colon, stride = part.partition(":")
    first, dash, last = span.partition("-")
    low = _number(first, part)
    high = _number(last, part) if dash else low
    if high < low:
        raise CpuSetError(f"the range {_shown(part)} runs backwards")
    if not colon:
        return (1 << high + 1) - (1 << low)
    used, slash, group = stride.partition("/")
    take, every = _number(used, part), _number(group, part) if slash else 0
    if not 0 < take <= every:
        raise CpuSetError(f"the stride of {_shown(part)} is not USED/GROUP with 0 < USED <= GROUP")
    return _strided(high + 1 - low, take, every) << low


def _strided(length: int, take: int, every: int) -> int:
    """The lowest `length` bits of a pattern that repeats each `every` bits, the first `take` of them ones."""
    bits, width = (1 << take) - 1, every
    while width < length:
        bits |= bits << width
        width *= 2
    return bits & (1 << length) - 1


def _number(text: str, part: str) -> int:
    # str.isdigit() takes other scripts' digits too, and int() takes "+1", "1_0" and blanks: the kernel prints none.
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise CpuSetError(f"{_shown(part)} is not an id or a range of ids")
    value = int(text)
    _check(value, part)
    return value


def _check(value: int, part: str) -> None:
    if not 0 <= value <= MAX_ID:
        raise CpuSetError(f"{_shown(part)} has an id outside 0-{MAX_ID}")


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")
