"""One order on its way: what it is about, how far it is, and what is said of it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

import msgspec

from numaagent.applier import inforce, writing
from numaagent.applier.journal import Step
from numaagent.applier.keeping import Change
from numaagent.applier.places import Host
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Waits
from numacore.change import undo
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
        self.told = told
        self.host = told.host
        self.data = data
        self.order = order
        self.document = document
        self.change = Change(self.host, order.epoch)
        self.began = time.monotonic()
        self.cleared = "clear" in self.change.journal.steps()
        """A run before this one may have removed state files: what was taken then counts."""
        self.removed: tuple[StateFile, ...] = ()
        self.main_pid: int | None = None
        self.found = inforce.InForce(None)

    def note(self, step: Step) -> None:
        self.change.journal.note(step, self.told.clock())

    def finish(self, answer: Answer) -> None:
        with contextlib.suppress(OSError):
            self.change.finish(answer)

    def answer(self, outcome: Outcome, cause: Reason | None, words: str) -> Answer:
        return Answer(
            outcome=outcome,
            node=self.order.node,
            epoch=self.order.epoch,
            rollout=self.order.rollout,
            step=self.change.journal.last,
            cause=cause,
            words=words,
            before=self.order.before,
            after=self.present_hash(),
            removed_state=self.removed,
            main_pid=self.main_pid,
            took=round(time.monotonic() - self.began, 1),
            in_force=self.found.shown,
            source=self.found.source,
        )

    def present_hash(self) -> str:
        try:
            present = writing.read(self.host.at(self.order.path))
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
        words += f"; an unfinished change stands on the node, {undo.TIMER} takes it back"
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
        return os.path.lexists(host.at(undo.ARMED))
    except OSError:
        return False
