"""Random machines: sizes that people have, and shapes that programs trip over."""

import math
from random import Random
from typing import Any

Node = dict[str, Any]

MIB, GIB = 1 << 20, 1 << 30
FEW_NODES = ([1] * 10 + [2] * 34 + [3] * 8 + [4] * 22 + [5, 6, 6, 7, 8, 8, 8, 8]) * 2
MANY_NODES = [9, 9, 10, 11, 12, 16]
FEW = 8
"""Up to so many NUMA nodes the kubelet works without being told more."""
PERMUTATIONS = 2_000_000
"""So many permutations of hints the kubelet tries in a second or two."""


def machine(random: Random) -> list[Node]:
    """A list of NUMA nodes in ascending id."""
    count = random.choice(MANY_NODES if random.random() < 0.02 else FEW_NODES)
    sockets = _sockets(random, count)
    cores = _cores(random, count)
    _threads(random, cores)
    _caches(random, cores, sockets)
    ids = _ids(random, count)
    distances = _distances(random, count)
    sizes = _page_sizes(random)
    return [
        {
            "ID": ids[place],
            "Memory": _memory(random),
            "HugePages": _huge_pages(random, sizes),
            "Distances": distances[place] if distances else None,
            "Cores": [core | {"Socket": sockets(place, nth)} for nth, core in enumerate(cores[place])],
        }
        for place in range(count)
    ]


def most_merged(nodes: list[Node]) -> int:
    """How many resources may have hints for all subsets of these NUMA nodes."""
    return int(math.log(PERMUTATIONS) / math.log(max(2, 2 ** len(nodes) - 1)))


def cpus(nodes: list[Node]) -> list[int]:
    return sorted(cpu for node in nodes for core in node["Cores"] for cpu in core["Threads"])


def _sockets(random: Random, count: int) -> Any:
    """Which socket a core belongs to: several NUMA nodes a socket, one, or several sockets in a NUMA node."""
    kind = random.random()
    if kind < 0.06:
        return lambda place, nth: place * 2 + nth % 2
    per_socket = random.choice([size for size in (1, 2, 4, count) if size <= count])
    return lambda place, nth: place // per_socket


def _cores(random: Random, count: int) -> list[list[Node]]:
    size = random.choice([1, 2, 2, 3, 4, 4, 6, 8] if count <= 8 else [1, 2])
    even = random.random() < 0.85
    number = 0
    nodes: list[list[Node]] = []
    for _ in range(count):
        here = size if even else random.randint(1, size + 1)
        if count > 1 and random.random() < 0.03:
            here = 0
        nodes.append([{"ID": number + nth} for nth in range(here)])
        number += here
    if not number:
        nodes[0] = [{"ID": 0}]
    return nodes


def _threads(random: Random, nodes: list[list[Node]]) -> None:
    """Numbers CPUs thread by thread over the machine, or core by core; a few are offline."""
    threads = random.choice([1, 2, 2, 2, 4]) if random.random() < 0.9 else 2
    cores = [core for node in nodes for core in node]
    neighbours = random.random() < 0.3
    offline = 0.1 if random.random() < 0.12 else 0.0
    for nth, core in enumerate(cores):
        numbers = [
            nth * threads + thread if neighbours else thread * len(cores) + nth for thread in range(threads)
        ]
        core["Threads"] = [number for number in numbers if random.random() >= offline] or numbers[:1]


def _caches(random: Random, nodes: list[list[Node]], sockets: Any) -> None:
    kind = random.choice(["node", "group", "group", "socket", "none"])
    group = random.choice([1, 2, 3, 4])
    for place, node in enumerate(nodes):
        for nth, core in enumerate(node):
            core["Uncore"] = {
                "node": place,
                "group": place * 100 + nth // group,
                "socket": sockets(place, nth),
                "none": None,
            }[kind]


def _ids(random: Random, count: int) -> list[int]:
    if random.random() < 0.9:
        return list(range(count))
    return sorted(random.sample(range(min(64, 2 * count + 2)), count))


def _distances(random: Random, count: int) -> list[list[int]] | None:
    kind = random.random()
    if kind < 0.04:
        return None
    values = [11, 12, 16, 20, 21, 32]
    rows = [[10 if one == other else random.choice(values) for other in range(count)] for one in range(count)]
    if kind < 0.7:
        for one in range(count):
            for other in range(one):
                rows[one][other] = rows[other][one]
    return rows


def _memory(random: Random) -> int:
    odd = random.randrange(256) * 4096 if random.random() < 0.3 else 0
    return random.choice([1, 2, 2, 4, 4, 8, 16]) * GIB + odd if random.random() < 0.96 else 0


def _page_sizes(random: Random) -> list[int]:
    return random.choice([[], [], [2048], [2048], [2048, 1048576], [1048576]])


def _huge_pages(random: Random, sizes: list[int]) -> dict[str, int]:
    most = {2048: 256, 1048576: 2}
    return {str(size): random.randint(0, most[size]) for size in sizes if random.random() < 0.95}
