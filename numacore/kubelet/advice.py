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


class Advice(msgspec.Struct, frozen=True):
    """`fits`: changes that were judged. `complete` False = the search for smaller requests stopped early: there may be others that let the pod in."""

    fits: tuple[Fit, ...] = ()
    complete: bool = True


def advice(running: Node, pod: Pod, verdict: Verdict) -> Advice:
    """Changes of one thing each that make the pod fit, none for an admitted one. `running` is the node before the pod came."""
    if verdict.admitted:
        return Advice()
    smaller = _smaller_requests(running, pod, verdict)
    others = (*_other_settings(running, pod), *_leaving_pods(running, pod))
    return Advice(smaller.fits + others, smaller.complete)


def fits(running: Node, pod: Pod) -> bool:
    """Whether the kubelet would admit the pod."""
    return node.admit(running, pod)[1].admitted


# Smaller requests

Admits = Callable[[Pod], bool]


class _EnoughError(Exception):
    """As many requests were tried as are worth the time."""


class _Trials:
    """Judges at most so many pods, then raises _EnoughError."""

    def __init__(self, admits: Admits, nodes: int) -> None:
        """What a trial costs grows with 2 to the power of the NUMA nodes."""
        self._admits = admits
        self.left = max(_FEWEST_TRIALS, min(_MOST_TRIALS, 1 << 20 >> nodes))

    def admits(self, pod: Pod) -> bool:
        if not self.left:
            raise _EnoughError
        self.left -= 1
        return self._admits(pod)


def _smaller_requests(running: Node, pod: Pod, verdict: Verdict) -> Advice:
    trials = _Trials(lambda less: fits(running, less), len(running.machine.nodes))
    policy = running.settings.topology_manager_policy
    refused = verdict.failure.container if verdict.failure else None
    return _searched(
        [
            [
                _Search(pod, owner, name, trials, _brims(running, name), _bound(pod, owner, name, verdict, policy))
                for owner in _asking(pod, name, refused)
            ]
            for name in _scarce(pod, verdict)
        ],
        trials,
    )  # fmt: skip


def smaller_request(pod: Pod, name: str, admits: Admits, nodes: int) -> Advice:
    """The container that asks for most of those of which less of `name` lets the pod in, by somebody else's word; at most one.
    `nodes`: NUMA nodes of the machine."""
    trials = _Trials(admits, nodes)
    return _searched([[_Search(pod, owner, name, trials) for owner in _asking(pod, name, None)]], trials)


def _scarce(pod: Pod, verdict: Verdict) -> list[str]:
    """Resources whose amount may decide: those that had a say, else all that the kubelet's managers count."""
    offered = [offer.resource for offer in verdict.alignments[-1].offers] if verdict.alignments else []
    asked = {name for each in _owners(pod) for name in each.limits}
    return [name for name in offered or sorted(asked) if name in asked]


def _owners(pod: Pod) -> list[Container]:
    """Whoever asks for something: the containers, and the pod as a whole under an empty name."""
    whole = [Container("", pod.resources.requests, pod.resources.limits)] if pod.resources else []
    return [*whole, *pod.in_order()]


def _asking(pod: Pod, name: str, refused: str | None) -> list[Container]:
    """Those that ask for a resource, the `refused` one before those that ask for more."""
    asking = [each for each in _owners(pod) if each.limit(name).amount]
    return sorted(asking, key=lambda each: (each.name != refused, -each.limit(name).amount))


def _searched(resources: list[list[_Search]], trials: _Trials) -> Advice:
    """For each resource the first container of which less lets the pod in. Where trials may not suffice, what takes few comes first."""
    found: dict[int, Fit] = {}
    ways: tuple[Callable[[_Search], Fit | None], ...] = (_Search.largest,)
    if sum(len(each.tries) for searches in resources for each in searches) > trials.left:
        ways = (_Search.quick, _Search.largest)
    try:
        for way in ways:
            for at, searches in enumerate(resources):
                if fit := next(filter(None, map(way, searches)), None):
                    found[at] = fit
    except _EnoughError:
        return Advice(tuple(found[at] for at in sorted(found)), complete=False)
    return Advice(tuple(found[at] for at in sorted(found)))


