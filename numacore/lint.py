"""What is wrong with a workload before anybody places it: findings that hold for every pod of a group.

Says nothing about what is free at the moment; that is `whatif`'s question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from numacore.diagnosis import Reason
from numacore.facts import Facts, reserved_cpus
from numacore.kubelet import resource
from numacore.kubelet.pod import Container
from numacore.manifest import POLICY_ANNOTATION, Group, aggregate

POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
"""What the annotation may say (Volcano 1.15, batch/v1alpha1 `NumaPolicy`)."""
VOLCANO = ("volcano",)
"""Schedulers that read the annotation, unless a cluster has others."""

Values = dict[str, str | int | float]
Severity = Literal["error", "warning"]
"""error: the pod will not be placed, or not as asked. warning: it is placed, and likely not as meant."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What a node can give a pod at most when nothing else runs on it, by NUMA node. None = unknown."""

    node: str
    cpus: dict[int, int] | None
    """CPUs that pods may have: online and not reserved."""
    memory: dict[int, int] | None
    """bytes that pods may have"""
    hugepages: dict[str, dict[int, int]] = {}
    """bytes by resource name (`hugepages-2Mi`)"""


def capacity(node: str, facts: Facts) -> Capacity:
    """What is known of a node's capacity, as far as NUMA is concerned: what its kubelet reserves is taken off."""
    reserved = reserved_cpus(facts.topology, facts.kubelet)
    attributes = facts.attributes
    offline = facts.topology.offline
    sizes = {numa: attributes.memory.get(numa) for numa in facts.topology.numa_ids}
    known = {numa: size for numa, size in sizes.items() if size is not None}
    pages: dict[str, dict[int, int]] = {}
    for numa, pools in attributes.hugepages.items():
        for pool in pools:
            name = resource.huge_page_resource(pool.page_size)
            pages.setdefault(name, {})[numa] = pool.page_size * (pool.total or 0)
    return Capacity(
        node=node,
        cpus=None
        if reserved is None
        else {each.id: len(each.cpus - reserved - offline) for each in facts.topology.nodes},
        memory=known if len(known) == len(sizes) else None,
        hugepages=pages,
    )


class Finding(msgspec.Struct, frozen=True):
    """What is wrong, how badly, and where in the manifest."""

    severity: Severity
    field: str
    reason: Reason


def lint(group: Group, nodes: Sequence[Capacity], schedulers: Sequence[str] = VOLCANO) -> tuple[Finding, ...]:
    """Everything that is wrong with a group of pods, in the order of its manifest. Without nodes, sizes are not judged."""
    return (
        *_annotation(group),
        *_scheduler(group, schedulers),
        *_class(group),
        *_whole_cpus(group),
        *_sizes(group, nodes),
        *_huge_pages(group, nodes),
    )


def asks_for_alignment(group: Group) -> bool:
    return group.policy not in ("", "none")


def _annotation(group: Group) -> Iterator[Finding]:
    path = _annotation_path(group)
    if group.misplaced_policy:
        yield Finding(
            "error",
            f"metadata.annotations.{POLICY_ANNOTATION}",
            Reason("policy-misplaced", {"policy": group.misplaced_policy, "field": path}),
        )
    if group.policy and group.policy not in POLICIES:
        near = next((each for each in POLICIES if each == _plain(group.policy)), "")
        code = "policy-case" if near else "policy-unknown"
        values: Values = {"policy": group.policy, "policies": ", ".join(POLICIES)}
        yield Finding("error", path, Reason(code, values | ({"meant": near} if near else {})))


def _annotation_path(group: Group) -> str:
    if group.task:
        return group.where.removesuffix("template.spec") + "topologyPolicy"
    return group.where.removesuffix("spec") + f"metadata.annotations.{POLICY_ANNOTATION}"


def _plain(policy: str) -> str:
    return "-".join(policy.lower().replace("_", "-").split())


def _scheduler(group: Group, schedulers: Sequence[str]) -> Iterator[Finding]:
    if asks_for_alignment(group) and group.scheduler not in schedulers:
        yield Finding(
            "error",
            f"{group.where}.schedulerName",
            Reason(
                "scheduler-blind",
                {
                    "scheduler": group.scheduler,
                    "policy": group.policy,
                    "schedulers": ", ".join(schedulers) or "-",
                },
            ),
        )


def _class(group: Group) -> Iterator[Finding]:
    """Why the pod is not Guaranteed, for each container and resource that spoils it. A pod that has resources as a whole is
    classed by them."""
    if not asks_for_alignment(group):
        return
    whole = group.pod.resources
    if whole is not None and group.pod.asks_as_a_whole:
        owner = Container("", whole.requests, whole.limits)
        yield from _not_guaranteed(group, owner, f"{group.where}.resources")
        return
    for container, path in _with_paths(group):
        yield from _not_guaranteed(group, container, f"{path}.resources")


