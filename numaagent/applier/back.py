"""The way back: the dead-man's service is started, as it would start by itself, and the old kubelet has to be well."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable

from numaagent.applier import deadman, health, units, writing
from numaagent.applier.course import Course
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Systemd
from numacore.change import undo
from numacore.change.order import Answer
from numacore.diagnosis import Reason


async def guarded(course: Course, forward: Awaitable[Answer]) -> Answer:
    """Goes forward, and back if that does not work or somebody ends this program."""
    try:
        return await forward
    except (FailedError, RefusedError) as error:
        reason, words = error.reason, error.words
    except OSError as error:
        reason, words = Reason("system", {"error": str(error)[:300]}), str(error)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        reason, words = Reason("ended"), "somebody ended the applier midway"
    return await back(course, reason, words)


async def back(course: Course, reason: Reason, words: str) -> Answer:
    """Starts the dead-man's service. `reason`, `words`: why."""
    with contextlib.suppress(OSError):  # a full disk keeps nobody from going back
        course.note("back")
    try:
        # A connection of its own: the one at hand may be what failed.
        async with units.connected(course.told.bus, course.told.waits) as fresh:
            await fresh.start(undo.SERVICE)
            if deadman.armed(course.host) is not None:
                raise FailedError("dead-man", f"{undo.SERVICE} ended and the change still stands")
            return await settled(course, fresh, reason, words)
    except FailedError as error:
        return _lost(course, reason, f"{words}; and on the way back: {error.words}")


async def settled(course: Course, systemd: Systemd, reason: Reason, words: str) -> Answer:
    """The units have put the old files back; now the old kubelet has to be well."""
    present = writing.read(course.host.at(course.order.path))
    if ("" if present is None else present.sha256) != course.order.before:
        return _lost(
            course,
            reason,
            f"{words}; and {course.order.path} is not what it was: compare it with {undo.FOLDER}",
        )
    try:
        well = await health.lasting(systemd, course.order, every=course.told.waits.look)
    except FailedError as error:
        return _lost(course, reason, f"{words}; the old settings are back, and still {error.words}")
    course.main_pid = well.main_pid
    course.removed = ()
    answer = course.answer("restored", reason, words)
    course.finish(answer)
    with contextlib.suppress(FailedError, OSError):
        await deadman.remove(course.host, systemd)
    return answer


def _lost(course: Course, reason: Reason, words: str) -> Answer:
    left = deadman.armed(course.host) is not None
    more = f"; {undo.TIMER} will try again" if left else "; look at the node: journalctl -u kubelet"
    answer = course.answer("failed", reason, words + more)
    if not left:  # while the dead-man still tries, the next run looks what came of it
        course.finish(answer)
    return answer
