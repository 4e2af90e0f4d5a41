"""`python -m numacore WORD`: the engine on standard input and output, a JSON object a line.

The one module of this room that reads and writes. A line that is no case gets a message with its number on standard error, the others go on.
Exit code 0 = every line was answered, 1 = some were not, 2 = the command is wrong.
"""

import argparse
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from typing import BinaryIO, TextIO

from numacore.kubelet import case, settings
from numacore.kubelet.checks import case as checks
from numacore.kubelet.checks import findings
from numacore.volcano import cases, versions

Answer = Callable[[bytes], bytes]


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    answer: Answer = chosen.prepare(chosen)
    return answer_lines(sys.stdin.buffer, answer, sys.stdout.buffer, sys.stderr)


def answer_lines(lines: Iterable[bytes], answer: Answer, answers: BinaryIO, complaints: TextIO) -> int:
    """Writes an answer for each line that is not blank; returns the exit code."""
    code = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            answers.write(answer(line) + b"\n")
        except ValueError as error:
            complaints.write(f"line {number}: {error}\n")
            code = 1
    answers.flush()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m numacore", description=__doc__)
    words = parser.add_subparsers(metavar="WORD", required=True)
    score = words.add_parser("score", help="what Volcano's numa-aware plugin says of each node")
    score.add_argument(
        "--volcano", type=_volcano, default="1.15", metavar="VERSION", help="its version (default: 1.15)"
    )
    score.set_defaults(prepare=_score)
    judge = words.add_parser("judge", help="what a kubelet does with pods")
    judge.set_defaults(prepare=_judge)
    check = words.add_parser(
        "check", help="whether a kubelet starts with these settings, and what it makes of them"
    )
    check.set_defaults(prepare=_check)
    for word in (judge, check):
        word.add_argument(
            "--kubelet",
            type=_kubelet,
            default=settings.NEWEST_VERSION,
            metavar="VERSION",
            help=f"its version (default: {settings.NEWEST_VERSION})",
        )
    return parser


def _score(chosen: argparse.Namespace) -> Answer:
    if chosen.volcano.proof != "proven":
        _note(f"Volcano {chosen.volcano}: its rules are taken from documents, not compared with the program.")
    return cases.answer


def _volcano(text: str) -> versions.Version:
    try:
        return versions.parse(text)
    except versions.UnknownVersionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _judge(chosen: argparse.Namespace) -> Answer:
    minor = _said_unless_in(settings.PROVEN, chosen)
    return lambda line: case.answer(line, minor)


def _check(chosen: argparse.Namespace) -> Answer:
    minor = _said_unless_in(findings.PROVEN, chosen)
    return lambda line: checks.answer(line, minor)


def _said_unless_in(proven: Container[int], chosen: argparse.Namespace) -> int:
    """The kubelet's minor version, with a note where its rules were only read in documents."""
    minor: int = chosen.kubelet
    if minor not in proven:
        _note(f"Kubelet 1.{minor}: its rules are taken from documents, not compared with the program.")
    return minor


def _kubelet(text: str) -> int:
    try:
        return settings.minor_of(text)
    except settings.UnknownVersionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _note(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
