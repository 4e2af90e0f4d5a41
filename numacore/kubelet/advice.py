"""What would make a refused pod fit: a smaller request, another setting, a pod that leaves. Every piece was judged before it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Literal

import msgspec

from numacore import hints
from numacore.kubelet import cpu_manager, memory_manager, node, options, resource, topology_manager
from numacore.kubelet.errors import EndError
from numacore.kubelet.node import Node
from numacore.kubelet.pod import Container, Pod
from numacore.kubelet.resource import Quantity
from numacore.kubelet.settings import Settings
from numacore.kubelet.verdict import Verdict

MEBI = 1 << 20
_MOST_TRIALS = 128
"""Smaller requests that are tried, largest first."""

Kind = Literal["request", "setting", "leaving"]


class Fit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change that lets the pod in.

    request: `container` asks for `value` of `name`; a `step` more is refused. setting: the kubelet's field `name` becomes `value`
    ("" = an option taken out). leaving: the pod `value` goes.
    """

    kind: Kind
    name: str
    value: str
    container: str = ""
    step: str = ""


def advice(running: Node, pod: Pod, verdict: Verdict) -> tuple[Fit, ...]:
    """Changes of one thing each that make the pod fit, none for an admitted one. `running` is the node before the pod came."""
    if verdict.admitted:
        return ()
    return (
        *_smaller_requests(running, pod, verdict),
        *_other_settings(running, pod),
        *_leaving_pods(running, pod),
    )


def fits(running: Node, pod: Pod) -> bool:
    """Whether the kubelet would admit the pod."""
    return node.admit(running, pod)[1].admitted


# Smaller requests


def _smaller_requests(running: Node, pod: Pod, verdict: Verdict) -> Iterator[Fit]:
    for name in _scarce(pod, verdict):
        container = _asking(pod, verdict, name)
        fit = container and _largest_that_fits(running, pod, container, name)
        if fit:
            yield fit


def _scarce(pod: Pod, verdict: Verdict) -> list[str]:
    """Resources whose amount may decide: those that had a say, else all that the kubelet's managers count."""
    offered = [offer.resource for offer in verdict.alignments[-1].offers] if verdict.alignments else []
    asked = {name for each in pod.in_order() for name in each.limits}
    return [name for name in offered or sorted(asked) if name in asked]


def _asking(pod: Pod, verdict: Verdict, name: str) -> Container | None:
    """The container that was refused, or the one that asks for most."""
    refused = verdict.failure.container if verdict.failure else None
    asking = [each for each in pod.in_order() if each.limit(name).amount and refused in (None, each.name)]
    return max(asking, key=lambda each: each.limit(name).amount, default=None)


def _largest_that_fits(running: Node, pod: Pod, container: Container, name: str) -> Fit | None:
    """The largest smaller amount that is admitted while a step more is not."""
    step = _step(name)
    asked = container.limit(name).value
    for amount in islice(_smaller_amounts(running, name, asked, step), _MOST_TRIALS):
        if fits(running, asking_for(pod, container.name, name, amount)):
            more = asking_for(pod, container.name, name, amount + step)
            if amount + step >= asked or not fits(running, more):
                return Fit("request", name, _text(name, amount), container.name, _text(name, step))
            return None
    return None


def _step(name: str) -> int:
    if name.startswith(resource.HUGE_PAGES):
        return resource.parse(name.removeprefix(resource.HUGE_PAGES)).value
    return MEBI if name == resource.MEMORY else 1


def _smaller_amounts(running: Node, name: str, asked: int, step: int) -> Iterable[int]:
    """Amounts below the one asked for that are worth trying, largest first. What memory allows changes only where it fills
    some NUMA nodes to the brim."""
    largest = -(-asked // step) * step - step
    if not resource.is_memory(name):
        return range(largest, 0, -step)
    tables = [each.memory[name] for each in running.state.memory.nodes.values() if name in each.memory]
    brims = {
        sums // step * step
        for amounts in ([each.free for each in tables], [each.allocatable for each in tables])
        for sums in hints.subset_sums(amounts)
    }
    return sorted((each for each in brims if 0 < each <= largest), reverse=True)


def asking_for(pod: Pod, container: str, name: str, amount: int) -> Pod:
    """The pod with another amount, requested and as limit, in one container."""

    def changed(each: Container) -> Container:
        if each.name != container:
            return each
        new = {name: _text(name, amount)}
        return msgspec.structs.replace(each, requests=each.requests | new, limits=each.limits | new)

    return msgspec.structs.replace(
        pod, init=tuple(map(changed, pod.init)), containers=tuple(map(changed, pod.containers))
    )


def _text(name: str, amount: int) -> str:
    return str(Quantity(Fraction(amount), "binary" if resource.is_memory(name) else "decimal"))


# Other settings

Change = tuple[str, str, Callable[[Settings], Settings]]


def _other_settings(running: Node, pod: Pod) -> Iterator[Fit]:
    """Settings that alone would let it in, with what runs left where it is. Changing them takes a restart all the same."""
    for field, value, change in _changes(running.settings):
        if _fits_with(running, change(running.settings), pod):
            yield Fit("setting", field, value)


def _fits_with(running: Node, settings: Settings, pod: Pod) -> bool:
    try:
        return fits(node.resume(settings, running.machine, running.state), pod)
    except EndError:
        return False


def with_setting(settings: Settings, field: str, value: str) -> Settings:
    """The settings after a `Fit` of the kind setting."""
    return next(change for name, to, change in _changes(settings) if (name, to) == (field, value))(settings)


def _changes(settings: Settings) -> Iterator[Change]:
    replace = msgspec.structs.replace
    stricter = topology_manager.POLICIES.index(settings.topology_manager_policy)
    for name in reversed(topology_manager.POLICIES[:stricter]):
        yield "topologyManagerPolicy", name, lambda now, name=name: replace(now, topology_manager_policy=name)  # type: ignore[misc]
    if stricter:
        other = {topology_manager.POD: topology_manager.CONTAINER}.get(
            settings.topology_manager_scope, topology_manager.POD
        )
        yield "topologyManagerScope", other, lambda now: replace(now, topology_manager_scope=other)
    for option in (options.FULL_PCPUS_ONLY, options.DISTRIBUTE_ACROSS_NUMA):
        if option in settings.cpu_manager_policy_options:
            yield f"cpuManagerPolicyOptions.{option}", "", lambda now, option=option: _without(now, option)  # type: ignore[misc]
    if settings.memory_manager_policy == memory_manager.STATIC:
        yield (
            "memoryManagerPolicy",
            memory_manager.NONE,
            lambda now: replace(now, memory_manager_policy=memory_manager.NONE),
        )
    if settings.cpu_manager_policy == cpu_manager.STATIC:
        yield (
            "cpuManagerPolicy",
            cpu_manager.NONE,
            lambda now: replace(now, cpu_manager_policy=cpu_manager.NONE, cpu_manager_policy_options={}),
        )


def _without(settings: Settings, option: str) -> Settings:
    kept = {name: value for name, value in settings.cpu_manager_policy_options.items() if name != option}
    return msgspec.structs.replace(settings, cpu_manager_policy_options=kept)


# Pods that leave


def _leaving_pods(running: Node, pod: Pod) -> Iterator[Fit]:
    for uid in sorted(running.state.pods):
        if uid != pod.uid and fits(node.remove(running, uid), pod):
            yield Fit("leaving", "pod", uid)
