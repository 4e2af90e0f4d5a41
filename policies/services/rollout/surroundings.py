"""What of the cluster decides about a plan beside the nodes' kubelets: where pods are and who lets them go, as the API server says now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from django.conf import settings
from django.db.models import Sum

from monitoring.models import Cluster, KubernetesNode, Pod
from numacore import quantity
from numacore.diagnosis import Reason
from numacore.quantity import QuantityError
from policies.gateway import Hands
from policies.gateway.drains import Budget, LivePod
from policies.plan import PlannedNode

FEW = 40
"""Up to so many nodes are asked for their pods one by one, more by one list of all pods."""
NAMED = 10


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """`control_plane`: names of its nodes. `pods`: those of the asked nodes that have not ended, by node."""

    control_plane: frozenset[str]
    nodes: int
    pods: Mapping[str, Sequence[LivePod]]
    budgets: Sequence[Budget]


def seen(hands: Hands, names: Sequence[str]) -> Surroundings:
    """Raises ApiError."""
    wanted = set(names)
    live = list(hands.nodes.all())
    pods: dict[str, list[LivePod]] = {name: [] for name in wanted}
    listed: Iterable[LivePod]
    if len(wanted) <= FEW:
        listed = (pod for name in sorted(wanted) for pod in hands.drains.pods_on(name))
    else:
        listed = hands.drains.every_pod()
    for pod in listed:
        if pod.node in wanted and not pod.ended:
            pods[pod.node].append(pod)
    return Surroundings(
        control_plane=frozenset(each.name for each in live if each.control_plane),
        nodes=len(live),
        pods=pods,
        budgets=hands.drains.budgets(),
    )


def is_own(pod: LivePod) -> bool:
    """Of numaweb itself: nobody would be left to bring the node back if it waited for a place."""
    return pod.namespace == settings.NUMAWEB_NAMESPACE


def moves(pod: LivePod) -> bool:
    """Whether a drain asks it to leave."""
    return not (pod.ended or pod.stays or is_own(pod))


def with_pods(node: PlannedNode, around: Surroundings, *, drain: bool) -> PlannedNode:
    """What a drain does to a node's pods."""
    pods = around.pods.get(node.name, ())
    stays = [each for each in pods if not moves(each)]
    return msgspec.structs.replace(
        node,
        moved=sum(map(moves, pods)) if drain else 0,
        stays=tuple(_why_it_stays(each) for each in stays) if drain else (),
        last=any(is_own(each) and not each.stays for each in pods),
    )


def _why_it_stays(pod: LivePod) -> Reason:
    code = "static-pod" if pod.mirror else "daemonset" if pod.stays else "own-pod"
    return Reason(code, {"pod": pod.key})


def warnings(
    cluster: Cluster, nodes: Sequence[PlannedNode], around: Surroundings, *, drain: bool
) -> Iterable[Reason]:
    """Of the whole plan."""
    if around.nodes == 1:
        yield Reason("single-node")
    if lost := [pod for each in nodes for pod in each.lost]:
        yield Reason("lost-pods", {"pods": named(lost)})
    if own := [each.name for each in nodes if each.last]:
        yield Reason("own-pods", {"nodes": named(own)})
    if not drain:
        return
    leaving = [pod for each in nodes for pod in around.pods.get(each.name, ()) if moves(pod)]
    yield from _unwilling(leaving, around.budgets)
    yield from _missing_capacity(cluster, nodes)


def _unwilling(leaving: Sequence[LivePod], budgets: Sequence[Budget]) -> Iterable[Reason]:
    for budget in budgets:
        covered = [pod.key for pod in leaving if budget.allows < 1 and budget.covers(pod)]
        if covered:
            guard = f"{budget.namespace}/{budget.name}"
            yield Reason("blocking-budget", {"budget": guard, "pods": named(covered)})
    if local := [pod.key for pod in leaving if pod.local]:
        yield Reason("local-data", {"pods": named(local)})
    if bare := [pod.key for pod in leaving if not pod.owner]:
        yield Reason("bare-pods", {"pods": named(bare)})


def _missing_capacity(cluster: Cluster, nodes: Sequence[PlannedNode]) -> Iterable[Reason]:
    """The requests of a batch's pods against what the other nodes have left: the worst batch."""
    left = _left(cluster)
    for resource in ("cpu", "memory"):
        free = {name: each[resource][0] - each[resource][1] for name, each in left.items()}
        everywhere = sum(free.values())
        batches: dict[int, list[str]] = {}
        for each in nodes:
            batches.setdefault(each.batch, []).append(each.name)
        missing = {
            batch: sum(left[name][resource][1] + free[name] for name in names if name in left) - everywhere
            for batch, names in batches.items()
        }
        worst = max(missing, key=lambda batch: missing[batch], default=None)
        if worst is not None and missing[worst] > 0:
            amount = round(missing[worst], 1) if resource == "cpu" else round(missing[worst] / 2**30, 1)
            yield Reason("capacity", {"resource": resource, "batch": worst, "missing": amount})


def _left(cluster: Cluster) -> dict[str, dict[str, tuple[float, float]]]:
    """Allocatable and requested of every schedulable node, CPUs and bytes."""
    asked = Pod.objects.filter(cluster=cluster).exclude(phase__in=("Succeeded", "Failed")).order_by()
    sums = {
        row["node_name"]: (row["cpu"] or 0.0, float(row["memory"] or 0))
        for row in asked.values("node_name").annotate(cpu=Sum("cpu_request"), memory=Sum("memory_request"))
    }
    found = {}
    told = KubernetesNode.objects.filter(node__cluster=cluster, node__gone_at=None, unschedulable=False)
    for name, allocatable in told.values_list("node__name", "allocatable"):
        cpu, memory = sums.get(name, (0.0, 0.0))
        found[name] = {
            "cpu": (_amount(allocatable.get("cpu")), cpu),
            "memory": (_amount(allocatable.get("memory")), memory),
        }
    return found


def _amount(text: object) -> float:
    try:
        return float(quantity.parse(str(text)))
    except (QuantityError, ValueError):
        return 0.0


def named(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" +{len(names) - NAMED}" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
