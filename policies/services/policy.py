"""Pools and policies are written down: checked, versioned, in the audit log. Nothing on any node changes by that.

Two people who edit the same thing: whoever comes second hears of it and loses nothing (`changed`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from django.db import transaction
from django.db.models import ProtectedError

from monitoring.kube.selector import SelectorError
from monitoring.models import Cluster
from monitoring.selectors import inventory
from numacore.change import wish as wishes
from numacore.change.wish import Fault, Wish
from policies import audit, selectors
from policies.audit import Event
from policies.models import Policy, PolicyVersion, Pool
from policies.selectors import Overlap, precedence
from policies.services.who import Who

Level = Policy.Level
Obstacle = Literal["changed", "selector", "overlap", "name-taken", "no-node", "no-pool", "wish", "in-use"]


class PolicyError(Exception):
    """Why something is not written down: a code for which pages have a sentence, the field at fault, and details."""

    def __init__(
        self,
        code: Obstacle,
        field: str = "",
        *,
        cause: str = "",
        overlaps: tuple[Overlap, ...] = (),
        faults: tuple[Fault, ...] = (),
    ) -> None:
        super().__init__(f"{code}: {cause}" if cause else code)
        self.code: Obstacle = code
        self.field = field
        self.cause = cause
        self.overlaps = overlaps
        self.faults = faults


class Target(msgspec.Struct, frozen=True):
    """For whom a policy is: `name` of the pool or node, "" for the whole cluster."""

    level: str
    name: str = ""


# ---------------------------------------------------------------- pools


def save_pool(
    cluster: Cluster, name: str, text: str, who: Who, now: datetime, seen: int | None = None
) -> Pool:
    """Makes a pool (`seen` None), or gives it another selector if its version is still the one that was seen. Raises PolicyError."""
    with transaction.atomic():
        Cluster.objects.select_for_update().get(
            pk=cluster.pk
        )  # pools are weighed against each other, one at a time
        pool = Pool.objects.filter(cluster=cluster, name=name).first()
        if pool and seen is None:
            raise PolicyError("name-taken", "name", cause=name)
        if seen is not None and (pool is None or pool.version != seen):
            raise PolicyError("changed")
        _part(cluster, name, text)
        before = _pool(pool) if pool else None
        pool = pool or Pool(cluster=cluster, name=name, version=0)
        pool.selector, pool.version, pool.changed, pool.changed_by = text, pool.version + 1, now, who.name
        pool.save()
        _tell(who, "node pool", f"cluster {cluster.slug} pool {name}", before, _pool(pool))
    return pool


def remove_pool(pool: Pool, who: Who) -> None:
    """Raises PolicyError while a policy is for it: switched off, it still knows how its nodes were."""
    with transaction.atomic():
        before, target = _pool(pool), f"cluster {pool.cluster.slug} pool {pool.name}"
        try:
            pool.delete()
        except ProtectedError:
            raise PolicyError("in-use", cause=pool.name) from None
        _tell(who, "node pool", target, before, None)


def _part(cluster: Cluster, name: str, text: str) -> None:
    """A pool shares no node with another."""
    labels = precedence.labels_of(cluster)
    try:
        mine = precedence.selected(text, labels)
    except SelectorError as error:
        raise PolicyError("selector", "selector", cause=error.part) from error
    others = Pool.objects.filter(cluster=cluster).exclude(name=name)
    inside = {each.name: precedence.selected(each.selector, labels) for each in others}
    shared = [each for each in selectors.overlaps({**inside, name: mine}) if name in each.pools]
    if shared:
        raise PolicyError("overlap", "selector", overlaps=tuple(shared))


# ---------------------------------------------------------------- policies


def save(
    cluster: Cluster, target: Target, wish: Wish, on: bool, who: Who, now: datetime, seen: int | None = None
) -> Policy:
    """Makes a policy (`seen` None) or a new version of it, if its newest is still the one that was seen. Raises PolicyError.

    What stays the same is no new version.
    """
    if faults := wishes.check(wish):
        raise PolicyError("wish", faults[0].field, faults=tuple(faults))
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        policy = _of(cluster, target)
        if (policy.version if policy.pk else None) != seen:
            raise PolicyError("changed")
        before = _policy(policy) if policy.pk else None
        policy.wish, policy.on = msgspec.to_builtins(wish, str_keys=True), on
        if before == _policy(policy):
            return policy
        policy.version = policy.version + 1 if before else 1
        policy.changed, policy.changed_by = now, who.name
        policy.save()
        PolicyVersion.objects.create(
            policy=policy, version=policy.version, wish=policy.wish, on=on, at=now, by=who.name
        )
        named = f"cluster {cluster.slug} {target.level} {target.name}".rstrip()
        _tell(who, "affinity policy", named, before, _policy(policy))
    return policy


def _of(cluster: Cluster, target: Target) -> Policy:
    """The policy of a target, or a new one that is not written yet. Raises PolicyError where there is no such target."""
    pool = None
    if target.level == Level.POOL:
        pool = Pool.objects.filter(cluster=cluster, name=target.name).first()
        if pool is None:
            raise PolicyError("no-pool", "target", cause=target.name)
    node_name = target.name if target.level == Level.NODE else ""
    found = Policy.objects.filter(cluster=cluster, level=target.level, pool=pool, node_name=node_name).first()
    if found:
        return found
    if target.level == Level.NODE and not inventory.nodes(cluster).filter(name=node_name).exists():
        raise PolicyError("no-node", "target", cause=node_name)
    return Policy(cluster=cluster, level=target.level, pool=pool, node_name=node_name)


# ---------------------------------------------------------------- what the audit log keeps


def _pool(pool: Pool) -> dict[str, Any]:
    return {"selector": pool.selector}


def _policy(policy: Policy) -> dict[str, Any]:
    return {"on": policy.on, **policy.wish}


def _tell(who: Who, action: str, target: str, before: object, after: object) -> None:
    audit.record(
        Event(action=action, actor=who.name, address=who.address, target=target, before=before, after=after)
    )
