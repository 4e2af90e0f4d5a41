"""Tables of this room. Bare rows: no rule, no task, no request reaches in from here."""

from monitoring.models.containers import Container, Placement
from monitoring.models.inventory import Cluster, Endpoint, Node, NodeEvent, Topology
from monitoring.models.kubernetes import (
    ClusterEvent,
    Connection,
    Failure,
    KubernetesNode,
    Pod,
    SourceView,
    WatchHealth,
)
from monitoring.models.samples import HistoryChunk, HistoryJournal
from monitoring.models.service import Lease, Settings

__all__ = [
    "Cluster",
    "ClusterEvent",
    "Connection",
    "Container",
    "Endpoint",
    "Failure",
    "HistoryChunk",
    "HistoryJournal",
    "KubernetesNode",
    "Lease",
    "Node",
    "NodeEvent",
    "Placement",
    "Pod",
    "Settings",
    "SourceView",
    "Topology",
    "WatchHealth",
]
