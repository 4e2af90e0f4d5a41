"""Feature gates: which a version knows, what they are there, and what comes of setting some.

Rules: component-base featuregate/feature_gate.go `unsafeSetFromMap`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from numacore.kubelet.checks.tables import DEPENDENCIES, GATES
from numacore.kubelet.settings import PROVEN

ALL = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


class Gate(msgspec.Struct, frozen=True):
    """A gate in one version."""

    stage: str
    on: bool
    locked: bool


def find(name: str, minor: int) -> Gate | None:
    """None = that version does not know it, or it is older than the tables and nothing is known."""
    history, since, until = GATES.get(name, ((), 0, 0))
    if minor < since or (until and minor >= until):
        return None
    reached = [step for step in history if step[0] <= minor]
    return Gate(*reached[-1][1:]) if reached else None


def removed(name: str, minor: int) -> int:
    """The minor version that dropped a gate; 0 = none did up to `minor`, or nobody knows."""
    until = GATES.get(name, ((), 0, 0))[2] or FORMER.get(name, 0)
    return until if until and until <= minor else 0


def known_since(name: str) -> int:
    """The first minor version that knows a gate; 0 = no version does."""
    history, since, _ = GATES.get(name, ((), 0, 0))
    return since or (max(history[0][0], 1) if history else 0)


FORMER = {"CPUManager": 33, "TopologyManager": 34, "DynamicKubeletConfig": 26}
"""Gates that were dropped before the oldest version in the tables, by the minor version (from documents)."""


def names(minor: int) -> list[str]:
    return [name for name in GATES if find(name, minor)]


def in_force(asked: Mapping[str, bool], minor: int) -> dict[str, bool]:
    """Every gate that differs from its default or was asked for, after AllAlpha and AllBeta."""
    found = {name: on for name, on in asked.items() if name not in ALL}
    for all_of, stage in ALL.items():
        if all_of in asked:
            for name in names(minor):
                gate = find(name, minor)
                if gate and gate.stage == stage and name not in ALL:
                    found.setdefault(name, asked[all_of])
    return found


def enabled(name: str, asked: Mapping[str, bool], minor: int) -> bool:
    """Whether a gate is on. One that the version does not know is off."""
    force = in_force(asked, minor)
    if name in force:
        return force[name]
    gate = find(name, minor)
    return bool(gate and gate.on)


def refusals(asked: Mapping[str, bool], minor: int) -> dict[str, str]:
    """The kubelet's words by gate for what it does not take; empty = it takes all."""
    found: dict[str, str] = {}
    for name, on in sorted(asked.items()):
        gate = find(name, minor)
        if gate is None and name not in ALL:
            if minor in PROVEN or known_since(name) > minor or removed(name, minor):
                found[name] = f"unrecognized feature gate: {name}"
        elif gate and gate.locked and gate.on != on:
            found[name] = f"cannot set feature gate {name} to {_go(on)}, feature is locked to {_go(gate.on)}"
    return found or _unmet(asked, minor)


def _unmet(asked: Mapping[str, bool], minor: int) -> dict[str, str]:
    force = in_force(asked, minor)

    def on(name: str) -> bool | None:
        """None = this version does not know it."""
        gate = find(name, minor)
        return force.get(name, gate.on if gate else None)

    found: dict[str, str] = {}
    for name, needs in DEPENDENCIES.get(minor, {}).items():
        lacking = [need for need in needs if on(need) is False]
        if lacking and on(name):
            found[name] = (
                f"{name} is enabled, but depends on features that are disabled: [{' '.join(lacking)}]"
            )
    return found


def _go(on: bool) -> str:
    return "true" if on else "false"
