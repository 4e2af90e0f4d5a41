"""Addresses of the API below /api/v1/. The project includes `patterns` and hands in where changes are recorded."""

from django.urls import URLPattern, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from monitoring.api import (
    changes,
    cluster,
    document,
    failures,
    kubernetes,
    lists,
    node,
    plans,
    root,
    timeline,
)

app_name = "api"
DOCS = SpectacularSwaggerSplitView.as_view(url_name="api:schema", template_name="monitoring/api.html")


def patterns(record: changes.Record) -> list[URLPattern]:
    """All addresses; every change goes to `record` before it is committed."""
    in_cluster = "clusters/<slug:cluster>/"
    of_node = f"{in_cluster}nodes/<str:node>/"
    return [
        path("", root.Start.as_view(), name="root"),
        path("search/", root.Search.as_view(), name="search"),
        path("settings/", root.Settings.as_view(), name="settings"),
        path("schema/", SpectacularAPIView.as_view(generator_class=document.Generator), name="schema"),
        path("docs/", DOCS, name="docs"),
        path("clusters/", changes.Clusters.as_view(record=record), name="clusters"),
        path(in_cluster, changes.ClusterDetail.as_view(record=record), name="cluster"),
        path(f"{in_cluster}overview/", cluster.Overview.as_view(), name="overview"),
        path(f"{in_cluster}fleet/", cluster.Fleet.as_view(), name="fleet"),
        path(f"{in_cluster}nodes/", lists.Nodes.as_view(), name="cluster-nodes"),
        path(f"{in_cluster}containers/", lists.Containers.as_view(), name="cluster-containers"),
        path(f"{in_cluster}endpoints/", changes.Endpoints.as_view(record=record), name="cluster-endpoints"),
        path(f"{in_cluster}failures/", failures.Failures.as_view(), name="cluster-failures"),
        path(f"{in_cluster}failures/starting/", failures.StartingPods.as_view(), name="cluster-starting"),
        path(f"{in_cluster}pods/", kubernetes.Pods.as_view(), name="cluster-pods"),
        path(f"{in_cluster}events/", kubernetes.ClusterEvents.as_view(), name="cluster-events"),
        path(f"{in_cluster}connection/", kubernetes.Connection.as_view(), name="cluster-connection"),
        path(f"{in_cluster}plan/", plans.Plan.as_view(), name="cluster-plan"),
        path(f"{in_cluster}lint/", plans.Lint.as_view(), name="cluster-lint"),
        path(of_node, node.NodeReport.as_view(), name="node"),
        path(f"{of_node}topology/", node.NodeTopology.as_view(), name="node-topology"),
        path(f"{of_node}distances/", node.NodeDistances.as_view(), name="node-distances"),
        path(f"{of_node}containers/", node.NodeContainers.as_view(), name="node-containers"),
        path(f"{of_node}history/", timeline.NodeHistory.as_view(), name="node-history"),
        path(f"{of_node}kubelet/", node.NodeKubelet.as_view(), name="node-kubelet"),
        path(f"{of_node}events/", node.NodeEvents.as_view(), name="node-events"),
        path(f"{of_node}cluster-events/", kubernetes.NodeClusterEvents.as_view(), name="node-cluster-events"),
        path(f"{of_node}kubernetes/", kubernetes.KubernetesNode.as_view(), name="node-kubernetes"),
        path(f"{of_node}sources/", kubernetes.Sources.as_view(), name="node-sources"),
        path(f"{of_node}document/", node.NodeDocument.as_view(), name="node-document"),
        path("plan/", plans.AnyPlan.as_view(), name="plan"),
        path("lint/", plans.AnyLint.as_view(), name="lint"),
        path("nodes/", lists.AllNodes.as_view(), name="nodes"),
        path("containers/", lists.AllContainers.as_view(), name="containers"),
        path("endpoints/", changes.AllEndpoints.as_view(), name="endpoints"),
        path("endpoints/<int:endpoint>/", changes.EndpointDetail.as_view(record=record), name="endpoint"),
        path("topologies/<str:topology>/", cluster.TopologyOf.as_view(), name="topology"),
    ]
