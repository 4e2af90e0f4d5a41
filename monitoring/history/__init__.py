"""What was: a sample of every NUMA node each few seconds, kept compactly for a bounded time.

Samples come into a journal (one row for many nodes), are compacted into chunks (one row for one node over a span), and
are rolled up to minutes and quarter hours. A moment without a sample stays a gap. Who may call it: services write,
selectors read.
"""

from monitoring.history.compaction import compact, roll_up
from monitoring.history.journal import write as write_journal
from monitoring.history.metrics import METRICS, Metric
from monitoring.history.reading import Points, read, read_several
from monitoring.history.retention import forget
from monitoring.history.samples import NodeSample

__all__ = [
    "METRICS",
    "Metric",
    "NodeSample",
    "Points",
    "compact",
    "forget",
    "read",
    "read_several",
    "roll_up",
    "write_journal",
]
