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
import os
import time
from collections.abc import Awaitable, Callable

import msgspec

from numaagent.applier import deadman, health, inforce, keeping, places, prospect, trust, units, writing
from numaagent.applier.deadman import Armed
from numaagent.applier.journal import RUNNING, Step
from numaagent.applier.keeping import Change
from numaagent.applier.places import Host
from numaagent.applier.prospect import Prospect
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Systemd, Waits
from numacore.change.order import Answer, Order, Outcome, StateFile
from numacore.diagnosis import Reason


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is told besides its order."""

    host: Host
    node: str
    bus: str
    """Address of the system's D-Bus."""
    token: str | None = None
    """For the kubelet's /configz."""
    waits: Waits = Waits()
    clock: Callable[[], float] = time.time


class Course:
    """An order that is believed, on its way through this node. The caller holds the node's lock."""

    def __init__(self, told: Told, data: bytes, order: Order, document: str) -> None:
        self._told = told
        self._host = told.host
        self._data = data
        self._order = order
        self._document = document
        self._change = Change(self._host, order.epoch)
        self._began = time.monotonic()
        self._cleared = "clear" in self._change.journal.steps()
        """A run before this one may have removed state files: what was taken then counts."""
        self._removed: tuple[StateFile, ...] = ()
        self._main_pid: int | None = None
        self._found = inforce.InForce(None)

    async def run(self) -> Answer:
        """Through to an answer. Raises RefusedError, or FailedError while nothing is changed: then nothing stays."""
        left = deadman.armed(self._host)
        async with units.connected(self._told.bus, self._told.waits) as systemd:
            if left is not None and left.document == self._document:
                return await self._guarded(self._go_on(systemd))
            if left is not None:
                await self._take_back_other(systemd, left)
            return await self._earlier(systemd) or await self._fresh(systemd)

    # ------------------------------------------------------------ where a run begins

    async def _earlier(self, systemd: Systemd) -> Answer | None:
        """What this very order came to before; None = it is new here."""
        answer = self._change.answer()
        if answer is not None and answer.outcome == "restored":
            return answer
        if answer is not None and answer.outcome == "failed":
            return await self._settle_back(systemd, answer.cause or Reason("interrupted"), answer.words)
        if answer is None and "arm" in (steps := self._change.journal.steps()):
            if deadman.undone(self._host):
                return await self._settle_back(
                    systemd, Reason("dead-man"), "the dead-man took the change back"
                )
            if "commit" in steps:
                return await self._committed(systemd, "")
        return None

    async def _fresh(self, systemd: Systemd) -> Answer:
        ahead = prospect.of(self._order, self._host)
        if not ahead.unchanged:
            trust.check_time(self._order, self._told.clock())
        unit = await systemd.unit(self._order.unit)
        await prospect.check_kubelet(self._order, unit)
        if ahead.unchanged:
            return self._unchanged(ahead, unit.main_pid)
        prospect.check_room(self._order, self._host, ahead)
        try:
            self._keep(ahead)
            await self._install(systemd, ahead.state)
        except (OSError, FailedError, asyncio.CancelledError):
            await self._clean(systemd)
            raise
        deadman.arm(self._host, self._order.epoch, self._document)
        return await self._guarded(self._through(systemd, ahead))

    async def _go_on(self, systemd: Systemd) -> Answer:
        """The last run of this order ended while the dead-man was armed."""
        steps = self._change.journal.steps()
        if "back" in steps or deadman.undone(self._host):
            raise FailedError("interrupted", "the last run was going back when it ended")
        if self._order.expires <= self._told.clock():
            raise FailedError(
                "expired", "the last run ended midway, and the order is too old now to go on with"
            )
        ahead = self._ahead_again()
        await self._install(systemd, self._present(ahead))
        if RUNNING & set(steps):
            return await self._judge(systemd, ahead)
        return await self._through(systemd, ahead)

    def _ahead_again(self) -> Prospect:
        """The prospect as the last run had it. Raises FailedError: somebody else changed the file meanwhile."""
        before = self._change.before() if self._order.before else None
        try:
            ahead = prospect.made(self._order, self._host, before)
            present = writing.read(self._host.at(self._order.path))
        except (RefusedError, OSError) as error:
            raise FailedError("interrupted", f"the last run cannot be gone on with: {error}") from error
        if ("" if present is None else present.sha256) not in (self._order.before, self._order.after):
            raise FailedError(
                "file-changed",
                f"somebody changed {self._order.path} since the last run",
                path=self._order.path,
            )
        if ahead.after is not None and (present is None or present.sha256 != self._order.after):
            self._stage(ahead)
        return ahead

    def _present(self, ahead: Prospect) -> tuple[StateFile, ...]:
        """State files that the dead-man copies back: those that were taken, else those that stand there."""
        if not self._cleared:
            return ahead.state
        return tuple(
            name
            for name in self._order.state_files
            if writing.read(self._host.at(deadman.state_copy(name))) is not None
        )

    # ------------------------------------------------------------ forward

    def _keep(self, ahead: Prospect) -> None:
        keeping.take_on(self._host, self._order.epoch, self._document)
        self._change.begin(self._data, ahead.before)
        self._note("keep")
        keeping.keep_original(self._host, self._order.path, ahead.before, self._order.epoch)
        deadman.prepare(self._host, ahead.before)
        self._stage(ahead)

    def _stage(self, ahead: Prospect) -> None:
        if ahead.after is not None:
            staged = self._host.at(places.staged(self._order.path))
            writing.stage(staged, ahead.after, ahead.attributes)

    async def _install(self, systemd: Systemd, state: tuple[StateFile, ...]) -> None:
        self._note("arm")
        await deadman.install(self._host, systemd, self._order, state, self._told.clock())

    async def _through(self, systemd: Systemd, ahead: Prospect) -> Answer:
        self._note("stop")
        await systemd.stop(self._order.unit)
        await self._check_stopped(systemd)
        self._note("take")
        self._take()
        self._note("write")
        self._write(ahead)
        self._note("clear")
        self._removed = tuple(
            name
            for name in self._order.state_files
            if writing.remove(self._host.at(f"{self._order.root}/{name}"))
        )
        self._note("start")
        with contextlib.suppress(FailedError):  # it had not failed
            await systemd.forget_failures(self._order.unit)
        await systemd.start(self._order.unit)
        return await self._judge(systemd, ahead)

    async def _check_stopped(self, systemd: Systemd) -> None:
        unit = await systemd.unit(self._order.unit)
        if unit.main_pid or unit.active in ("active", "activating", "reloading", "deactivating"):
            raise FailedError(
                "kubelet-runs",
                f"{self._order.unit} was stopped and is {unit.active} with process {unit.main_pid}: something on the node starts it",
                pid=unit.main_pid,
            )

    def _take(self) -> None:
        """State files as the stopped kubelet left them. Raises FailedError: the dead-man's unit was written for other ones."""
        if self._cleared:
            return
        for name in self._order.state_files:
            content = writing.read(self._host.at(f"{self._order.root}/{name}"))
            if (content is not None) != (name in self._state_in_unit()):
                raise FailedError(
                    "state-moved", f"{name} came or went while the kubelet stopped; try again", name=name
                )
            if content is not None:
                self._change.keep_state(name, content)
                writing.write(self._host.at(deadman.state_copy(name)), content.data, content.attributes)
        writing.write(self._host.at(deadman.TAKEN), b"")

    def _state_in_unit(self) -> tuple[StateFile, ...]:
        unit = writing.read(self._host.at(f"{places.UNITS}/{deadman.STATE_SERVICE}"))
        text = "" if unit is None else unit.data.decode()
        return tuple(name for name in self._order.state_files if f" {deadman.state_copy(name)} " in text)

    def _write(self, ahead: Prospect) -> None:
        path = self._host.at(self._order.path)
        if ahead.after is None:
            writing.remove(path)
            return
        with contextlib.suppress(FileNotFoundError):  # a run before this one did it
            writing.settle(self._host.at(places.staged(self._order.path)), path)
        present = writing.read(path)
        if present is None or present.sha256 != self._order.after:
            raise FailedError(
                "not-written", f"{self._order.path} is not what was written", path=self._order.path
            )

    async def _judge(self, systemd: Systemd, ahead: Prospect) -> Answer:
        self._note("health")
        well = await health.lasting(systemd, self._order, every=self._told.waits.look)
        self._main_pid = well.main_pid
        self._note("in-force")
        await self._check_in_force(ahead)
        self._note("commit")
        deadman.disarm(self._host)
        words = await self._check_alone(systemd)
        return await self._committed(systemd, words)

    async def _check_in_force(self, ahead: Prospect) -> None:
        self._found = await asyncio.to_thread(
            inforce.read, self._host, self._order, ahead.port, self._told.token
        )
        wrong = inforce.differences(inforce.asked(self._order), self._found, drop_in=self._order.drop_in)
        if wrong:
            name, value = next(iter(wrong.items()))
            raise FailedError(
                "not-in-force",
                f"the kubelet runs and says that {', '.join(f'{each}={told!r}' for each, told in wrong.items())} is in force and not what "
                "was asked: a flag, a later drop-in or a field that it does not know",
                field=name,
                value=str(value)[:200],
            )

    async def _check_alone(self, systemd: Systemd) -> str:
        """After the disarming: whether the dead-man had begun just before. Raises FailedError; words if nobody can tell."""
        try:
            unit = await systemd.unit(deadman.SERVICE)
        except FailedError as error:
            return f"whether the dead-man was quicker could not be asked: {error.words}"
        if unit.active in ("active", "activating", "deactivating") or deadman.undone(self._host):
            raise FailedError("dead-man", "the dead-man was quicker: the change took too long")
        return ""

    async def _committed(self, systemd: Systemd, words: str) -> Answer:
        with contextlib.suppress(OSError):
            keeping.mark(self._host, self._order)
        answer = self._answer("applied", None, words)
        self._finish(answer)
        with contextlib.suppress(
            FailedError, OSError
        ):  # what stays does nothing, and the next run takes it away
            await deadman.remove(self._host, systemd)
        return answer

    def _unchanged(self, ahead: Prospect, main_pid: int) -> Answer:
        self._main_pid = main_pid or None
        self._found = inforce.read(self._host, self._order, ahead.port, self._told.token)
        wrong = inforce.differences(inforce.asked(self._order), self._found, drop_in=self._order.drop_in)
        if wrong:
            raise RefusedError(
                "not-in-force",
                f"keys: {self._order.path} says so already, and the kubelet has {', '.join(sorted(wrong))} otherwise: it was not restarted since, "
                "or something else sets it; restart it by hand and look again",
                field=min(wrong),
            )
        keeping.take_on(self._host, self._order.epoch, self._document)
        return self._answer("unchanged", None, "")

    # ------------------------------------------------------------ back

    async def _guarded(self, forward: Awaitable[Answer]) -> Answer:
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
        return await self._back(reason, words)

    async def _back(self, reason: Reason, words: str) -> Answer:
        with contextlib.suppress(OSError):  # a full disk keeps nobody from going back
            self._note("back")
        try:
            # A connection of its own: the one at hand may be what failed.
            async with units.connected(self._told.bus, self._told.waits) as fresh:
                await fresh.start(deadman.SERVICE)
                if deadman.armed(self._host) is not None:
                    raise FailedError("dead-man", f"{deadman.SERVICE} ended and the change still stands")
                return await self._settle_back(fresh, reason, words)
        except FailedError as error:
            return self._lost(reason, f"{words}; and on the way back: {error.words}")

    async def _settle_back(self, systemd: Systemd, reason: Reason, words: str) -> Answer:
        """The units have put the old files back; now the old kubelet has to be well."""
        present = writing.read(self._host.at(self._order.path))
        if ("" if present is None else present.sha256) != self._order.before:
            return self._lost(
                reason, f"{words}; and {self._order.path} is not what it was: compare it with {places.UNDO}"
            )
        try:
            well = await health.lasting(systemd, self._order, every=self._told.waits.look)
        except FailedError as error:
            return self._lost(reason, f"{words}; the old settings are back, and still {error.words}")
        self._main_pid = well.main_pid
        self._removed = ()
        answer = self._answer("restored", reason, words)
        self._finish(answer)
        with contextlib.suppress(FailedError, OSError):
            await deadman.remove(self._host, systemd)
        return answer

    def _lost(self, reason: Reason, words: str) -> Answer:
        left = deadman.armed(self._host) is not None
        more = f"; {deadman.TIMER} will try again" if left else "; look at the node: journalctl -u kubelet"
        answer = self._answer("failed", reason, words + more)
        if not left:  # while the dead-man still tries, the next run looks what came of it
            self._finish(answer)
        return answer

    async def _take_back_other(self, systemd: Systemd, left: Armed) -> None:
        """An order before this one was not finished. Raises RefusedError: it cannot be taken back either."""
        change = Change(self._host, left.epoch)
        try:
            await systemd.start(deadman.SERVICE)
        except FailedError as error:
            raise RefusedError(
                "unfinished",
                f"epoch: the change {left.epoch} was not finished and cannot be taken back: {error.words}; {deadman.TIMER} will try again, "
                "give the order again after that",
                epoch=left.epoch,
            ) from error
        order = change.order()
        other = Course(self._told, b"", order, left.document)
        answer = await other._settle_back(
            systemd,
            Reason("overtaken", {"epoch": self._order.epoch}),
            "a newer order came before it was finished",
        )
        if answer.outcome != "restored":
            raise RefusedError(
                "unfinished",
                f"epoch: the change {left.epoch} was taken back, and the kubelet is not well: {answer.words}",
                epoch=left.epoch,
            )

    async def _clean(self, systemd: Systemd) -> None:
        """Nothing is changed yet, and nothing stays but copies."""
        with contextlib.suppress(OSError):
            writing.remove(self._host.at(places.staged(self._order.path)))
        with contextlib.suppress(OSError, FailedError):
            if deadman.left(self._host):
                await deadman.remove(self._host, systemd)

    # ------------------------------------------------------------ told

    def _note(self, step: Step) -> None:
        self._change.journal.note(step, self._told.clock())

    def _finish(self, answer: Answer) -> None:
        with contextlib.suppress(OSError):
            self._change.finish(answer)

    def _answer(self, outcome: Outcome, cause: Reason | None, words: str) -> Answer:
        return Answer(
            outcome=outcome,
            node=self._order.node,
            epoch=self._order.epoch,
            rollout=self._order.rollout,
            step=self._change.journal.last,
            cause=cause,
            words=words,
            before=self._order.before,
            after=self._present_hash(),
            removed_state=self._removed,
            main_pid=self._main_pid,
            took=round(time.monotonic() - self._began, 1),
            in_force=self._found.shown,
            source=self._found.source,
        )

    def _present_hash(self) -> str:
        try:
            present = writing.read(self._host.at(self._order.path))
        except OSError:
            return ""
        return "" if present is None else present.sha256


def refused(told: Told, order: Order | None, error: RefusedError | FailedError | OSError) -> Answer:
    """The answer to an order that is not carried out."""
    left = _left(told.host)
    reason = Reason("system", {"error": str(error)[:300]}) if isinstance(error, OSError) else error.reason
    words = (
        f"{error.filename}: {error.strerror or error}; look whether the node's file systems are writable"
        if isinstance(error, OSError)
        else error.words
    )
    if left:
        words += f"; an unfinished change stands on the node, {deadman.TIMER} takes it back"
    return Answer(
        outcome="failed" if left and order is not None else "refused",
        node=told.node,
        epoch=0 if order is None else order.epoch,
        rollout="" if order is None else order.rollout,
        step="check",
        cause=reason,
        words=words,
        before="" if order is None else order.before,
    )


def _left(host: Host) -> bool:
    try:
        return os.path.lexists(host.at(deadman.ARMED))
    except OSError:
        return False
