"""Would this kubelet survive a restart, or a reboot, now: its state files against machine, settings and pods.

Kubelet 1.37: it restores and validates both state files, then admits every pod that it finds once more, under the settings of now.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from numacore.kubelet import memory_manager, memory_start, node
from numacore.kubelet.checkpoint import restore_memory
from numacore.kubelet.choices import Choices, every
from numacore.kubelet.errors import EndError, StartError
from numacore.kubelet.machine import Machine
from numacore.kubelet.memory_start import Difference
from numacore.kubelet.node import State, StateFiles
from numacore.kubelet.pod import Pod
from numacore.kubelet.settings import Settings
from numacore.kubelet.verdict import Verdict

_MOST_WAYS = 4
"""Starting leaves one thing open, whether the memory manager's file is taken for right."""


class Lost(msgspec.Struct, frozen=True):
    """A running pod that the kubelet would not take on again, and its answer."""

    pod: Pod
    verdict: Verdict


class Survival(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a restart would bring. `refusal`: the kubelet's words when it does not start; `panics`: it crashes doing so.

    `differences` tell which amounts of memory are not what the state file says, which the kubelet's words do not. `chance`: it may as
    well start, for whether the memory manager takes its file for right depends on the order of a Go map.
    """

    refusal: str = ""
    alternatives: tuple[str, ...] = ()
    panics: bool = False
    differences: tuple[Difference, ...] = ()
    lost: tuple[Lost, ...] = ()
    chance: bool = False

    @property
    def survives(self) -> bool:
        """The kubelet starts, and every pod stays."""
        return not self.refusal and not self.lost


def survival(
    settings: Settings,
    machine: Machine,
    files: StateFiles,
    pods: Iterable[Pod] = (),
    devices: State | None = None,
) -> Survival:
    """What happens when the kubelet starts on these files. `pods`: those that run, oldest first, as the kubelet takes them on;
    `devices`: a state whose devices have registered again.

    Raises:
        errors.UnsupportedError, quantity.QuantityError: it cannot be judged.
    """
    running = list(pods)
    held = (devices or node.empty_state()).devices
    known = msgspec.structs.replace(
        node.empty_state(), devices=held, pods={each.uid: each for each in running}
    )

    def start(choices: Choices) -> node.Node | EndError:
        try:
            return node.start(settings, machine, known, files, choices)
        except EndError as error:
            return error

    ends = list(every(start, _MOST_WAYS))
    ended = [each for each in ends if isinstance(each, EndError)]
    started = [each for each in ends if isinstance(each, node.Node)]
    if not ended:
        return _taken_on_again(started[0], running)
    (error, *_) = ended
    alternatives = error.alternatives if isinstance(error, StartError) else ()
    found = _memory_differences(settings, machine, files)
    return Survival(str(error), alternatives, not isinstance(error, StartError), found, chance=bool(started))


def _taken_on_again(started: node.Node, running: list[Pod]) -> Survival:
    lost: list[Lost] = []
    for each in running:
        started, verdict = node.admit(started, each)
        if verdict.outcome in ("panics", "hangs"):
            return Survival(verdict.message, panics=True, lost=(*lost, Lost(each, verdict)))
        if not verdict.admitted:
            lost.append(Lost(each, verdict))
    return Survival(lost=tuple(lost))


def _memory_differences(settings: Settings, machine: Machine, files: StateFiles) -> tuple[Difference, ...]:
    """Where the memory state is not what machine and assignments give; nothing where it cannot even be read."""
    try:
        policy = memory_manager.policy(settings, machine)
        state = restore_memory(files.memory, settings)
        if policy is None or not state.nodes:
            return ()
        expected = policy.expected(state, settings.enabled("PodLevelResourceManagers"))
        found = (memory_start.differences(state.nodes, each) for each in expected)
        return tuple(next(filter(None, found), ()))
    except EndError:
        return ()
