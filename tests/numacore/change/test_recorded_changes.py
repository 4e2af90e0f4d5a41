"""Kubelets 1.34 to 1.37 themselves read the files that were changed for a wish, and took from them what was wanted."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.numacore.change import recorded

DEFAULTS = {"cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "topologyManagerPolicy": "none"}


def answers(minor: int) -> dict[str, dict[str, Any]]:
    with gzip.open(recorded.FOLDER / f"changed-1.{minor}.jsonl.gz", "rt") as lines:
        return {line["case"]["ID"]: line for line in map(json.loads, lines)}


@pytest.mark.parametrize("minor", recorded.MINORS)
def test_the_kubelet_reads_what_was_wanted(minor: int) -> None:
    said = answers(minor)
    seen = 0
    for case, intended in recorded.cases(minor):
        line = said.pop(case["ID"])
        assert line["case"] == case, "what is written has changed: record it anew"
        effective = line["answer"].get("effective")
        assert effective is not None, (case["ID"], line["answer"])
        for field, value in intended.items():
            wanted: Any = DEFAULTS.get(field) if value is None else value
            if field in ("systemReserved", "kubeReserved") and effective.get("reservedSystemCPUs"):
                wanted, effective[field] = without_cpu(wanted), without_cpu(effective[field])
            assert effective.get(field) == wanted, (case["ID"], field)
            seen += 1
    assert not said
    assert seen > 150, "cases in which nothing changes would prove little"


def without_cpu(amounts: dict[str, str]) -> dict[str, str]:
    """A list of CPUs takes the place of the amount."""
    return {kind: size for kind, size in amounts.items() if kind != "cpu"}
