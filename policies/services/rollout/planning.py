"""The plan is made: every node of the target is previewed, in chunks with progress, and what comes out never changes again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from monitoring import hot
from monitoring.kube.errors import ApiError, Forbidden
from monitoring.models import Cluster, KubernetesNode
from monitoring.selectors.planning import UnknownNodesError
from monitoring.services import leases
from monitoring.services.leases import LeaseLostError, Tenure
from numacore.change import wish as wishes
from numacore.change.wish import Wish
from numacore.diagnosis import Reason
from policies import plan as plans
from policies import selectors
from policies.gateway import Hands
from policies.models import Original, Policy, Rollout, RolloutNode
from policies.plan import LeftOut, Options, Plan, PlannedNode
from policies.selectors.exported import Exported, exported
from policies.services.rollout import gates, originals, reach, surroundings, targets, telling
from policies.services.rollout.error import RolloutError
from policies.services.rollout.gates import Wanted
from policies.services.rollout.targets import Target
from policies.services.who import Who

State = Rollout.State
CHUNK = 100
"""Nodes that are previewed before the progress is told."""


class Judged(NamedTuple):
    """Nodes that change, in their order, and those that do not."""

    nodes: list[PlannedNode]
    left_out: list[LeftOut]


class _DiscardedError(Exception):
    """Somebody discarded the plan while it was made."""


def plan_work(number: int) -> None:
    """Makes the plan of a rollout that waits for it. Two at once: the second does nothing; after a crash it begins anew."""
    tenure = leases.take(f"plan/{number}", settings.NUMAWEB_ROLLOUT_LEASE)
    if tenure is None:
        return
    try:
        rollout = Rollout.objects.select_related("cluster").filter(pk=number, state=State.PLANNING).first()
        if rollout is not None:
            _plan(rollout, tenure)
    except (LeaseLostError, _DiscardedError):
        return
    finally:
        leases.give_up(tenure)


def _plan(rollout: Rollout, tenure: Tenure) -> None:
    try:
        plan = _made(rollout, tenure)
    except (RolloutError, ApiError, hot.StoreError, UnknownNodesError) as error:
        _write(rollout, tenure, None, _cause(error))
        return
    nothing = "nothing-back" if rollout.level == Rollout.Level.CHANGED else "nothing"
    _write(rollout, tenure, plan, None if plan.nodes else Reason(nothing))


def _made(rollout: Rollout, tenure: Tenure) -> Plan:
    wanted = _wanted(rollout)
    hands = reach.opened(rollout.cluster)
    options = msgspec.convert(rollout.options, Options)
    around = surroundings.seen(hands, [each.name for each in wanted])
    judged = judge(rollout, wanted, around.control_plane, options, tenure)
    nodes = [surroundings.with_pods(each, around, drain=options.drain) for each in judged.nodes]
    batched = in_batches(nodes, options)
    return Plan(
        cluster=rollout.cluster.slug,
        rollout=rollout.pk,
        wish=_wish(rollout.policy),
        options=options,
        nodes=batched,
        left_out=tuple(judged.left_out),
        warnings=(
            *surroundings.warnings(rollout.cluster, batched, around, drain=options.drain),
            *_still_on(rollout),
            *_second_files(rollout.cluster, batched),
            *_missing_rights(hands),
        ),
    )


def _wanted(rollout: Rollout) -> list[Target]:
    if rollout.level == Rollout.Level.CHANGED:
        return targets.changed(rollout.cluster)
    if rollout.policy is None:
        raise RolloutError("no-policy")
    return targets.targets(rollout.cluster, rollout.policy)


def _wish(policy: Policy | None) -> Wish | None:
    return wishes.read(policy.wish) if policy and policy.on else None


def _still_on(rollout: Rollout) -> Iterator[Reason]:
    """Policies that go on asking for what a way back takes away. Nothing rolls them out by itself, but they show its nodes as not as wanted."""
    if rollout.level != Rollout.Level.CHANGED:
        return
    if number := Policy.objects.filter(cluster=rollout.cluster, on=True).count():
        yield Reason("policies-on", {"number": number})


def _second_files(cluster: Cluster, nodes: Sequence[PlannedNode]) -> Iterator[Reason]:
    """A rollout changes one file of a node."""
    restored = {each.name: each.path for each in nodes if each.act == "restore"}
    left = [
        name
        for name, each in originals.standing(cluster, list(restored)).items()
        if any(other.path != restored[name] for other in each)
    ]
    if left:
        yield Reason("second-file", {"nodes": surroundings.named(left)})


def in_batches(nodes: Iterable[PlannedNode], options: Options) -> tuple[PlannedNode, ...]:
    """In the order in which they are begun: as named, those that numaweb itself runs on last."""
    ordered = sorted(nodes, key=lambda each: (each.last, each.name))
    batch = plans.batches([each.name for each in ordered], options)
    return tuple(msgspec.structs.replace(each, batch=batch[each.name]) for each in ordered)


def _missing_rights(hands: Hands) -> Iterator[Reason]:
    if missing := hands.missing(settings.NUMAWEB_NAMESPACE):
        yield Reason("missing-right", {"rights": ", ".join(map(str, missing))})


# ---------------------------------------------------------------- node by node


def judge(
    rollout: Rollout,
    wanted: Sequence[Target],
    control_plane: frozenset[str],
    options: Options,
    tenure: Tenure,
) -> Judged:
    """Raises hot.StoreError, UnknownNodesError, LeaseLostError."""
    found = Judged([], [])
    left: list[Target] = []
    for each in wanted:
        if each.frozen:
            found.left_out.append(LeftOut(each.name, Reason("frozen", {"pools": ", ".join(each.frozen)})))
        elif each.name in control_plane and not options.control_plane:
            found.left_out.append(LeftOut(each.name, Reason("control-plane")))
        else:
            left.append(each)
    for start in range(0, len(left), CHUNK):
        _progress(rollout, tenure, start, len(left))
        for result in _judged(rollout.cluster, left[start : start + CHUNK], timezone.now()):
            if isinstance(result, LeftOut):
                found.left_out.append(result)
            else:
                found.nodes.append(result)
    _progress(rollout, tenure, len(left), len(left))
    return found


def _progress(rollout: Rollout, tenure: Tenure, done: int, total: int) -> None:
    with transaction.atomic():
        leases.fence(tenure)
        planning = Rollout.objects.filter(pk=rollout.pk, state=State.PLANNING)
        if not planning.update(looked_at=done, nodes_total=total):
            raise _DiscardedError


def _judged(cluster: Cluster, chunk: Sequence[Target], now: datetime) -> Iterator[PlannedNode | LeftOut]:
    names = [each.name for each in chunk]
    known = exported(cluster, names)
    told = {
        each.node_id: each
        for each in KubernetesNode.objects.filter(node__cluster=cluster, node__name__in=names)
    }
    policies: dict[int, tuple[Policy, list[str]]] = {}
    kept = originals.standing(cluster, [each.name for each in chunk if each.policy is None])
    for each in chunk:
        if each.policy is not None:
            policies.setdefault(each.policy.pk, (each.policy, []))[1].append(each.name)
        elif each.name in known:
            yield _restored(kept.get(each.name, []), known[each.name], told, now)
        else:
            yield LeftOut(each.name, Reason("gone"))
    for policy, mine in policies.values():
        there = [name for name in mine if name in known]
        for previewed in selectors.preview(cluster, policy, there, now):
            node = known[previewed.node]
            yield targets.planned(previewed, node, told.get(node.row.pk))


def _restored(
    kept: Sequence[Original], node: Exported, told: dict[int, KubernetesNode], now: datetime
) -> PlannedNode | LeftOut:
    """The newest file that is not back goes back; one that somebody else brought back is noted as such."""
    found: PlannedNode | LeftOut = LeftOut(node.name, Reason("already"))
    for original in kept:
        found = targets.restored(original, node, told.get(node.row.pk))
        if isinstance(found, PlannedNode):
            return found
        if found.reason.code == "already":
            found = _found_back(original, node, now)
    return found


def _found_back(original: Original, node: Exported, now: datetime) -> LeftOut:
    field = gates.differing(node, Wanted(original.path, original.sha256, dict(original.fields), ""))
    if field:
        return LeftOut(node.name, Reason("file-alone", {"field": field}))
    originals.found_back(original, now)
    return LeftOut(node.name, Reason("already"))


# ---------------------------------------------------------------- what is written


def _write(rollout: Rollout, tenure: Tenure, plan: Plan | None, cause: Reason | None) -> None:
    now = timezone.now()
    with transaction.atomic():
        leases.fence(tenure)
        held = Rollout.objects.select_for_update().get(pk=rollout.pk)
        if held.state != State.PLANNING:
            return
        held.changed, held.cause = now, msgspec.to_builtins(cause)
        if plan is not None:
            held.plan, held.plan_hash = msgspec.to_builtins(plan), plans.digest(plan)
        if plan is None or cause is not None:
            held.state, held.ended = State.DISCARDED, now
        else:
            held.state, held.planned = State.PLANNED, now
            write_nodes(held, plan)
        held.save()
        found = {"plan": held.plan_hash, "nodes": len(plan.nodes) if plan else 0}
        detail = f"not planned: {cause.code}" if cause else "planned"
        telling.decided(
            held, Who(held.made_by, ""), detail, after=found, result="failed" if cause else "done"
        )


def write_nodes(rollout: Rollout, plan: Plan) -> None:
    """A row for each node of the plan. What is the same in all of them is prepared once: thousands of rows are written at a confirmation's pace."""
    meta, wanted = RolloutNode._meta, ("position", "batch", "name", "uid", "node_id")
    blank = RolloutNode(rollout=rollout, position=0, batch=0, name="", uid="")
    columns = {
        str(field.column): field.get_db_prep_save(field.pre_save(blank, add=True), connection)
        for field in meta.local_concrete_fields
        if not field.primary_key
    }
    quote = connection.ops.quote_name
    statement = f"INSERT INTO {quote(meta.db_table)} ({', '.join(map(quote, columns))}) VALUES ({', '.join(['%s'] * len(columns))})"  # noqa: S608 - names of our own columns
    order = [list(columns).index(name) for name in wanted]
    shared = list(columns.values())
    rows = []
    for position, (each, node_id) in enumerate(_with_rows(rollout.cluster, plan)):
        row = shared.copy()
        for at, value in zip(order, (position, each.batch, each.name, each.uid, node_id), strict=True):
            row[at] = value
        rows.append(row)
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def _with_rows(cluster: Cluster, plan: Plan) -> Iterator[tuple[PlannedNode, int | None]]:
    rows = dict(cluster.nodes.filter(gone_at=None).values_list("name", "pk"))
    return ((each, rows.get(each.name)) for each in plan.nodes)


def _cause(error: Exception) -> Reason:
    match error:
        case RolloutError(code="no-policy"):
            return Reason("policy-gone")
        case RolloutError():
            return Reason(error.code, {"words": error.cause} if error.cause else {})
        case Forbidden():
            return Reason("missing-right", {"rights": str(error.right or error.message)})
        case ApiError():
            return Reason("unreachable" if not error.status else "api", {"words": error.message})
        case UnknownNodesError():
            return Reason("stale", {"file": ", ".join(error.names)})
    return Reason("store", {"words": str(error)[:300]})


def unfinished() -> list[int]:
    """Rollouts that wait for their plan and at which nobody seems to work."""
    waiting = Rollout.objects.filter(state=State.PLANNING).values_list("pk", flat=True)
    return [number for number in waiting if leases.suspect(f"plan/{number}")]
