"""Rollouts as rows, in whatever state a test looks at."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
from django.utils import timezone

from monitoring.models import Cluster
from numacore.change.wish import Wish
from numacore.diagnosis import Reason
from policies import plan as plans
from policies.models import Policy, Rollout, RolloutNode
from policies.plan import LeftOut, Options, Plan, PlannedNode

PATH = "/var/lib/kubelet/config.yaml"
State, Step, Outcome = Rollout.State, RolloutNode.Step, RolloutNode.Outcome


def planned_node(name: str, batch: int = 1, **rest: Any) -> PlannedNode:
    given: dict[str, Any] = {
        "before": "a" * 64,
        "after": "b" * 64,
        "path": PATH,
        "keys": {"topologyManagerPolicy": "single-numa-node"},
        "intended": {"topologyManagerPolicy": "single-numa-node"},
        "present": {"topologyManagerPolicy": None},
        "state_files": ("cpu_manager_state",),
        "moved": 3,
    }
    return PlannedNode(name=name, uid=f"uid-{name}", batch=batch, **{**given, **rest})


def rollout(
    cluster: Cluster,
    state: str = State.PLANNED,
    nodes: int = 4,
    *,
    policy: Policy | None = None,
    left_out: tuple[LeftOut, ...] = (),
    warnings: tuple[Reason, ...] = (),
    options: Options = Options(),  # noqa: B008 - frozen
    **columns: Any,
) -> Rollout:
    """A rollout with `nodes` planned nodes, each waiting; `columns` of its row win."""
    now = timezone.now()
    given: dict[str, Any] = {
        "policy": policy,
        "level": policy.level if policy else "cluster",
        "target": policy.target if policy else "",
        "version": policy.version if policy else 1,
        "options": msgspec.to_builtins(options),
        "nodes_total": nodes,
        "looked_at": nodes,
        "made": now - timedelta(minutes=5),
        "made_by": "ada",
        "changed": now - timedelta(minutes=1),
    }
    made = Rollout.objects.create(cluster=cluster, state=state, **{**given, **columns})
    if state == State.PLANNING:
        return made
    names = [f"node-{number}" for number in range(nodes)]
    order = plans.batches(names, options)
    chosen = Plan(
        cluster=cluster.slug,
        rollout=made.pk,
        wish=Wish(topology_policy="single-numa-node"),
        options=options,
        nodes=tuple(planned_node(name, order[name]) for name in names),
        left_out=left_out,
        warnings=warnings,
    )
    made.plan, made.plan_hash, made.planned = msgspec.to_builtins(chosen), plans.digest(chosen), now
    if state not in (State.PLANNED, State.DISCARDED):
        made.confirmed, made.confirmed_by = now, "grace"
    made.save()
    RolloutNode.objects.bulk_create(
        RolloutNode(rollout=made, position=position, batch=order[name], name=name, uid=f"uid-{name}")
        for position, name in enumerate(names)
    )
    return made


def settle(of: Rollout, name: str, outcome: str, cause: Reason | None = None) -> RolloutNode:
    """A node of it ended so."""
    node = of.nodes.get(name=name)
    node.step, node.outcome, node.ended = Step.ENDED, outcome, timezone.now()
    node.cause = msgspec.to_builtins(cause) if cause else None
    node.save()
    return node
