"""Policy options of the CPU manager and the topology manager, and since when each may be used.

Kubelet 1.37: cm/cpumanager/policy_options.go, cm/topologymanager/policy_options.go; earlier maturity from the KEPs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from numacore.kubelet.errors import StartError
from numacore.kubelet.settings import Settings

Maturity = Literal["alpha", "beta", "stable"]

FULL_PCPUS_ONLY = "full-pcpus-only"
DISTRIBUTE_ACROSS_NUMA = "distribute-cpus-across-numa"
ALIGN_BY_SOCKET = "align-by-socket"
DISTRIBUTE_ACROSS_CORES = "distribute-cpus-across-cores"
STRICT_RESERVATION = "strict-cpu-reservation"
PREFER_ALIGN_UNCORE = "prefer-align-cpus-by-uncorecache"
PREFER_CLOSEST = "prefer-closest-numa-nodes"
MAX_ALLOWABLE_NODES = "max-allowable-numa-nodes"

DEFAULT_MAX_NODES = 8
_INT64 = (-(1 << 63), (1 << 63) - 1)

_CPU: dict[str, dict[Maturity, int]] = {
    FULL_PCPUS_ONLY: {"alpha": 22, "beta": 23, "stable": 33},
    DISTRIBUTE_ACROSS_NUMA: {"alpha": 23, "beta": 33},
    ALIGN_BY_SOCKET: {"alpha": 25},
    DISTRIBUTE_ACROSS_CORES: {"alpha": 31},
    STRICT_RESERVATION: {"alpha": 32, "beta": 33, "stable": 35},
    PREFER_ALIGN_UNCORE: {"alpha": 32, "beta": 34, "stable": 36},
}
_TOPOLOGY: dict[str, dict[Maturity, int]] = {
    PREFER_CLOSEST: {"alpha": 26, "beta": 28, "stable": 32},
    MAX_ALLOWABLE_NODES: {"beta": 31, "stable": 35},
}
"""Minor version since which an option has a maturity."""


class StaticPolicyOptions(msgspec.Struct, frozen=True):
    """`StaticPolicyOptions` of the static CPU manager."""

    full_pcpus_only: bool = False
    distribute_across_numa: bool = False
    align_by_socket: bool = False
    distribute_across_cores: bool = False
    strict_reservation: bool = False
    prefer_align_uncore: bool = False


class TopologyPolicyOptions(msgspec.Struct, frozen=True):
    """`PolicyOptions` of the topology manager."""

    prefer_closest: bool = False
    max_nodes: int = DEFAULT_MAX_NODES


def cpu_maturity(option: str, minor: int) -> Maturity | None:
    """Maturity of a CPU manager option in a minor version; None = that kubelet does not know it."""
    return _maturity(_CPU, option, minor)


def topology_maturity(option: str, minor: int) -> Maturity | None:
    """The same of a topology manager option."""
    return _maturity(_TOPOLOGY, option, minor)


def _maturity(table: dict[str, dict[Maturity, int]], option: str, minor: int) -> Maturity | None:
    reached = [maturity for maturity, since in table.get(option, {}).items() if since <= minor]
    return reached[-1] if reached else None


def static_policy_options(settings: Settings) -> StaticPolicyOptions:
    """`NewStaticPolicyOptions`. Raises StartError; which of several wrong options is named first is open."""
    on = _read(settings, settings.cpu_manager_policy_options, _cpu_option)
    options = StaticPolicyOptions(
        full_pcpus_only=bool(on.get(FULL_PCPUS_ONLY)),
        distribute_across_numa=bool(on.get(DISTRIBUTE_ACROSS_NUMA)),
        align_by_socket=bool(on.get(ALIGN_BY_SOCKET)),
        distribute_across_cores=bool(on.get(DISTRIBUTE_ACROSS_CORES)),
        strict_reservation=bool(on.get(STRICT_RESERVATION)),
        prefer_align_uncore=bool(on.get(PREFER_ALIGN_UNCORE)),
    )
    for first, second in EXCLUSIVE:
        if on.get(first) and on.get(second):
            raise StartError(f"static policy options {first} and {second} can not be used at the same time")
    return options


EXCLUSIVE = (
    (FULL_PCPUS_ONLY, DISTRIBUTE_ACROSS_CORES),
    (DISTRIBUTE_ACROSS_NUMA, DISTRIBUTE_ACROSS_CORES),
    (PREFER_ALIGN_UNCORE, DISTRIBUTE_ACROSS_CORES),
    (PREFER_ALIGN_UNCORE, DISTRIBUTE_ACROSS_NUMA),
)
"""Options of the CPU manager that cannot both be on."""


def topology_policy_options(settings: Settings) -> TopologyPolicyOptions:
    """`NewPolicyOptions`. Raises StartError; which of several wrong options is named first is open."""
    read = _read(settings, settings.topology_manager_policy_options, _topology_option)
    return TopologyPolicyOptions(
        prefer_closest=bool(read.get(PREFER_CLOSEST, False)),
        max_nodes=int(read.get(MAX_ALLOWABLE_NODES, DEFAULT_MAX_NODES)),
    )


def _read(
    settings: Settings, given: Mapping[str, str], read: Callable[[Settings, str, str], int]
) -> dict[str, int]:
    """Every option read on its own; the kubelet stops at the first that fails, and its order is Go's map order."""
    values: dict[str, int] = {}
    failures: list[str] = []
    for name, text in sorted(given.items()):
        try:
            values[name] = read(settings, name, text)
        except StartError as error:
            failures.append(str(error))
    if failures:
        raise StartError(failures[0], tuple(failures[1:]))
    return values


def _cpu_option(settings: Settings, name: str, text: str) -> int:
    maturity = cpu_maturity(name, settings.minor)
    if maturity is None:
        raise StartError(f"unknown CPU Manager Policy option: {quoted(name)}")
    if maturity != "stable" and not settings.enabled(f"CPUManagerPolicy{maturity.title()}Options"):
        raise StartError(
            f"CPU Manager Policy {maturity.title()}-level Options not enabled, but option {quoted(name)} provided"
        )
    return parse_bool(name, text)


def _topology_option(settings: Settings, name: str, text: str) -> int:
    maturity = topology_maturity(name, settings.minor)
    if maturity is None:
        raise StartError(f"unknown Topology Manager Policy option: {quoted(name)}")
    if maturity != "stable" and not settings.enabled(f"TopologyManagerPolicy{maturity.title()}Options"):
        raise StartError(
            f"topology manager policy {maturity}-level options not enabled, but option {quoted(name)} provided"
        )
    return _max_nodes(text) if name == MAX_ALLOWABLE_NODES else parse_bool(name, text)


def _max_nodes(text: str) -> int:
    fault = f'unable to convert policy option to integer "{MAX_ALLOWABLE_NODES}": strconv.Atoi: parsing {quoted(text)}: '
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise StartError(fault + "invalid syntax")
    if not _INT64[0] <= int(text) <= _INT64[1]:
        raise StartError(fault + "value out of range")
    if int(text) < DEFAULT_MAX_NODES:
        raise StartError(
            f'the minimum value of "{MAX_ALLOWABLE_NODES}" should not be less than {DEFAULT_MAX_NODES}'
        )
    return int(text)


def parse_bool(name: str, text: str) -> bool:
    """Go's strconv.ParseBool, as the options use it."""
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise StartError(
        f"bad value for option {quoted(name)}: strconv.ParseBool: parsing {quoted(text)}: invalid syntax"
    )


def quoted(text: str) -> str:
    """Go's `%q` for the texts that stand in settings."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(each, each) for each in text) + '"'
