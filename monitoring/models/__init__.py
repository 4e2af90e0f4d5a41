"""Tables of this room. Bare rows: no rule, no task, no request reaches in from here."""

from monitoring.models.containers import Container, Placement
from monitoring.models.inventory import Cluster, Endpoint, Node, NodeEvent, Topology
from monitoring.models.samples import HistoryChunk, HistoryJournal
from monitoring.models.service import Lease, Settings

__all__ = [
    "Cluster",
    "Container",
    "Endpoint",
    "HistoryChunk",
    "HistoryJournal",
    "Lease",
    "Node",
    "NodeEvent",
    "Placement",
    "Settings",
    "Topology",
]
