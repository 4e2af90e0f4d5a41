"""`python -m numacore WORD`: asks the engine from a terminal or a pipe, one JSON object a line in, one a line out.

judge: what a kubelet does with pods (the cases of numacore.kubelet.case).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

import msgspec

from numacore.kubelet import case, settings
from numacore.kubelet.errors import UnsupportedError
from numacore.quantity import QuantityError

Answer = Callable[[str], dict[str, Any]]


def main(arguments: list[str]) -> int:
    """Answers standard input; 1 = at least one line could not be answered."""
    parser = argparse.ArgumentParser(prog="python -m numacore", description=__doc__)
    words = parser.add_subparsers(dest="word", required=True)
    judge = words.add_parser("judge", help="what a kubelet does with pods, a case a line")
    judge.add_argument(
        "--kubelet", type=_kubelet_minor, default=settings.NEWEST, metavar="VERSION", help="such as 1.37"
    )
    asked = parser.parse_args(arguments)
    return _answer_lines(
        lambda line: case.judge(case.read(line), asked.kubelet), sys.stdin, sys.stdout, sys.stderr
    )


def _answer_lines(answer: Answer, lines: Iterable[str], out: TextIO, complaints: TextIO) -> int:
    failed = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            out.write(json.dumps(answer(line), ensure_ascii=False, separators=(",", ":")) + "\n")
        except (msgspec.DecodeError, QuantityError, UnsupportedError, ValueError) as error:
            complaints.write(f"line {number}: {error}\n")
            failed = 1
    return failed


def _kubelet_minor(text: str) -> int:
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    if major != "1" or not minor.isdigit() or not settings.OLDEST <= int(minor) <= settings.NEWEST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a version from 1.{settings.OLDEST} to 1.{settings.NEWEST}"
        )
    return int(minor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
