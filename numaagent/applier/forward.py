"""The steps forward, each noted in the journal before it is done. What does not work out raises, and `back` goes back."""

from __future__ import annotations

import asyncio
import contextlib

from numaagent.applier import deadman, health, inforce, keeping, writing
from numaagent.applier.course import Course
from numaagent.applier.prospect import Prospect
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Systemd
from numacore.change import undo
from numacore.change.order import Answer, StateFile


def keep(course: Course, ahead: Prospect) -> None:
    """Copies of everything, and the new file beside the old one. Raises OSError, RefusedError."""
    with contextlib.suppress(OSError):  # what cannot be removed keeps nobody from a change
        keeping.prune(course.host, course.order.epoch)
    keeping.take_on(course.host, course.order.epoch, course.document)
    course.change.begin(course.data, ahead.before)
    course.note("keep")
    keeping.keep_original(course.host, course.order.path, ahead.before, course.order.epoch)
    deadman.prepare(course.host, ahead.before)
    stage(course, ahead)


def stage(course: Course, ahead: Prospect) -> None:
    """The new file beside the old one: that there is room for it, and the right to write it, shows before the kubelet is stopped."""
    if ahead.after is not None:
        staged = course.host.at(undo.staged(course.order.path))
        writing.stage(staged, ahead.after, ahead.attributes)


async def install(course: Course, systemd: Systemd, state: tuple[StateFile, ...]) -> None:
    """The dead-man's units. `state`: state files that they copy back. Raises FailedError, OSError."""
    course.note("arm")
    await deadman.install(course.host, systemd, course.order, state, course.told.clock())


async def through(course: Course, systemd: Systemd, ahead: Prospect) -> Answer:
    """From the stop to the answer. Raises FailedError, OSError."""
    course.note("stop")
    await systemd.stop(course.order.unit)
    await _check_stopped(course, systemd)
    course.note("take")
    _take(course)
    course.note("write")
    _write(course, ahead)
    course.note("clear")
    course.removed = tuple(
        name
        for name in course.order.state_files
        if writing.remove(course.host.at(f"{course.order.root}/{name}"))
    )
    course.note("start")
    with contextlib.suppress(FailedError):  # it had not failed
        await systemd.forget_failures(course.order.unit)
    await systemd.start(course.order.unit)
    return await judge(course, systemd, ahead)


async def _check_stopped(course: Course, systemd: Systemd) -> None:
    unit = await systemd.unit(course.order.unit)
    if unit.main_pid or unit.active in ("active", "activating", "reloading", "deactivating"):
        raise FailedError(
            "kubelet-runs",
            f"{course.order.unit} was stopped and is {unit.active} with process {unit.main_pid}: something on the node starts it",
            pid=unit.main_pid,
        )


def _take(course: Course) -> None:
    """State files as the stopped kubelet left them. Raises FailedError: the dead-man's unit was written for other ones."""
    if course.cleared:
        return
    for name in course.order.state_files:
        content = writing.read(course.host.at(f"{course.order.root}/{name}"))
        if (content is not None) != (name in _state_in_unit(course)):
            raise FailedError(
                "state-moved", f"{name} came or went while the kubelet stopped; try again", name=name
            )
        if content is not None:
            course.change.keep_state(name, content)
            writing.write(course.host.at(undo.state_copy(name)), content.data, content.attributes)
    writing.write(course.host.at(undo.TAKEN), b"")


def _state_in_unit(course: Course) -> tuple[StateFile, ...]:
    unit = writing.read(course.host.at(f"{undo.UNITS}/{undo.STATE_SERVICE}"))
    text = "" if unit is None else unit.data.decode()
    return tuple(name for name in course.order.state_files if f" {undo.state_copy(name)} " in text)


def _write(course: Course, ahead: Prospect) -> None:
    path = course.host.at(course.order.path)
    if ahead.after is None:
        writing.remove(path)
        return
    with contextlib.suppress(FileNotFoundError):  # a run before this one did it
        writing.settle(course.host.at(undo.staged(course.order.path)), path)
    present = writing.read(path)
    if present is None or present.sha256 != course.order.after:
        raise FailedError(
            "not-written", f"{course.order.path} is not what was written", path=course.order.path
        )


async def judge(course: Course, systemd: Systemd, ahead: Prospect) -> Answer:
    """Whether the kubelet with the new settings is well; then the dead-man is called off. Raises FailedError."""
    course.note("health")
    well = await health.lasting(systemd, course.order, every=course.told.waits.look)
    course.main_pid = well.main_pid
    course.note("in-force")
    await _check_in_force(course, ahead)
    course.note("commit")
    deadman.disarm(course.host)
    words = await _check_alone(course, systemd)
    return await committed(course, systemd, "; ".join(filter(None, (course.found.why, words))))


async def _check_in_force(course: Course, ahead: Prospect) -> None:
    course.found = await asyncio.to_thread(
        inforce.read, course.host, course.order, ahead.port, course.told.token
    )
    wrong = inforce.differences(inforce.asked(course.order), course.found, drop_in=course.order.drop_in)
    if wrong:
        name, value = next(iter(wrong.items()))
        raise FailedError(
            "not-in-force",
            f"the kubelet runs and says that {', '.join(f'{each}={told!r}' for each, told in wrong.items())} is in force and not what "
            "was asked: a flag, a later drop-in or a field that it does not know",
            field=name,
            value=str(value)[:200],
        )


async def _check_alone(course: Course, systemd: Systemd) -> str:
    """After the disarming: whether the dead-man had begun just before. Raises FailedError; words if nobody can tell."""
    try:
        unit = await systemd.unit(undo.SERVICE)
    except FailedError as error:
        return f"whether the dead-man was quicker could not be asked: {error.words}"
    if unit.active in ("active", "activating", "deactivating") or deadman.undone(course.host):
        raise FailedError("dead-man", "the dead-man was quicker: the change took too long")
    return ""


async def committed(course: Course, systemd: Systemd, words: str) -> Answer:
    """The change stands: says so, and takes the units away."""
    with contextlib.suppress(OSError):
        keeping.mark(course.host, course.order)
    answer = course.answer("applied", None, words)
    course.finish(answer)
    with contextlib.suppress(FailedError, OSError):  # what stays does nothing, and the next run takes it away
        await deadman.remove(course.host, systemd)
    return answer


def unchanged(course: Course, ahead: Prospect, main_pid: int) -> Answer:
    """The file is as it should be. Raises RefusedError: the kubelet is not."""
    course.main_pid = main_pid or None
    course.found = inforce.read(course.host, course.order, ahead.port, course.told.token)
    wrong = inforce.differences(inforce.asked(course.order), course.found, drop_in=course.order.drop_in)
    if wrong:
        raise RefusedError(
            "not-in-force",
            f"keys: {course.order.path} says so already, and the kubelet has {', '.join(sorted(wrong))} otherwise: it was not restarted since, "
            "or something else sets it; restart it by hand and look again",
            field=min(wrong),
        )
    keeping.take_on(course.host, course.order.epoch, course.document)
    return course.answer("unchanged", None, "")
