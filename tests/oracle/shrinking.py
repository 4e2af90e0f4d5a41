"""Smaller cases that still differ: fewer steps, containers, devices, options, NUMA nodes, cores."""

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, Any]

LISTS = ("Steps", "Containers", "Init", "Devices", "Machine", "Cores", "ReservedMemory")
MAPS = ("TopologyOptions", "CPUOptions", "Gates", "HugePages", "Requests", "Limits")
OPTIONAL = ("Devices", "State", "KeepState", "PodRequests", "PodLimits", "RestartPolicy", "ReservedCPUs")


def shrunk(case: Case, differs: Callable[[Case], bool], most: int = 600) -> Case:
    """The smallest case found by leaving out one thing after the other, over and over, in at most so many tries."""
    for _ in range(most):
        smaller, tries = _one_round(case, differs, most)
        most -= tries
        if smaller == case or most < 1:
            return smaller
        case = smaller
    return case


def _one_round(case: Case, differs: Callable[[Case], bool], most: int) -> tuple[Case, int]:
    """Goes once through what can be left out; what was kept is not asked again in this round."""
    tries = kept = 0
    while tries < most:
        candidate = next(itertools.islice(candidates(case), kept, None), None)
        if candidate is None:
            break
        tries += 1
        if differs(candidate):
            case = candidate
        else:
            kept += 1
    return case, tries


def candidates(case: Case) -> Iterator[Case]:
    """Copies of the case, each without one thing; large things first."""
    for path in sorted(_removable(case), key=len):
        copied = copy.deepcopy(case)
        place = copied
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]
        _narrow_distances(copied, path)
        yield copied


def _removable(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something can be left out and a case remains."""
    if isinstance(value, dict):
        for key, inside in value.items():
            here = (*path, key)
            if key in OPTIONAL and inside:
                yield here
            if key in LISTS and isinstance(inside, list):
                fewest = 1 if key in {"Machine", "Steps", "Containers"} else 0
                if len(inside) > fewest:
                    yield from ((*here, nth) for nth in reversed(range(len(inside))))
            if key in MAPS and isinstance(inside, dict):
                yield from ((*here, name) for name in inside)
            yield from _removable(inside, here)
    elif isinstance(value, list):
        for nth, inside in enumerate(value):
            yield from _removable(inside, (*path, nth))


def _narrow_distances(case: Case, path: tuple[Any, ...]) -> None:
    """A NUMA node that goes takes its column of distances along."""
    if len(path) == 2 and path[0] == "Machine":
        for node in case["Machine"]:
            if node.get("Distances"):
                node["Distances"] = [each for nth, each in enumerate(node["Distances"]) if nth != path[1]]