def _not_guaranteed(group: Group, owner: Container, path: str) -> Iterator[Finding]:
    """Rule: Guaranteed wants a CPU and a memory limit in every container, each equal to its request (apis/core/v1/helper/qos)."""
    for name in (resource.CPU, resource.MEMORY):
        limit, request = owner.limit(name), owner.request(name)
        values: Values = {"resource": name, "policy": group.policy}
        if owner.sidecar:
            values["sidecar"] = owner.name
        if not limit.amount:
            yield Finding("error", f"{path}.limits.{name}", Reason("not-guaranteed-no-limit", values))
        elif limit.amount != request.amount:
            shown: Values = {
                "request": owner.requests.get(name, "0"),
                "limit": owner.limits[name],
            }
            yield Finding(
                "error", f"{path}.requests.{name}", Reason("not-guaranteed-unequal", values | shown)
            )


def _whole_cpus(group: Group) -> Iterator[Finding]:
    """Containers that get no CPUs of their own although the pod asks for alignment (policy_static.go `guaranteedCPUs`)."""
    if not asks_for_alignment(group):
        return
    others_pinned = any(_pins(each) for each in group.pod.in_order())
    for container, path in _with_paths(group):
        cpus = container.request(resource.CPU)
        field = f"{path}.resources.requests.cpu"
        if not cpus.amount and container.limits.get(resource.CPU) is not None:
            yield Finding("warning", field, Reason("cpu-zero", {"container": container.name}))
        elif cpus.amount and not cpus.whole:
            values: Values = {
                "container": container.name,
                "cpus": container.requests[resource.CPU],
            }
            code = "sidecar-fraction" if container.sidecar and others_pinned else "cpu-fraction"
            yield Finding("warning", field, Reason(code, values))


def _pins(container: Container) -> bool:
    cpus = container.request(resource.CPU)
    return cpus.amount > 0 and cpus.whole


def _with_paths(group: Group) -> Iterator[tuple[Container, str]]:
    for key, containers in (("initContainers", group.pod.init), ("containers", group.pod.containers)):
        for index, container in enumerate(containers):
            yield container, f"{group.where}.{key}[{index}]"


def _sizes(group: Group, nodes: Sequence[Capacity]) -> Iterator[Finding]:
    """Requests that no node, or no single NUMA node, could ever serve. Judged only where every node's capacity is known."""
    for name in (resource.CPU, resource.MEMORY):
        found = [each.cpus if name == resource.CPU else each.memory for each in nodes]
        known = [each for each in found if each is not None]
        if known and len(known) == len(found):
            most = max(sum(each.values()) for each in known)
            widest = max(max(each.values(), default=0) for each in known)
            yield from _larger_than_node(group, name, most)
            yield from _larger_than_numa(group, name, widest, most)


def _larger_than_node(group: Group, name: str, most: int) -> Iterator[Finding]:
    total = aggregate(group.pod.init, group.pod.containers, name)
    if total.amount > most:
        values: Values = {"resource": name, "asked": str(total), "most": most}
        yield Finding("error", f"{group.where}.containers", Reason("larger-than-node", values))


def _larger_than_numa(group: Group, name: str, widest: int, most: int) -> Iterator[Finding]:
    """Matters only to a pod that asks for alignment; under single-numa-node such a pod is refused everywhere."""
    if not asks_for_alignment(group):
        return
    severity: Severity = "error" if group.policy == "single-numa-node" else "warning"
    for container, path in _with_paths(group):
        if widest < container.request(name).amount <= most:
            values: Values = {
                "container": container.name,
                "resource": name,
                "asked": container.requests[name],
                "most": widest,
            }
            field = f"{path}.resources.requests.{name}"
            yield Finding(severity, field, Reason("larger-than-numa", values))


def _huge_pages(group: Group, nodes: Sequence[Capacity]) -> Iterator[Finding]:
    """Huge pages of a size that no node has."""
    if not nodes:
        return
    offered = {name for node in nodes for name, by_numa in node.hugepages.items() if any(by_numa.values())}
    for container, path in _with_paths(group):
        for name in container.requests:
            if name.startswith(resource.HUGE_PAGES) and name not in offered:
                yield Finding(
                    "error",
                    f"{path}.resources.requests.{name}",
                    Reason("hugepages-nowhere", {"container": container.name, "resource": name}),
                )
