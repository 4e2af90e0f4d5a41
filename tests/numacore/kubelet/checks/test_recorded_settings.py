"""What kubelets themselves said to settings: random ones and those written by hand, read and validated by their own code.

`python -m tests.oracle.settings --record` makes the files.
"""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numacore.kubelet.checks import findings
from numacore.kubelet.checks.case import QuestionIn, judged
from numacore.kubelet.checks.findings import STAGES
from tests.oracle.settings.comparison import differences

FOLDER = Path(__file__).parents[1] / "cases"
MINORS = sorted(int(file.name.split(".")[1]) for file in FOLDER.glob("settings-1.*.jsonl.gz"))
Line = dict[str, Any]


@cache
def recorded(minor: int) -> tuple[Line, ...]:
    with gzip.open(FOLDER / f"settings-1.{minor}.jsonl.gz", "rt") as lines:
        return tuple(map(json.loads, lines))


@pytest.mark.parametrize("minor", MINORS)
def test_the_checks_say_what_the_kubelet_said(minor: int) -> None:
    for line in recorded(minor):
        assert differences(line["case"], line["answer"], minor) == [], line["case"]


def test_no_other_version_is_called_proven() -> None:
    assert set(MINORS) == findings.PROVEN


def test_the_recorded_cases_reach_every_stage_of_a_start() -> None:
    """Cases that all end at the first stage would prove little."""
    newest = recorded(37)
    ends = Counter(
        line["answer"].get("stage", "panic" if "panic" in line["answer"] else "managers") for line in newest
    )
    assert len(newest) >= 300
    assert {"flags", "gates", "load", "merge", "validate", "run", "panic", "managers"} <= set(ends)
    assert min(ends.values()) >= 5


def test_findings_stand_in_the_order_in_which_the_kubelet_meets_them_and_end_where_it_does() -> None:
    for line in recorded(37):
        asked = msgspec.convert(
            {key: value for key, value in line["case"].items() if key != "Online"}, QuestionIn
        )
        found = judged(asked, 37).findings
        stages = [STAGES.index(each.stage) for each in found]
        assert stages == sorted(stages), line["case"]["ID"]
        ends = [at for at, each in zip(stages, found, strict=True) if each.stops]
        assert set(ends) <= set(stages[-1:]), line["case"]["ID"]


def test_a_difference_would_be_seen() -> None:
    """The comparison itself: another word, another stage, another effect."""
    said = {line["case"]["ID"]: line for line in recorded(37)}
    bent = {
        "policy-in-wrong-case": {"stage": "validate", "errors": ["something else"]},
        "cpus-not-online": {
            "stage": "validate",
            "errors": ["reserved-cpus: 0-8 is not a subset of online-cpus: 0-7"],
        },
        "maps-joined": {
            "effective": said["maps-joined"]["answer"]["effective"] | {"kubeReserved": {"cpu": "1"}}
        },
        "wrong-case-of-a-field": said["wrong-case-of-a-field"]["answer"] | {"notes": []},
        "gate-unknown": {"stage": "load", "errors": ["unrecognized feature gate: Foo"]},
    }
    for name, answer in bent.items():
        assert differences(said[name]["case"], answer, 37), name
