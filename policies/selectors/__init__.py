"""Reads: the audit log, clean-ups, and which policy applies to which node."""

from policies.selectors.audit import Filter, actions, entries
from policies.selectors.cleanups import MOST_OWNERS, cleanup_counts, cleanup_owners, cleanups
from policies.selectors.precedence import Applied, Overlap, applying, members, overlaps

__all__ = [
    "MOST_OWNERS",
    "Applied",
    "Filter",
    "Overlap",
    "actions",
    "applying",
    "cleanup_counts",
    "cleanup_owners",
    "cleanups",
    "entries",
    "members",
    "overlaps",
]
