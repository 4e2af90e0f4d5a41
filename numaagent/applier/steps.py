"""One change of one node, step by step. Every step is in the journal before it is done and may be done twice.

    check    nothing is touched: what may be refused is refused here
    keep     copies of the file, and the new one beside it, written through to the disk
    arm      the dead-man's units are there, enabled, running; from here on somebody takes the change back
    stop     the kubelet stops
    take     its state files are copied as they are now
    write    the new file takes its place
    clear    state files that the new settings cannot live with go
    start    the kubelet starts
    health   it answers and stays the same process
    in-force it has the values that were asked for
    commit   the dead-man is called off
    back     instead of that: the dead-man's service is started, and the old kubelet has to be well

A run that was killed is gone on with by the next one with the same order. Another order first takes back what was left.
"""

from __future__ import annotations

import asyncio
import contextlib

from numaagent.applier import back, deadman, forward, prospect, trust, units, writing
from numaagent.applier.course import Course
from numaagent.applier.deadman import Armed
from numaagent.applier.journal import RUNNING
from numaagent.applier.keeping import Change
from numaagent.applier.prospect import Prospect
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Systemd
from numacore.change import undo
from numacore.change.order import Answer, StateFile
from numacore.diagnosis import Reason


async def run(course: Course) -> Answer:
    """Through to an answer. Raises RefusedError, or FailedError while nothing is changed: then nothing stays."""
    left = deadman.armed(course.host)
    async with units.connected(course.told.bus, course.told.waits) as systemd:
        if left is not None and left.document == course.document:
            return await back.guarded(course, _go_on(course, systemd))
        if left is not None:
            await _take_back_other(course, systemd, left)
        return await _earlier(course, systemd) or await _fresh(course, systemd)


async def _earlier(course: Course, systemd: Systemd) -> Answer | None:
    """What this very order came to before; None = it is new here."""
    answer = course.change.answer()
    if answer is not None and answer.outcome == "restored":
        return answer
    if answer is not None and answer.outcome == "failed":
        return await back.settled(course, systemd, answer.cause or Reason("interrupted"), answer.words)
    if answer is None and "arm" in (steps := course.change.journal.steps()):
        if deadman.undone(course.host):
            return await back.settled(
                course, systemd, Reason("dead-man"), "the dead-man took the change back"
            )
        if "commit" in steps:
            return await forward.committed(course, systemd, "")
    return None


async def _fresh(course: Course, systemd: Systemd) -> Answer:
    ahead = prospect.of(course.order, course.host)
    if not ahead.unchanged:
        trust.check_time(course.order, course.told.clock())
    unit = await systemd.unit(course.order.unit)
    await prospect.check_kubelet(course.order, unit)
    if ahead.unchanged:
        return forward.unchanged(course, ahead, unit.main_pid)
    prospect.check_room(course.order, course.host, ahead)
    try:
        forward.keep(course, ahead)
        await forward.install(course, systemd, ahead.state)
    except (OSError, FailedError, asyncio.CancelledError):
        await _clean(course, systemd)
        raise
    deadman.arm(course.host, course.order.epoch, course.document)
    return await back.guarded(course, forward.through(course, systemd, ahead))


async def _go_on(course: Course, systemd: Systemd) -> Answer:
    """The last run of this order ended while the dead-man was armed."""
    steps = course.change.journal.steps()
    if "back" in steps or deadman.undone(course.host):
        raise FailedError("interrupted", "the last run was going back when it ended")
    if course.order.expires <= course.told.clock():
        raise FailedError("expired", "the last run ended midway, and the order is too old now to go on with")
    ahead = _ahead_again(course)
    await forward.install(course, systemd, _present(course, ahead))
    if RUNNING & set(steps):
        return await forward.judge(course, systemd, ahead)
    return await forward.through(course, systemd, ahead)


def _ahead_again(course: Course) -> Prospect:
    """The prospect as the last run had it. Raises FailedError: somebody else changed the file meanwhile."""
    before = course.change.before() if course.order.before else None
    try:
        ahead = prospect.made(course.order, course.host, before)
        present = writing.read(course.host.at(course.order.path))
    except (RefusedError, OSError) as error:
        raise FailedError("interrupted", f"the last run cannot be gone on with: {error}") from error
    if ("" if present is None else present.sha256) not in (course.order.before, course.order.after):
        raise FailedError(
            "file-changed",
            f"somebody changed {course.order.path} since the last run",
            path=course.order.path,
        )
    if ahead.after is not None and (present is None or present.sha256 != course.order.after):
        forward.stage(course, ahead)
    return ahead


def _present(course: Course, ahead: Prospect) -> tuple[StateFile, ...]:
    """State files that the dead-man copies back: those that were taken, else those that stand there."""
    if not course.cleared:
        return ahead.state
    return tuple(
        name
        for name in course.order.state_files
        if writing.read(course.host.at(undo.state_copy(name))) is not None
    )


async def _take_back_other(course: Course, systemd: Systemd, left: Armed) -> None:
    """An order before this one was not finished. Raises RefusedError: it cannot be taken back either."""
    change = Change(course.host, left.epoch)
    try:
        await systemd.start(undo.SERVICE)
    except FailedError as error:
        raise RefusedError(
            "unfinished",
            f"epoch: the change {left.epoch} was not finished and cannot be taken back: {error.words}; {undo.TIMER} will try again, "
            "give the order again after that",
            epoch=left.epoch,
        ) from error
    order = change.order()
    other = Course(course.told, b"", order, left.document)
    answer = await back.settled(
        other,
        systemd,
        Reason("overtaken", {"epoch": course.order.epoch}),
        "a newer order came before it was finished",
    )
    if answer.outcome != "restored":
        raise RefusedError(
            "unfinished",
            f"epoch: the change {left.epoch} was taken back, and the kubelet is not well: {answer.words}",
            epoch=left.epoch,
        )


async def _clean(course: Course, systemd: Systemd) -> None:
    """Nothing is changed yet, and nothing stays but copies."""
    with contextlib.suppress(OSError):
        writing.remove(course.host.at(undo.staged(course.order.path)))
    with contextlib.suppress(OSError, FailedError):
        if deadman.left(course.host):
            await deadman.remove(course.host, systemd)
