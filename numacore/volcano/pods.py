"""What Volcano's plugin reads of a pod.

Amounts are exact: CPUs and bytes as `Fraction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Literal

import msgspec

from numacore.volcano import topology

CPU = "cpu"
_COUNTED = (CPU, "memory")

Qos = Literal["Guaranteed", "Burstable", "BestEffort"]
NoHints = Literal["", "no-request", "zero", "fraction"]


class Container(msgspec.Struct, frozen=True):
    """Requests and limits as the API server holds them: with limits as requests where none were given."""

    name: str
    requests: Mapping[str, Fraction] = {}
    limits: Mapping[str, Fraction] = {}


class Pod(msgspec.Struct, frozen=True):
    """`policy`: the text of the annotation `volcano.sh/numa-topology-policy`, empty = absent; any text is taken as it is."""

    containers: tuple[Container, ...]
    policy: str = ""
    init: tuple[Container, ...] = ()

    @property
    def wants_policy(self) -> bool:
        return self.policy not in {"", "none"}


def qos(pod: Pod) -> Qos:
    """kubernetes 1.35, pkg/apis/core/v1/helper/qos `ComputePodQOS`, without pod-level resources.

    The sums over containers are compared, not each container; zero amounts count as absent.
    """
    every = (*pod.containers, *pod.init)
    requests, limits = _sums(each.requests for each in every), _sums(each.limits for each in every)
    if not requests and not limits:
        return "BestEffort"
    limited = all(each.limits.get(name, 0) > 0 for each in every for name in _COUNTED)
    return "Guaranteed" if limited and requests == limits else "Burstable"


def _sums(lists: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    sums: dict[str, Fraction] = {}
    for amounts in lists:
        for name in _COUNTED:
            if (amount := amounts.get(name, Fraction(0))) > 0:
                sums[name] = sums.get(name, Fraction(0)) + amount
    return sums


def whole_cpus(container: Container) -> tuple[int, NoHints]:
    """How many CPUs the container asks for as whole ones, and why it gets no hints where it asks for none.

    Volcano, cpu_mng.go `guaranteedCPUs`: an amount is whole when rounding up to CPUs and to thousandths agree, so 999.9m is 1.
    """
    amount = container.requests.get(CPU)
    if amount is None:
        return 0, "no-request"
    value = -(-amount.numerator // amount.denominator)
    if value * 1000 != topology.milli(amount):
        return 0, "fraction"
    return value, "" if value else "zero"
