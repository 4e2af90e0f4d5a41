"""Which nodes a rollout is for, and what becomes of each by its preview: a planned change, or left out with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from monitoring.models import Cluster, KubernetesNode
from numacore.diagnosis import Reason
from numacore.kubelet.checks import documents
from numacore.whatif.changing import Change
from policies.models import Original, Policy
from policies.plan import LeftOut, PlannedNode
from policies.selectors import Applied, Previewed, precedence
from policies.selectors.exported import Exported


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a rollout. `policy`: whose wish it gets; None = back to what it was."""

    name: str
    policy: Policy | None
    frozen: tuple[str, ...] = ()


def targets(cluster: Cluster, policy: Policy) -> list[Target]:
    """The nodes that a policy counts for; of one that is off, those that the product changed and that it counted for."""
    if policy.on:
        return [
            Target(name=each.node, policy=policy, frozen=each.frozen)
            for each in precedence.applying(cluster)
            if each.policy and each.policy.pk == policy.pk
        ]
    changed = set(_unrestored(cluster).values_list("node_name", flat=True))
    inside = _inside(cluster, policy)
    return [
        Target(name=each.node, policy=each.policy, frozen=each.frozen)
        for each in precedence.applying(cluster)
        if each.node in changed and (inside is None or each.node in inside) and not _nearer(each, policy)
    ]


def _unrestored(cluster: Cluster) -> Any:
    return Original.objects.filter(cluster=cluster, restored=None)


def changed(cluster: Cluster) -> list[Target]:
    """Every node that the product changed and that is not back, whatever counts for it now: frozen pools and nodes that are gone, too."""
    names = _unrestored(cluster).order_by("node_name").values_list("node_name", flat=True).distinct()
    return [Target(name=name, policy=None) for name in names]


def _inside(cluster: Cluster, policy: Policy) -> set[str] | None:
    """Names of the target's nodes; None = all."""
    if policy.level == Policy.Level.CLUSTER:
        return None
    if policy.level == Policy.Level.NODE:
        return {policy.node_name}
    assert policy.pool is not None, "a policy of a pool has one"
    return precedence.selected(policy.pool.selector, precedence.labels_of(cluster))


def _nearer(applied: Applied, policy: Policy) -> bool:
    """Whether another policy counts for the node that would count beside this one, too: then this one never did."""
    order = [Policy.Level.NODE, Policy.Level.POOL, Policy.Level.CLUSTER]
    other = applied.policy
    return other is not None and order.index(Policy.Level(other.level)) < order.index(
        Policy.Level(policy.level)
    )


# ---------------------------------------------------------------- from a preview


def planned(
    previewed: Previewed, now: Exported, told: KubernetesNode | None, batch: int = 0
) -> PlannedNode | LeftOut:
    """What becomes of one node."""
    change = previewed.change
    if reason := _obstacle(previewed, change):
        return LeftOut(previewed.node, reason)
    assert change is not None, "without a preview there is an obstacle"
    names = previewed.names
    lost = change.changed.lost if change.changed else ()
    return PlannedNode(
        name=previewed.node,
        uid=now.row.uid if told else "",
        machine_id=told.machine_id if told else "",
        batch=batch,
        path=change.path,
        drop_in=change.drop_in,
        before=change.before,
        after=change.after,
        keys=change.keys,
        removed=change.removed,
        intended=change.intended,
        present=present(now, change.intended),
        state_files=tuple(each.file for each in change.state_files),
        lost=tuple(names.get(each.pod.uid, each.pod.uid) for each in lost),
        topology=now.topology,
    )


def _obstacle(previewed: Previewed, change: Change | None) -> Reason | None:
    if change is None:
        return previewed.problem or Reason("no-data")
    if change.refusals:
        return change.refusals[0]
    if not change.diff:
        return Reason("already")
    if previewed.stale:
        return Reason("old-data", {"age": round(previewed.age or 0)})
    return unsound(change)


def unsound(change: Change) -> Reason | None:
    """Why a kubelet would not live with a change that can be written."""
    if change.crashes:
        return Reason("would-crash")
    if change.changed and change.changed.refusal:
        return Reason("would-not-start", {"words": change.changed.refusal[:300]})
    return None


def present(now: Exported, fields: Iterable[str]) -> dict[str, Any]:
    """The values that are in force of these fields, None = the default."""
    settings = now.kubelet.settings if now.kubelet else {}
    return {name: settings[name].value if name in settings else None for name in fields}


# ---------------------------------------------------------------- back to the original


def restored(
    original: Original, now: Exported, told: KubernetesNode | None, batch: int = 0
) -> PlannedNode | LeftOut:
    """The way back to what stood there before the product's first change."""
    if original.uid and now.row.uid and original.uid != now.row.uid:
        return LeftOut(now.name, Reason("replaced"))
    before = now.sha256(original.path)
    if before is None:
        return LeftOut(now.name, Reason("no-data"))
    if before == original.sha256:
        return LeftOut(now.name, Reason("already"))
    fields = dict(original.fields)
    keys, removed = shape(fields, drop_in=original.drop_in)
    return PlannedNode(
        name=now.name,
        uid=now.row.uid if told else "",
        machine_id=told.machine_id if told else "",
        batch=batch,
        act="restore",
        path=original.path,
        drop_in=original.drop_in,
        before=before,
        after=original.sha256,
        keys=keys,
        removed=removed,
        intended=fields,
        present=present(now, fields),
        state_files=_state_files(fields, now),
        topology=now.topology,
    )


def _state_files(fields: dict[str, Any], now: Exported) -> tuple[Any, ...]:
    """What the original's settings cannot live with: a manager's file, where its policy or what it counts with changes."""
    is_now = present(now, fields)
    changed = {name for name, value in fields.items() if value != is_now[name]}
    cpu = {
        "cpuManagerPolicy",
        "cpuManagerPolicyOptions",
        "reservedSystemCPUs",
        "systemReserved",
        "kubeReserved",
    }
    memory = {"memoryManagerPolicy", "reservedMemory", "systemReserved", "kubeReserved"}
    found = []
    if changed & cpu:
        found.append("cpu_manager_state")
    if changed & memory:
        found.append("memory_manager_state")
    return tuple(found)


def shape(fields: dict[str, Any], *, drop_in: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Values of fields as an order has them: `keys` and `removed`."""
    if drop_in:
        return fields, ()
    keys = {name: value for name, value in fields.items() if value is not None}
    return keys, tuple(sorted(fields.keys() - keys.keys()))


def stated(text: str, fields: Iterable[str]) -> dict[str, Any]:
    """What a file itself says of fields; None = nothing."""
    value = documents.read(text).value if text else None
    found = value if isinstance(value, dict) else {}
    return {name: found.get(name) for name in fields}
