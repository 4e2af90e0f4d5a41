"""The answers of the real plugin, Volcano 1.15.1, to 600 pods on 1,657 nodes: every word and every CPU."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from numacore.volcano import cases

RECORDED = Path(__file__).with_name("answers-1.15.1.jsonl.xz")


def recorded() -> list[dict[str, Any]]:
    with lzma.open(RECORDED, "rt") as lines:
        return [json.loads(line) for line in lines]


PAIRS = recorded()


def test_all_of_them_are_here() -> None:
    assert len(PAIRS) == 600
    assert sum(len(pair["answer"]["nodes"]) for pair in PAIRS) == 1657


@pytest.mark.parametrize("first", range(0, 600, 50))
def test_it_answers_what_the_plugin_answered(first: int) -> None:
    for pair in PAIRS[first : first + 50]:
        answer = json.loads(cases.answer(json.dumps(pair["case"])))
        assert answer == pair["answer"], pair["case"]["ID"]
