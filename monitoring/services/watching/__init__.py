"""Keeps what a cluster's API server says true in the database: nodes, pods, failed admissions, events, custom resources.

`run` watches every cluster that has a connection, each on its own; per cluster one process of all works, by a lease.
"""

from monitoring.services.watching.supervisor import run, work
from monitoring.services.watching.watch import ClusterWatch, Waits

__all__ = ["ClusterWatch", "Waits", "run", "work"]
