"""Where every node of a cluster stands beside what is wanted of it.

The four policies are compared as they are in force, by the summary of a node's newest report; options and reservations as its files and
flags ask for them, by its newest state. What is compared once is remembered by its content, so that a page of thousands of nodes looks only
at what has changed. Whether a difference can be done away with is what a preview tells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from django.db.models import QuerySet

from monitoring import hot
from monitoring.models import Cluster, Node
from monitoring.selectors import inventory
from monitoring.selectors.planning.memory import Memory
from numacore import wire
from numacore.change import differing
from numacore.change import wish as wishes
from numacore.change.differing import Difference
from numacore.change.wish import Wish
from numacore.kubeletstate import Setting
from policies.models import Policy, Pool
from policies.selectors.precedence import Applied, Overlap, applying, members, overlaps

State = Literal["agrees", "differs", "unknown", "frozen", "nothing"]
STATES: tuple[State, ...] = ("differs", "frozen", "unknown", "agrees", "nothing")
"""In the order of what wants a person's eye."""
STATIC = "static"


class Departure(msgspec.Struct, frozen=True):
    """A setting that is not known to be as wanted. `is_now`: as somebody would write it, "" = nothing is set; None = unknown."""

    field: str
    is_now: str | None
    wanted: str


class _Told(msgspec.Struct, frozen=True):
    """What of a kubelet's section is compared."""

    settings: dict[str, Setting] = {}
    unread: tuple[str, ...] = ()


compared: Memory[tuple[Departure, ...]] = Memory(20_000)
_told = msgspec.json.Decoder(_Told)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One node: what counts for it, and how it differs."""

    applied: Applied
    state: State
    topology_policy: str
    """In force by its newest report; "" = unknown."""
    differences: tuple[Departure, ...] = ()

    @property
    def node(self) -> str:
        return self.applied.node


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """A target that may have a policy: the cluster, each pool, each node with a policy of its own. `nodes`: for how many it counts now."""

    level: str
    name: str
    selector: str = ""
    policy: Policy | None = None
    nodes: int = 0
    differ: int = 0
    frozen: bool = False


def standing(cluster: Cluster) -> list[Standing]:
    """Every current node by name."""
    return _standings(cluster, inventory.nodes(cluster))


def standing_of(cluster: Cluster, node: str) -> Standing | None:
    """One node; None where nothing is wanted of it, or it is not there."""
    if not Policy.objects.filter(cluster=cluster, on=True).exists():
        return None
    found = _standings(cluster, inventory.nodes(cluster).filter(name=node))
    return found[0] if found and found[0].state != "nothing" else None


def _standings(cluster: Cluster, nodes: QuerySet[Node]) -> list[Standing]:
    columns = ("name", "topology_policy", "topology_scope", "cpu_policy", "memory_policy", "numa_nodes")
    now = {row.name: row for row in nodes.select_related(None).only(*columns)}
    applied = [each for each in applying(cluster) if each.node in now]
    wishes = {each.policy.pk: _Wanted(each.policy) for each in applied if each.policy}
    sections = _sections(now[each.node].pk for each in applied if each.policy)
    return [_standing(each, now[each.node], wishes, sections) for each in applied]


class _Wanted:
    """A policy's wish, and a key for what is remembered of it."""

    def __init__(self, policy: Policy) -> None:
        self.wish = wishes.read(policy.wish)
        self.key = msgspec.json.encode(self.wish, order="sorted")


def _sections(nodes: Iterable[int]) -> dict[int, bytes]:
    """What the nodes tell of their kubelets; nothing where the store does not answer."""
    try:
        return hot.store().sections(nodes, wire.KUBELET)
    except hot.StoreError:
        return {}


def _standing(
    applied: Applied, node: Node, wishes: Mapping[int, _Wanted], sections: Mapping[int, bytes]
) -> Standing:
    policy = applied.policy
    if policy is None:
        state: State = "frozen" if applied.frozen else "nothing"
        return Standing(applied=applied, state=state, topology_policy=node.topology_policy)
    wanted = wishes[policy.pk]
    found = (*_policies(wanted.wish, node), *_others(wanted, node, sections.get(node.pk)))
    return Standing(
        applied=applied,
        state="frozen" if applied.frozen else _state(found),
        topology_policy=node.topology_policy,
        differences=found,
    )


def _state(found: tuple[Departure, ...]) -> State:
    if any(each.is_now is not None for each in found):
        return "differs"
    return "unknown" if found else "agrees"


