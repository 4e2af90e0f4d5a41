"""Which state files a kubelet with new settings would not start on, and so have to go with the change.

Not by a list of settings: the start is played on the files as they are (`numacore.kubelet.restart`), and a file goes only if the kubelet
refuses to start while it is there. Where that is chance, it goes too.
"""

from __future__ import annotations

import msgspec

from numacore.change.order import CPU_STATE, MEMORY_STATE, StateFile
from numacore.diagnosis import Reason
from numacore.kubelet import restart
from numacore.kubelet.machine import Machine
from numacore.kubelet.node import StateFiles
from numacore.kubelet.settings import Settings


class Leaving(msgspec.Struct, frozen=True):
    """A state file that must go, and why. The kubelet's own words are in the reason's values, where it has any."""

    file: StateFile
    reason: Reason


def leaving(before: Settings, after: Settings, machine: Machine, files: StateFiles) -> tuple[Leaving, ...]:
    """`before`: the settings that the kubelet runs with; `files`: as it left them, None = there is none, or nobody could read it.

    Raises errors.UnsupportedError, quantity.QuantityError: it cannot be judged.
    """
    gone: dict[StateFile, Reason] = {}
    if before.cpu_manager_policy != after.cpu_manager_policy:
        gone[CPU_STATE] = Reason(
            "leave-cpu-policy", {"before": before.cpu_manager_policy, "after": after.cpu_manager_policy}
        )
    if before.memory_manager_policy != after.memory_manager_policy:
        gone[MEMORY_STATE] = Reason(
            "leave-memory-policy",
            {"before": before.memory_manager_policy, "after": after.memory_manager_policy},
        )
    for _ in range(2):
        words = _refusal(after, machine, _without(files, gone))
        if not words:
            break
        file = _to_blame(after, machine, _without(files, gone))
        if file is None:
            break
        gone[file] = Reason(_cause(file, before, after), {"words": words})
    return tuple(Leaving(file, reason) for file, reason in sorted(gone.items()))


def _without(files: StateFiles, gone: dict[StateFile, Reason]) -> StateFiles:
    return StateFiles(
        None if CPU_STATE in gone else files.cpu, None if MEMORY_STATE in gone else files.memory
    )


def _refusal(settings: Settings, machine: Machine, files: StateFiles) -> str:
    """The kubelet's words if it does not start, or may not."""
    return restart.survival(settings, machine, files).refusal


def _to_blame(settings: Settings, machine: Machine, files: StateFiles) -> StateFile | None:
    """The CPU manager starts before the memory manager: a file is to blame if without it the refusal goes or becomes another."""
    words = _refusal(settings, machine, files)
    if files.cpu is not None and _refusal(settings, machine, StateFiles(None, files.memory)) != words:
        return CPU_STATE
    if files.memory is not None and _refusal(settings, machine, StateFiles(files.cpu, None)) != words:
        return MEMORY_STATE
    return None


def _cause(file: StateFile, before: Settings, after: Settings) -> str:
    if file == CPU_STATE:
        if before.cpu_manager_policy_options != after.cpu_manager_policy_options:
            return "leave-cpu-options"
        if (before.reserved_system_cpus, before.reservation.get("cpu")) != (
            after.reserved_system_cpus,
            after.reservation.get("cpu"),
        ):
            return "leave-reserved-cpus"
        return "leave-cpu-state"
    if (before.reserved_memory, before.reservation.get("memory")) != (
        after.reserved_memory,
        after.reservation.get("memory"),
    ):
        return "leave-reserved-memory"
    return "leave-memory-state"
