"""What is kept of every NUMA node, as whole numbers: the units in which it is stored."""

from __future__ import annotations

from typing import Literal

import msgspec

MISSING = -1
"""Stored where nothing is known. Every value that is known is 0 or more."""


class Metric(msgspec.Struct, frozen=True):
    """One column. Stored number = value x `scale`, rounded. `roll_up`: how several samples become one."""

    name: str
    scale: float
    per: Literal["numa", "node"] = "numa"
    roll_up: Literal["mean", "max"] = "mean"


ALL = (
    Metric("busy", 10_000),
    Metric("busy_max", 10_000, roll_up="max"),
    Metric("pinned", 1),
    Metric("memory_used", 1 / 1024),
    Metric("memory_free", 1 / 1024),
    Metric("memory_file", 1 / 1024),
    Metric("remote_pages_rate", 10),
    Metric("crossing", 1, per="node"),
)
"""In the order in which they are stored; new ones go to the end."""
METRICS = {metric.name: metric for metric in ALL}
"""busy: share. busy_max: highest busy share of a round in the interval. pinned: CPUs. memory_...: bytes.
remote_pages_rate: pages a second that the node's memory served to other nodes' CPUs (numastat other_node).
crossing: containers of the node that cross NUMA nodes."""
PER_NUMA = tuple(metric for metric in ALL if metric.per == "numa")
PER_NODE = tuple(metric for metric in ALL if metric.per == "node")


def stored(metric: Metric, value: float | None) -> int:
    """A value as it is stored; what is unknown, negative or no number is `MISSING`."""
    if value is None or not value >= 0 or value > 2**60:
        return MISSING
    return round(value * metric.scale)