def _policies(wish: Wish, node: Node) -> Iterable[Departure]:
    pinned = wish.topology_policy not in (None, "none")
    wanted: Mapping[str, tuple[str, str | None]] = {
        "topologyManagerPolicy": (node.topology_policy, wish.topology_policy),
        "topologyManagerScope": (node.topology_scope, wish.scope),
        "cpuManagerPolicy": (node.cpu_policy, wish.cpu_policy or (STATIC if pinned else None)),
        "memoryManagerPolicy": (node.memory_policy, wish.memory_policy),
    }
    for field, (is_now, asked) in wanted.items():
        if asked is not None and is_now != asked:
            yield Departure(field, is_now or None, asked)


def _others(wanted: _Wanted, node: Node, section: bytes | None) -> tuple[Departure, ...]:
    """Options and reservations. Of a node that tells nothing they are unknown as far as something is wanted of them."""
    if section is None:
        return compared.got(
            (wanted.key, None), lambda: tuple(_unknown(differing.differences(wanted.wish, {}, None)))
        )
    content = hashlib.blake2b(section, digest_size=16).digest()
    return compared.got((wanted.key, content, node.numa_nodes), lambda: _compared(wanted.wish, node, section))


def _compared(wish: Wish, node: Node, section: bytes) -> tuple[Departure, ...]:
    told = _told.decode(section)
    settings = {name: setting.value for name, setting in told.settings.items()}
    found = differing.differences(wish, settings, node.numa_nodes)
    return tuple(
        Departure(
            each.field, None if told.unread and _field(each) not in settings else each.is_now, each.wanted
        )
        for each in found
    )


def _unknown(found: Iterable[Difference]) -> Iterable[Departure]:
    return (Departure(each.field, None, each.wanted) for each in found)


def _field(of: Difference) -> str:
    return of.field.partition(".")[0]


def counts(standing: Iterable[Standing]) -> dict[State, int]:
    """Nodes by state; every state is there."""
    found: dict[State, int] = dict.fromkeys(STATES, 0)
    for each in standing:
        found[each.state] += 1
    return found


def targets(cluster: Cluster, standing: Iterable[Standing]) -> list[TargetRow]:
    """The whole cluster first, then pools, then nodes with a policy of their own."""
    reached: dict[int, list[Standing]] = {}
    for each in standing:
        if each.applied.policy:
            reached.setdefault(each.applied.policy.pk, []).append(each)
    frozen = {name for each in frozen_pools(cluster) for name in each.pools}
    policies = {
        (each.level, each.target): each
        for each in Policy.objects.filter(cluster=cluster).select_related("pool")
    }
    found = [_target(policies.pop(("cluster", ""), None), reached, level="cluster")]
    for pool in Pool.objects.filter(cluster=cluster):
        policy = policies.pop(("pool", pool.name), None)
        found.append(
            _target(
                policy,
                reached,
                level="pool",
                name=pool.name,
                selector=pool.selector,
                frozen=pool.name in frozen,
            )
        )
    found += [
        _target(each, reached, level="node", name=each.node_name) for _key, each in sorted(policies.items())
    ]
    return found


def _target(
    policy: Policy | None,
    reached: Mapping[int, list[Standing]],
    *,
    level: str,
    name: str = "",
    selector: str = "",
    frozen: bool = False,
) -> TargetRow:
    mine = reached.get(policy.pk, []) if policy else []
    return TargetRow(
        level=level,
        name=name,
        selector=selector,
        policy=policy,
        nodes=len(mine),
        differ=sum(1 for each in mine if each.state == "differs"),
        frozen=frozen,
    )


def frozen_pools(cluster: Cluster) -> list[Overlap]:
    """Pools that have come to share nodes."""
    return overlaps(members(cluster, list(Pool.objects.filter(cluster=cluster))))


def policy_of(cluster: Cluster, level: str, name: str) -> Policy | None:
    """The policy of a target, on or off; None = nobody has written one."""
    found = Policy.objects.filter(cluster=cluster, level=level).select_related("pool")
    if level == Policy.Level.CLUSTER:
        return found.first()
    by = {"pool__name": name} if level == Policy.Level.POOL else {"node_name": name}
    return found.filter(**by).first()


def is_target(cluster: Cluster, level: str, name: str) -> bool:
    """Whether a policy can be written for it."""
    match level:
        case Policy.Level.CLUSTER:
            return True
        case Policy.Level.POOL:
            return Pool.objects.filter(cluster=cluster, name=name).exists()
    return inventory.nodes(cluster).filter(name=name).exists()