class _Search:
    """One container's smaller amounts of one resource, in steps: an amount that is admitted while a step more is refused."""

    def __init__(
        self,
        pod: Pod,
        owner: Container,
        name: str,
        trials: _Trials,
        brims: Iterable[int] = (),
        bound: int | None = None,
    ) -> None:
        """`brims`: amounts at which what the node can do changes; `bound`: more than that is refused in any case."""
        self._pod, self._owner, self._name, self._trials = pod, owner, name, trials
        self._step = _step(name)
        asked = owner.limit(name)
        self._asked = -(-asked.value // self._step)
        self._whole = self._asked * self._step == asked.amount
        self._above = self._asked if bound is None else min(self._asked, bound // self._step + 1)
        self._known = {self._asked: False} if self._whole else {}
        near = () if resource.is_memory(name) else range(self._above - _CLOSE, self._above)
        likely = (self._above - 1, *near, *(brim // self._step for brim in brims))
        self.tries = _steps_to_try(self._above - 1, _least(pod, owner, name, self._step), likely)

    def largest(self) -> Fit | None:
        """Below the largest of all that are tried."""
        if self._next_whole_would_do():
            return None
        at = next((at for at, steps in enumerate(self.tries) if self._admitted(steps)), None)
        return None if at is None else self._below(at)

    def quick(self) -> Fit | None:
        """As if what is admitted stayed so with less: finds one in few trials or, rarely, none where there is one."""
        at = next((at for at in range(len(self.tries))[-2:][::-1] if self._admitted(self.tries[at])), None)
        if at is None or self._next_whole_would_do():
            return None
        refused = -1
        while at - refused > 1:
            between = (at + refused) // 2
            at, refused = (between, refused) if self._admitted(self.tries[between]) else (at, between)
        return self._below(at)

    def _below(self, at: int) -> Fit | None:
        """From an admitted amount up to where a step more is refused."""
        steps, above = self.tries[at], self.tries[at - 1] if at else self._above
        if self._admitted(above):
            steps, above = above, self._asked
        if resource.is_memory(self._name) and above - steps > 1:
            # What fills a NUMA node is mostly full.
            steps, above = (steps + 1, above) if self._admitted(steps + 1) else (steps, steps + 1)
        while above - steps > 1:
            between = (steps + above) // 2
            steps, above = (between, above) if self._admitted(between) else (steps, between)
        value, step = _text(self._name, steps * self._step), _text(self._name, self._step)
        return Fit("request", self._name, value, self._owner.name, step)

    def _next_whole_would_do(self) -> bool:
        """Of 2.5 refused CPUs 3 may be admitted, and then it cannot be said that a step more than 2 is refused."""
        return self._admitted(self._asked)

    def _admitted(self, steps: int) -> bool:
        if steps not in self._known:
            less = asking_for(self._pod, self._owner.name, self._name, steps * self._step)
            self._known[steps] = self._trials.admits(less)
        return self._known[steps]


def _bound(pod: Pod, owner: Container, name: str, verdict: Verdict, policy: str) -> int | None:
    """What the last merge says of one container's amount: more than this is refused too. 0 = another resource is lacking by itself;
    None = it says nothing.

    Both strict policies need a mask that each resource prefers (`filterSingleNumaHints`, `canAdmitPodResult`), and no provider looks at another's
    amounts. The memory manager provides for all its kinds at once.
    """
    merge = verdict.alignments[-1] if verdict.alignments else None
    if merge is None or policy == topology_manager.BEST_EFFORT or pod.resources or pod.init:
        return None
    if merge.container not in (None, owner.name):
        return None
    single = policy == topology_manager.SINGLE_NUMA_NODE
    others = [
        each.hints
        for each in merge.offers
        if each.hints is not None and not _one_provider(each.resource, name)
    ]
    if others and not any(mask.bit_count() == 1 or not single for mask in hints.agreed_masks(others)):
        return 0
    own = next((each for each in merge.offers if each.resource == name), None)
    if own is None or not own.free or (own.hints is None and merge.container is None):
        return None  # memory without any mask is left to the containers' own allocations
    return (max if single else sum)(own.free.values())


def _one_provider(one: str, other: str) -> bool:
    return one == other or (resource.is_memory(one) and resource.is_memory(other))


def _least(pod: Pod, owner: Container, name: str, step: int) -> int:
    """Steps below which nobody may ask: a pod as a whole asks for no less than its containers do."""
    return 1 if owner.name else max(1, -(-device_manager.pod_limit(pod, name) // step))


def _steps_to_try(most: int, least: int, likely: Iterable[int]) -> list[int]:
    """Numbers of steps, largest first: counts close by, what fills NUMA nodes to the brim, and halves, because other containers
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
