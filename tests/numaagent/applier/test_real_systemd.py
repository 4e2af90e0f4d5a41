"""A real systemd with its own D-Bus believes the dead-man's units, and carries them out: no part of it is played but the kubelet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.numaagent.applier import namespaces

WHOLE = {"left": [], "armed": False, "well": True}
OLD = {**WHOLE, "settings": "old", "policy": "none"}
NEW = {**WHOLE, "settings": "new", "policy": "static"}


@pytest.mark.timeout(600)
def test_it_applies_goes_back_and_is_taken_back(inside: list[str]) -> None:
    done = namespaces.python(inside, "tests.numaagent.applier.inside")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found == {
        "applied": {**NEW, "outcome": "applied", "step": "commit"},
        "original": {**OLD, "outcome": "applied"},
        "doomed": {**OLD, "outcome": "restored"},
        "killed": {
            "new": True,
            "armed": True,
            "cannot": {"failed": True, "armed": True, "kubelet runs on": True},
        },
        "dead-man": {**OLD, "in time": True},
        "again": {**OLD, "outcome": "restored"},
    }
