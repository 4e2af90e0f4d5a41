"""One endpoint in a shift: when it is asked, what it told, how it does. Its schedule is its own."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Literal, Protocol

import structlog

from monitoring import hot
from monitoring.services import recording
from monitoring.services.collection import writing
from monitoring.services.collection.lanes import Lane, Lanes
from monitoring.services.collection.timetable import Timetable
from monitoring.services.collection.writing import Target
from monitoring.services.endpoints import Health
from monitoring.sources import failures
from monitoring.sources.exporter import Asker, Limits
from monitoring.sources.failures import SourceError
from monitoring.sources.http1 import Answer
from monitoring.sources.snapshot import Known, Round
from numacore import wire
from numacore.wire import WireError

log = structlog.get_logger(__name__)

Step = Literal["ask", "read", "identify", "report", "keep", "summary", "history"]
"""What is done for an answer and made of it."""


class Owner(Protocol):
    """The roster, as its pollers see it."""

    lanes: Lanes
    limits: Limits
    loop: asyncio.AbstractEventLoop
    timetable: Timetable
    period: float
    longest_pause: float

    def summed(self, poller: Poller) -> bool:
        """Whether use by NUMA node is enough this time."""

    def answered(self, poller: Poller, told: Round) -> None:
        """A readable answer came."""

    def failed(self, poller: Poller) -> None:
        """No answer, or none that can be read."""


class Poller:
    """`start` it once; it goes on until `stop`."""

    def __init__(self, target: Target, known: Known, owner: Owner) -> None:
        self.target, self.known, self._owner = target, known, owner
        self.node: int | None = None
        self.slot = -1
        self.said: tuple[str, str | None, str | None] | None = None
        """Node, machine-id and boot that its exporter named when its node was looked for."""
        self.place = -1
        """Its position in the fleet's columns; -1 = not in there."""
        self.failing = False
        self.failures = 0
        """In a row."""
        self.error: SourceError | None = None
        self.latest: Round | None = None
        self.reported = -1e9
        """When its last report was made, loop time."""
        self.report_due = True
        self.reported_hashes: dict[str, str] = {}
        """Of the sections that its last report was made of."""
        self.faults: dict[Step, SourceError] = {}
        """What could not be made of what it told last. It fails until all can, though its answers come and parse."""
        self.kept = 0.0
        """When the state came that the hot store got last, seconds since 1970."""
        self._failed_since = 0
        self._turned = False
        self._asker: Asker | None = None
        self._due = 0.0
        self._asked = 0.0
        self._stopped = False
        self._afresh = False
        """The next question asks for everything. One that is under way was asked with what was known then."""

    def start(self, delay: float) -> None:
        """Asks for the first time after `delay` seconds."""
        self._due = self._owner.loop.time() + delay
        self._owner.timetable.at(self._due, self._enter)

    def stop(self) -> None:
        """Asks no more."""
        self._stopped = True
        self._owner.lanes.drop(self, self._owner.loop.time())
        if self._asker is not None:
            self._asker.close()

    @property
    def lane(self) -> Lane:
        """For the lanes."""
        if self.failing:
            return "slow"
        return "fast" if self.known.exporter is not None else "first"

    def _enter(self) -> None:
        if self._stopped:
            return
        self._owner.lanes.enter(self, self._owner.loop.time())

    def go(self) -> None:
        """Called by the lanes."""
        self._asked = self._owner.loop.time()
        try:
            if self._asker is None:
                target = self.target
                self._asker = Asker(
                    target.url, target.token, self._owner.limits, self._owner.loop, target.trust
                )
            if self._afresh:
                self._afresh = False
                self.known.have.clear()
            self._asker.ask(self.known.have, self._done, self._owner.summed(self))
        except SourceError as error:
            self._owner.loop.call_soon(self._done, None, error)

    def broke(self, error: Exception) -> None:
        """Called by the lanes: numaweb broke on asking it."""
        self.defective("ask", error)
        self._plan(self._owner.loop.time())

    def _done(self, answer: Answer | None, error: SourceError | None) -> None:
        if self._stopped:
            return
        now = self._owner.loop.time()
        self._owner.lanes.leave(self, now)
        try:
            self._hear(answer, error, now - self._asked)
        except Exception as surprise:  # noqa: BLE001 - whatever it is, it is asked again, and the others go on
            self.defective("read", surprise)
        self._plan(now)

    def _hear(self, answer: Answer | None, error: SourceError | None, round_trip: float) -> None:
        told = None
        if answer is not None and error is None:
            told, error = self._read(answer, round_trip)
        if told is not None:
            self._accept(told)
        else:
            self._reject(error or SourceError(failures.UNREACHABLE, "no answer"))

    def _read(self, answer: Answer, round_trip: float) -> tuple[Round | None, SourceError | None]:
        try:
            return self.known.take(answer.body, time.time(), round_trip), None
        except WireError as error:
            self.known.have.clear()  # whatever it was, the next answer tells everything
            return None, SourceError(failures.GARBLED, str(error)[:400])

    def _accept(self, told: Round) -> None:
        self.latest = told
        self._owner.answered(self, told)
        self.faults.pop("ask", None)
        self.faults.pop("read", None)
        if told.changed or "report" in self.faults:
            self.report_due = True
        if not self.faults:
            self._works()

    def _works(self) -> None:
        self._turned |= self.failing
        self.failing, self.failures, self.error = False, 0, None

    def unusable(self, step: Step, error: SourceError) -> None:
        """What it told turned out to be of no use when something was made of it."""
        self._afresh = True
        self.faults[step] = error
        self._reject(error)

    def defective(self, step: Step, error: Exception) -> None:
        """numaweb itself broke on what it told."""
        fault, before = failures.defect(error), self.faults.get(step)
        if before is None or str(before) != str(fault):
            log.error(
                "an answer could not be processed",
                url=self.target.url,
                step=step,
                cause=str(fault),
                exc_info=error,
            )
        self.unusable(step, fault)

    def usable(self, step: Step) -> None:
        """A step made what it makes of what it told."""
        if self.faults and self.faults.pop(step, None) is not None and not self.faults:
            self._works()

    def _reject(self, error: SourceError) -> None:
        self._turned |= not self.failing
        self.failing, self.error = True, error
        self.failures += 1
        self._failed_since += 1
        self._owner.failed(self)

    def _plan(self, now: float) -> None:
        """The next time of its own rhythm; after failures later and later, and never all at the same moment."""
        period = self._owner.period
        if self.failures > 1:
            pause = min(period * 2.0 ** min(self.failures - 1, 12), self._owner.longest_pause)
            self._due = now + pause * random.uniform(0.6, 1.0)
        else:
            missed = max(0.0, now - self._due) // period
            self._due += (missed + 1) * period
        self._owner.timetable.at(self._due, self._enter)

    @property
    def health_news(self) -> bool:
        """Whether its row says something else than what is so."""
        return self._turned or self._failed_since > 0

    def health(self) -> Health:
        """How it does, for its row; counts begin anew."""
        failed, self._failed_since, self._turned = self._failed_since, 0, False
        heard = self.known.received
        return Health(
            endpoint=self.target.endpoint,
            tried=datetime.now(UTC),
            heard=datetime.fromtimestamp(heard, UTC) if heard else None,
            failures=self.failures,
            failed=failed,
            error=str(self.error) if self.error else "",
            remedy=self.error.remedy if self.error else "",
            skew=self.known.skew,
        )

    def unsaid(self, health: Health) -> None:
        """The row could not be written: say it again next time."""
        self._failed_since += health.failed
        self._turned = True

    def hot(self) -> hot.HotNode | None:
        """Its state as the hot store keeps it, as old as what it last told of every CPU and container; None while it is no
        node or nothing is known."""
        known = self.known
        usage = known.usage_section()
        if self.node is None or known.exporter is None:
            return None
        sections = {**known.sections, **({wire.USAGE: usage} if usage else {})}
        before = known.usage_before() if usage else None
        return hot.HotNode(
            node=self.node,
            endpoint=self.target.endpoint,
            exporter=known.exporter,
            received=known.whole_received,
            taken=known.whole_taken,
            hashes=dict(known.hashes),
            confirmed=dict(known.confirmed),
            problems=known.problems,
            skew=known.skew,
            seconds=known.seconds,
            sections=sections,
            before=hot.Reading(before, known.before_containers) if before else None,
        )

    def draft(self) -> writing.Draft | None:
        """What its next report is made of; None while it is no node."""
        state = self.hot()
        if state is None:
            return None
        before = self.reported_hashes
        return writing.Draft(
            state,
            self.known.machine,
            same_containers=before.get(wire.CONTAINERS) == state.hashes.get(wire.CONTAINERS, ""),
            new_kubelet=before.get(wire.KUBELET, "") not in ("", state.hashes.get(wire.KUBELET)),
        )

    def pulse(self) -> recording.Pulse | None:
        """What moves of its node's summary; None while that is unknown."""
        latest, machine = self.latest, self.known.machine
        if self.node is None or latest is None or machine is None:
            return None
        weights = [len(node.cpus) for node in machine.topology.nodes]
        known = [(n.busy, w) for n, w in zip(latest.numa, weights, strict=False) if n.busy is not None and w]
        used = [numa.used for numa in latest.numa]
        return recording.Pulse(
            self.node,
            self.target.endpoint,
            sum(busy * weight for busy, weight in known) / sum(w for _, w in known) if known else None,
            sum(each for each in used if each is not None) if used and None not in used else None,
            datetime.fromtimestamp(self.known.received, UTC),
            self.known.skew,
        )
