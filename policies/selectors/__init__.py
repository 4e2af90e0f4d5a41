"""Reads: the audit log, clean-ups, and which policy counts for which node and where nodes stand."""

from policies.selectors.audit import Filter, actions, entries
from policies.selectors.cleanups import MOST_OWNERS, cleanup_counts, cleanup_owners, cleanups
from policies.selectors.precedence import Applied, Overlap, applying, members, overlaps
from policies.selectors.previewing import Previewed, preview, reached
from policies.selectors.standing import (
    Difference,
    Standing,
    TargetRow,
    counts,
    frozen_pools,
    is_target,
    policy_of,
    standing,
    targets,
)

__all__ = [
    "MOST_OWNERS",
    "Applied",
    "Difference",
    "Filter",
    "Overlap",
    "Previewed",
    "Standing",
    "TargetRow",
    "actions",
    "applying",
    "cleanup_counts",
    "cleanup_owners",
    "cleanups",
    "counts",
    "entries",
    "frozen_pools",
    "is_target",
    "members",
    "overlaps",
    "policy_of",
    "preview",
    "reached",
    "standing",
    "targets",
]
