"""The kubelet's own managers and our engine say the same, to the word."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.oracle import comparison, generator, program
from tests.oracle.__main__ import FOUND, keep, shrink
from tests.oracle.comparison import Answer, Case
from tests.oracle.written import WRITTEN

SEED = 20_26
CASES = 3000
SHOWN = 3
KEPT = sorted(FOUND.glob("*.json"))

# The first run on a machine builds the oracle, which takes minutes.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return list(generator.cases(SEED, CASES))


@pytest.fixture(scope="module")
def answers(binary: Path, cases: list[Case]) -> list[Answer]:
    """The kubelet's."""
    return program.ask_oracle(binary, cases)


def test_three_thousand_random_cases(
    binary: Path, cases: list[Case], answers: list[Answer], tmp_path: Path
) -> None:
    def oracle(asked: Sequence[Case]) -> list[Answer]:
        return answers if asked is cases else program.ask_oracle(binary, asked)

    found = comparison.differences(cases, oracle, program.ask_engine)
    smaller = [keep(shrink(each, binary), tmp_path).read_text() for each in found[:SHOWN]]
    assert not found, f"{len(found)} of {CASES} cases of seed {SEED} differ:\n" + "\n".join(smaller)


def test_they_are_cases_worth_asking(answers: list[Answer]) -> None:
    """Every verdict turns up, and refusals as often as they should."""
    told = Counter("start refused" if answer.get("start_error") else "started" for answer in answers)
    told.update(step.get("reason") or "admitted" for answer in answers for step in answer["steps"] or [])
    assert told["started"] > told["start refused"] > CASES // 20
    for reason in ("TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError", "Panic"):
        assert told[reason] > 20, reason
    assert told["admitted"] > told["TopologyAffinityError"]


def test_cases_written_for_single_rules(binary: Path) -> None:
    assert not comparison.differences(
        WRITTEN, lambda some: program.ask_oracle(binary, some), program.ask_engine
    )


@pytest.mark.skipif(not KEPT, reason="No case was ever found and kept")
def test_cases_that_once_differed(binary: Path) -> None:
    cases: list[Case] = [json.loads(file.read_text())["case"] for file in KEPT]
    assert not comparison.differences(
        cases, lambda some: program.ask_oracle(binary, some), program.ask_engine
    )


def test_cases_that_once_differed_are_remembered() -> None:
    """What the kubelet said of them stands in their files, so that they are asked without it too."""
    for file in KEPT:
        kept = json.loads(file.read_text())
        (ours,) = program.ask_engine([kept["case"]])
        assert comparison.difference(kept["case"], kept["kubelet"], ours) is None, file.name
