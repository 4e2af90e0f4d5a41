"""`python -m tests.oracle --cases N --seed S`: fresh random cases for the kubelet and our engine.

Prints the seed, shrinks what differs and keeps it in tests/oracle/found, from where `make test` asks it for ever.
Exit code 0 = they agree.
"""

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from numacore.kubelet import case as judging
from tests import goprograms
from tests.oracle import comparison, generator, program, shrinking
from tests.oracle.comparison import Case, Difference
from tests.oracle.written import written

FOUND = Path(__file__).parent / "found"
CHUNK = 2000
SHRINK_SECONDS = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--minor", type=int, default=program.NEWEST, choices=program.TAGS)
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="only write cases with the kubelet's answers"
    )
    parser.add_argument("--written", action="store_true", help="with --record: those of written.py instead")
    parser.add_argument("--keep", type=int, default=5, help="differences to shrink and keep (default: 5)")
    parser.add_argument("--into", type=Path, default=FOUND, help="folder for them")
    parser.add_argument("--without", nargs="*", default=(), choices=generator.PARTS)
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}, {chosen.cases} cases, kubelet 1.{chosen.minor}", flush=True)
    try:
        binary = program.oracle(chosen.minor)
    except goprograms.LackingError as lacking:
        print(f"This machine lacks {lacking}")
        return 2
    if chosen.record:
        random_ones = generator.cases(chosen.seed, chosen.cases, minor=chosen.minor)
        record(chosen.record, written(chosen.minor) if chosen.written else list(random_ones), binary)
        return 0
    found = _differences(binary, chosen)
    for difference in found[: chosen.keep]:
        print(f"kept as {keep(shrink(difference, binary, chosen.minor), chosen.into)}")
    print(f"{len(found)} of {chosen.cases} cases differ")
    return 1 if found else 0


def record(file: Path, cases: Sequence[Case], binary: Path) -> None:
    """What tests compare without Go (tests/numacore/kubelet/test_recorded.py)."""
    told = zip(cases, program.ask_oracle(binary, cases), strict=True)
    lines = "".join(json.dumps({"case": case, "answer": answer}) + "\n" for case, answer in told)
    file.write_bytes(gzip.compress(lines.encode(), mtime=0))


def _differences(binary: Path, chosen: argparse.Namespace) -> list[Difference]:
    found: list[Difference] = []
    started = time.monotonic()
    for start in range(0, chosen.cases, CHUNK):
        numbers = range(start, min(start + CHUNK, chosen.cases))
        cases = [generator.case(chosen.seed, nth, chosen.without, chosen.minor) for nth in numbers]
        engine = partial(program.ask_engine, minor=chosen.minor)
        differing = comparison.differences(cases, _oracle(binary), engine)
        found += differing
        for each in differing:
            print(f"{each.case['ID']} differs in {', '.join(comparison.kind(each))}", flush=True)
        print(f"{numbers.stop} cases, {len(found)} differ, {time.monotonic() - started:.0f} s", flush=True)
    return found


def _oracle(binary: Path) -> comparison.Ask:
    return lambda cases: program.ask_oracle(binary, cases)


def shrink(difference: Difference, binary: Path, minor: int = program.NEWEST) -> Difference:
    """The same kind of difference in a smaller case."""
    with program.Kept(binary) as oracle:

        def ask(case: Case) -> Difference | None:
            try:
                ours = json.loads(judging.answer(json.dumps(case).encode(), minor))
            except ValueError:
                return None
            theirs = [answer for answer in (oracle.ask(case), oracle.ask(case)) if answer is not None]
            return comparison.difference(case, theirs, ours)

        deadline = time.monotonic() + SHRINK_SECONDS

        def same(case: Case) -> bool:
            if time.monotonic() > deadline:
                return False
            found = ask(case)
            return found is not None and comparison.kind(found) == comparison.kind(difference)

        return ask(shrinking.shrunk(difference.case, same)) or difference


def keep(difference: Difference, folder: Path) -> Path:
    """Writes the case and what both said of it; a file in `found` holds the kubelet's answers as the right ones."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{difference.case['ID']}.json"
    told = {"case": difference.case, "kubelet": difference.kubelet, "ours": difference.ours}
    file.write_text(json.dumps(told, indent=1) + "\n")
    return file


if __name__ == "__main__":
    sys.exit(main())
