"""Reads of this room: typed values in a bounded number of queries. Views, the API and `policies` show these.

Nothing here writes. What nobody knows is None.
"""

from monitoring.selectors.attention import Attention
from monitoring.selectors.clusters import ClusterSummary, cluster, cluster_ids, clusters
from monitoring.selectors.configuration import settings
from monitoring.selectors.inventory import (
    Hit,
    containers,
    events,
    namespaces,
    node_ids,
    nodes,
    pod_of_container,
    search,
)
from monitoring.selectors.joining import joined
from monitoring.selectors.nodestate import NeverHeardError, NodeState, SectionState, node_state
from monitoring.selectors.ordering import field_of, order, stretch
from monitoring.selectors.overview import Component, Overview, Tile, Totals, overview
from monitoring.selectors.saving import values_in_order
from monitoring.selectors.timeline import Series, histories, history

__all__ = [
    "Attention",
    "ClusterSummary",
    "Component",
    "Hit",
    "NeverHeardError",
    "NodeState",
    "Overview",
    "SectionState",
    "Series",
    "Tile",
    "Totals",
    "cluster",
    "cluster_ids",
    "clusters",
    "containers",
    "events",
    "field_of",
    "histories",
    "history",
    "joined",
    "namespaces",
    "node_ids",
    "node_state",
    "nodes",
    "order",
    "overview",
    "pod_of_container",
    "search",
    "settings",
    "stretch",
    "values_in_order",
]
