"""The script that a person runs, on a real systemd: it does what the applier does, and whatever fails takes the node back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.numaagent.applier import namespaces
from tests.numaagent.applier.test_real_systemd import NEW, OLD

SETTINGS = "/var/lib/kubelet/config.yaml"


@pytest.mark.timeout(600)
def test_it_applies_goes_back_and_is_taken_back(inside: list[str]) -> None:
    done = namespaces.python(inside, "tests.numaagent.applier.inside_script")
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    says = {name: each.pop("says", "") for name, each in found.items()}
    assert found == {
        "look": {**OLD, "status": 0},
        "applied": {**NEW, "status": 0},
        "again": {**NEW, "status": 0},
        "restored": {**OLD, "status": 0},
        "old": {**OLD, "status": 1},
        "doomed": {**OLD, "status": 1},
        "altered": {**OLD, "status": 1},
        "changed since": {"status": 1},
        "ended": {**OLD, "status": 1},
        "killed": {"status": -9},
        "unfinished": {"status": 1},
        "dead-man": {**OLD, "in time": True},
    }
    beginnings = {
        "look": f"would change {SETTINGS} and remove: cpu_manager_state",
        "applied": f"applied: {SETTINGS}",
        "again": f"unchanged: {SETTINGS}",
        "restored": f"applied: {SETTINGS}",
        "old": "refused: a newer change was made on this node (2, this is 1)",
        "doomed": "restored: it did not work, and the node is as it was",
        "altered": "refused: the new text is not what the preview showed",
        "changed since": f"refused: somebody changed {SETTINGS} since the preview",
        "unfinished": "refused: an unfinished change stands on this node",
    }
    for name, words in beginnings.items():
        assert says[name].startswith(words), name
