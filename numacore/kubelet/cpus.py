"""Lists of CPUs as the kubelet reads and prints them (utils cpuset). Sets of CPUs are integers with a bit per CPU."""

from __future__ import annotations

import re

from numacore.cpuset import MAX_ID, CpuSet


class CpuListError(ValueError):
    """A text that is no list of CPUs to the kubelet; the message is Go's."""


def shown(cpus: int) -> str:
    """CPUs in list format."""
    return str(CpuSet.of_bits(cpus))


def parse(text: str) -> int:
    """`cpuset.Parse`, which takes no blanks. Raises CpuListError."""
    cpus = 0
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low = _number(first)
        high = _number(last) if dash else low
        if low > high:
            raise CpuListError(f'invalid range "{part}" ({low} > {high})')
        cpus |= (1 << high + 1) - (1 << low)
    return cpus


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII):
        raise CpuListError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    if not 0 <= int(text) <= MAX_ID:
        raise CpuListError(f"{text} is no CPU")
    return int(text)
