"""600 random cases against what the kubelet 1.37.2 itself answered: starts, refusals, placements, crashes, to the word; and 120 against
what each of the versions before it answered (`python -m tests.oracle --minor 36 --cases 120 --seed 5150 --record FILE`); and cases written for
single rules (`tests/oracle/written.py`, recorded with `--written`)."""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from numacore.kubelet import case, settings
from tests.oracle import comparison, written

FOLDER = Path(__file__).parent / "cases"
RECORDED = FOLDER / "kubelet-1.37.2.jsonl.gz"
BY_MINOR = {int(file.name.split(".")[1]): file for file in FOLDER.glob("kubelet-1.*.jsonl.gz")}
WRITTEN = {int(file.name.split(".")[1]): file for file in FOLDER.glob("written-1.*.jsonl.gz")}
Line = dict[str, Any]


@cache
def recorded() -> tuple[Line, ...]:
    with gzip.open(RECORDED, "rt") as lines:
        return tuple(map(json.loads, lines))


def engine(line: Line) -> list[Line]:
    """All answers that the engine holds possible."""
    answer = case.judge(case.read(json.dumps(line["case"])))
    return [answer, *answer.pop("open", [])]


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_the_engine_answers_as_the_kubelet_did(first: int) -> None:
    for line in recorded()[first : first + 100]:
        assert line["answer"] in engine(line), line["case"]["ID"]


def test_what_the_kubelet_answered_differently_at_another_time_is_told_as_open() -> None:
    (line,) = (line for line in recorded() if "other_answers" in line)
    possible = engine(line)
    assert len(possible) == 2
    assert line["answer"] in possible
    assert line["other_answers"][0] in possible


def test_the_recorded_cases_hold_every_kind_of_answer() -> None:
    """Cases without refusals would prove little."""
    steps = Counter(
        step.get("reason", "admitted" if step["admit"] else "?")
        for line in recorded()
        for step in line["answer"]["steps"] or ()
    )
    assert len(recorded()) == 600
    assert sum("start_error" in line["answer"] for line in recorded()) > 100
    assert (
        min(
            steps[kind] for kind in ("TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError")
        )
        > 30
    )
    assert steps["Panic"] == 10


@pytest.mark.parametrize("minor", sorted(BY_MINOR.keys() - {37}))
def test_the_engine_answers_as_older_kubelets_did(minor: int) -> None:
    with gzip.open(BY_MINOR[minor], "rt") as lines:
        for line in map(json.loads, lines):
            ours = case.judge(case.read(json.dumps(line["case"])), minor)
            assert comparison.difference(line["case"], [line["answer"]], ours) is None, line["case"]["ID"]


@pytest.mark.parametrize("minor", sorted(WRITTEN))
def test_the_engine_answers_to_written_cases_as_the_kubelet_did(minor: int) -> None:
    with gzip.open(WRITTEN[minor], "rt") as lines:
        told = list(map(json.loads, lines))
    assert [line["case"] for line in told] == written.written(minor)
    for line in told:
        ours = case.judge(case.read(json.dumps(line["case"])), minor)
        assert comparison.difference(line["case"], [line["answer"]], ours) is None, line["case"]["ID"]


def test_no_other_version_is_called_proven() -> None:
    assert set(settings.PROVEN) == set(BY_MINOR) == set(WRITTEN)
