"""What would make a refused pod fit: a smaller request, another setting, a pod that leaves. Every piece was judged before it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import accumulate
from typing import Literal

import msgspec

from numacore import hints
from numacore.kubelet import (
    cpu_manager,
    device_manager,
    memory_manager,
    node,
    options,
    resource,
    topology_manager,
)
from numacore.kubelet.errors import EndError
from numacore.kubelet.node import Node
from numacore.kubelet.pod import Container, Pod, PodResources
from numacore.kubelet.resource import Quantity
from numacore.kubelet.settings import Settings
from numacore.kubelet.verdict import Verdict

MEBI = 1 << 20
_MOST_TRIALS = 256
_FEWEST_TRIALS = 24
_CLOSE = 32
"""CPUs and devices fewer that are tried one by one: with whole cores, one fewer may be refused where two fewer are admitted."""
_FEW_NODES = 4
"""Up to this many NUMA nodes all their sums are tried; of more only those of the fullest and the emptiest."""

Kind = Literal["request", "setting", "leaving"]


class Fit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change that lets the pod in.

    request: `container` ("" = the pod as a whole) asks for `value` of `name`; a `step` more is refused. setting: the kubelet's field `name` becomes `value`
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

Admits = Callable[[Pod], bool]


class _EnoughError(Exception):
    """As many requests were tried as are worth the time."""


def _trials(nodes: int) -> int:
    """Requests that are tried for one pod: what a trial costs grows with 2 to the power of the NUMA nodes."""
    return max(_FEWEST_TRIALS, min(_MOST_TRIALS, 1 << 20 >> nodes))


def _counted(admits: Admits, most: int) -> Admits:
    """Asks at most so often, then raises _EnoughError: a piece of advice that was not tried to its end is none."""
    left = iter(range(most))

    def asked(pod: Pod) -> bool:
        if next(left, None) is None:
            raise _EnoughError
        return admits(pod)

    return asked


def _smaller_requests(running: Node, pod: Pod, verdict: Verdict) -> Iterator[Fit]:
    trials = _trials(len(running.machine.nodes))
    admits = _counted(lambda less: fits(running, less), trials)
    close = min(_CLOSE, trials // 8)
    try:
        for name in _scarce(pod, verdict):
            brims = _brims(running, name)
            yield from _smaller_request(pod, name, admits, _refused(verdict), brims, close)
    except _EnoughError:
        return


def _scarce(pod: Pod, verdict: Verdict) -> list[str]:
    """Resources whose amount may decide: those that had a say, else all that the kubelet's managers count."""
    offered = [offer.resource for offer in verdict.alignments[-1].offers] if verdict.alignments else []
    asked = {name for each in _owners(pod) for name in each.limits}
    return [name for name in offered or sorted(asked) if name in asked]


def _refused(verdict: Verdict) -> str | None:
    return verdict.failure.container if verdict.failure else None


def _owners(pod: Pod) -> list[Container]:
    """Whoever asks for something: the containers, and the pod as a whole under an empty name."""
    whole = [Container("", pod.resources.requests, pod.resources.limits)] if pod.resources else []
    return [*whole, *pod.in_order()]


def smaller_request(pod: Pod, name: str, admits: Admits, nodes: int) -> tuple[Fit, ...]:
    """The container that asks for most of those of which less of `name` lets the pod in, by somebody else's word; at most one.
    `nodes`: NUMA nodes of the machine."""
    try:
        return _smaller_request(pod, name, _counted(admits, _trials(nodes)), None, (), _CLOSE)
    except _EnoughError:
        return ()


def _smaller_request(
    pod: Pod, name: str, admits: Admits, refused: str | None, brims: Iterable[int], close: int
) -> tuple[Fit, ...]:
    """The first container, the `refused` one before those that ask for more. `brims`: amounts at which what the node can do changes;
    `close`: so many fewer are tried one by one."""
    asking = [each for each in _owners(pod) if each.limit(name).amount]
    asking.sort(key=lambda each: (each.name != refused, -each.limit(name).amount))
    for owner in asking:
        if fit := _frontier(pod, owner, name, admits, brims, close):
            return (fit,)
    return ()


def _frontier(
    pod: Pod, owner: Container, name: str, admits: Admits, brims: Iterable[int], close: int
) -> Fit | None:
    """An amount that is admitted while a step more is not: the largest admitted one of those tried, then halved towards the
    refused one above it."""
    step = _step(name)
    asked = owner.limit(name)
    above = -(-asked.value // step)

    def admitted(steps: int) -> bool:
        return admits(asking_for(pod, owner.name, name, steps * step))

    if above * step != asked.amount and admitted(above):
        return None
    near = range(above - close, above) if not resource.is_memory(name) else ()
    least = _least(pod, owner, name, step)
    for steps in _steps_to_try(above - 1, least, (*near, *(brim // step for brim in brims))):
        if admitted(steps):
            while above - steps > 1:
                between = (steps + above) // 2
                steps, above = (between, above) if admitted(between) else (steps, between)
            return Fit("request", name, _text(name, steps * step), owner.name, _text(name, step))
        above = steps
    return None


def _least(pod: Pod, owner: Container, name: str, step: int) -> int:
    """Steps below which nobody may ask: a pod as a whole asks for no less than its containers do."""
    return 1 if owner.name else max(1, -(-device_manager.pod_limit(pod, name) // step))


def _steps_to_try(most: int, least: int, likely: Iterable[int]) -> list[int]:
    """Numbers of steps, largest first: counts close by and what fills NUMA nodes to the brim, and halves, because other containers
    may leave less."""
    halves = (most >> power for power in range(most.bit_length()))
    return sorted({each for each in (*likely, *halves) if least <= each <= most}, reverse=True)


def _brims(running: Node, name: str) -> set[int]:
    """Bytes that some NUMA nodes have together: what memory allows changes only where it fills them to the brim."""
    tables = [each.memory[name] for each in running.state.memory.nodes.values() if name in each.memory]
    amounts = ([each.free for each in tables], [each.allocatable for each in tables])
    if len(tables) <= _FEW_NODES:
        return {each for some in amounts for each in hints.subset_sums(some)}
    return {
        each for some in amounts for down in (True, False) for each in accumulate(sorted(some, reverse=down))
    }


def _step(name: str) -> int:
    if name.startswith(resource.HUGE_PAGES):
        return resource.parse(name.removeprefix(resource.HUGE_PAGES)).value
    return MEBI if name == resource.MEMORY else 1


def asking_for(pod: Pod, container: str, name: str, amount: int) -> Pod:
    """The pod with another amount, requested and as limit, in one container; "" = of the pod as a whole."""
    new = {name: _text(name, amount)}
    if not container and pod.resources:
        whole = PodResources(pod.resources.requests | new, pod.resources.limits | new)
        return msgspec.structs.replace(pod, resources=whole)

    def changed(each: Container) -> Container:
        if each.name != container:
            return each
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
