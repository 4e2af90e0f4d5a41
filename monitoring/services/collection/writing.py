"""What a shift reads and writes: each function is one job of its database thread or of that for hot store and bus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import msgspec
from django.db import close_old_connections, transaction

from monitoring import history, hot, live, selectors
from monitoring.history import NodeSample
from monitoring.hot import Cells, HotNode
from monitoring.models import Endpoint
from monitoring.services import leases, recording
from monitoring.services.collection.backlog import Backlog
from monitoring.services.leases import Tenure
from monitoring.sources.exporter import Trust
from numacore.report import node_report
from numacore.wire import Machine, WireError

T = TypeVar("T")


class Target(msgspec.Struct, frozen=True):
    """What a shift knows of an endpoint from the database."""

    endpoint: int
    cluster: int
    url: str
    token: str
    trust: Trust = Trust()


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
        Target(pk, cluster, url, token, Trust(ca, name))
        for pk, cluster, url, token, ca, name in rows.values_list(
            "pk", "cluster", "url", "token", "ca", "server_name"
        )
        if pk % shards == shard
    ]


def nodeless() -> set[int]:
    """Endpoints that answered for a node once and have none now: the API server has another node in its place, or none."""
    rows = Endpoint.objects.filter(enabled=True, node=None, conflict="", state=Endpoint.State.OK)
    return set(rows.values_list("pk", flat=True))


def threshold() -> float:
    """The busy share above which a CPU counts as occupied."""
    return selectors.settings().busy_threshold


def report(drafts: Sequence[Draft], busy_threshold: float, tenure: Tenure) -> Outcome:
    """Makes and writes reports. Raises LeaseLostError, DatabaseError."""
    told, unreadable = {}, {}
    for draft in drafts:
        try:
            facts = draft.state.facts(draft.machine)
        except WireError as error:
            unreadable[draft.state.node] = str(error)
            continue
        if facts is not None:
            told[draft.state.node] = facts
    known = selectors.joined(told)
    observations = [
        recording.Observation(
            draft.state.node,
            told[draft.state.node],
            node_report(known[draft.state.node], busy_threshold),
            len(draft.state.problems),
            datetime.fromtimestamp(draft.state.received, UTC),
            draft.same_containers,
            draft.new_kubelet,
        )
        for draft in drafts
        if draft.state.node in told
    ]
    recording.record(observations, tenure, busy_threshold)
    return Outcome([_reported(each) for each in observations], unreadable)


def _reported(seen: recording.Observation) -> Reported:
    numa = seen.report.numa
    return Reported(
        seen.node,
        [each.pinned for each in numa],
        [each.pinned / each.pinnable if each.pinned is not None and each.pinnable else None for each in numa],
        seen.report.crossing,
    )


def keep(states: Sequence[HotNode]) -> None:
    """Gives states to the hot store."""
    hot.store().put(states)


def keep_cells(shard: int, blocks: Sequence[tuple[int, Cells, Cells]], counts: Mapping[str, int]) -> None:
    """Gives cells (all of a cluster's, and those that changed) and counts to the hot store and the bus."""
    store, bus = hot.store(), live.bus()
    for cluster, whole, part in blocks:
        store.put_cells(cluster, shard, whole)
        bus.publish(live.CellsNews(cluster, part))
    for name, amount in counts.items():
        store.count(name, amount)


def show(states: Sequence[HotNode], busy_threshold: float) -> None:
    """Gives nodes that somebody looks at to their open pages."""
    for state in states:
        try:
            tick = live.node_tick(state, busy_threshold)
        except WireError:
            continue  # told as a failure when the node's report is made
        if tick is not None:
            live.bus().publish(live.NodeNews(tick))


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
