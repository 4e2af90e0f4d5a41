"""What a shift writes to the database: each function is one job of its database thread, and one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import msgspec
from django.db import close_old_connections, transaction

from monitoring import history, selectors
from monitoring.history import NodeSample
from monitoring.hot import HotNode
from monitoring.live import NodeTick, of_report
from monitoring.models import Endpoint
from monitoring.services import leases, recording
from monitoring.services.collection.backlog import Backlog
from monitoring.services.collection.poller import Target
from monitoring.services.leases import Tenure
from numacore.report import node_report
from numacore.wire import Machine, WireError

T = TypeVar("T")


class Draft(msgspec.Struct, frozen=True):
    """What a report is to be made of. `machine`: that section's value; the flags as in `recording.Observation`."""

    state: HotNode
    machine: Machine | None
    same_containers: bool
    new_kubelet: bool


class Reported(msgspec.Struct, frozen=True):
    """What a report says that the shift needs for its rounds."""

    node: int
    pinned: list[int | None]
    pinned_shares: list[float | None]
    crossing: int


class Outcome(msgspec.Struct, frozen=True):
    """`unreadable`: nodes whose sections contradict each other or cannot be read, and why."""

    reported: list[Reported]
    unreadable: dict[int, str]


def targets(shard: int, shards: int) -> list[Target]:
    """The endpoints of a shard."""
    rows = Endpoint.objects.filter(enabled=True, cluster__enabled=True).order_by("pk")
    return [
        Target(pk, cluster, url, token)
        for pk, cluster, url, token in rows.values_list("pk", "cluster", "url", "token")
        if pk % shards == shard
    ]


def report(drafts: Sequence[Draft], tenure: Tenure) -> Outcome:
    """Makes and writes reports. Raises LeaseLostError, DatabaseError."""
    threshold = selectors.settings().busy_threshold
    observations, unreadable = [], {}
    for draft in drafts:
        state = draft.state
        try:
            facts = state.facts(draft.machine)
        except WireError as error:
            unreadable[state.node] = str(error)
            continue
        if facts is not None:
            observations.append(
                recording.Observation(
                    state.node,
                    facts,
                    node_report(facts, threshold),
                    len(state.problems),
                    datetime.fromtimestamp(state.received, UTC),
                    draft.same_containers,
                    draft.new_kubelet,
                )
            )
    recording.record(observations, tenure, threshold)
    return Outcome([_reported(each) for each in observations], unreadable)


def _reported(seen: recording.Observation) -> Reported:
    numa = seen.report.numa
    return Reported(
        seen.node,
        [each.pinned for each in numa],
        [each.pinned / each.pinnable if each.pinned is not None and each.pinnable else None for each in numa],
        seen.report.crossing,
    )


def ticks(states: Sequence[HotNode], threshold: float) -> list[NodeTick]:
    """What open node pages get."""
    made = []
    for state in states:
        try:
            facts = state.facts()
        except WireError:
            continue  # told as a failure when the node's report is made
        if facts is not None:
            made.append(of_report(state, node_report(facts, threshold)))
    return made


def journal(backlog: Backlog, shard: int, tenure: Tenure) -> int:
    """Writes the samples that wait. Raises LeaseLostError, DatabaseError."""

    def write(at: int, samples: Sequence[NodeSample]) -> None:
        with transaction.atomic():
            leases.fence(tenure)
            history.write_journal(shard, at, samples)

    return backlog.drain(write)


def job(work: Callable[[], T]) -> T:
    """Runs one job on a connection that is not known to be broken."""
    close_old_connections()
    return work()


def bound(work: Callable[..., T], *arguments: object) -> Callable[[], T]:
    """A job with its arguments."""
    return partial(work, *arguments)
