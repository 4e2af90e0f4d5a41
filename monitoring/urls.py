"""The addresses of the pages. The cluster is in each of them."""

from django.urls import path

from monitoring.views import failures, history, kubernetes, lists, node, overview, planner, search

NODE = "c/<slug:cluster>/nodes/<str:node>/"

urlpatterns = [
    path("", overview.Home.as_view(), name="home"),
    path("clusters/", overview.Clusters.as_view(), name="clusters"),
    path("search/", search.Search.as_view(), name="search"),
    path("c/<slug:cluster>/", overview.Overview.as_view(), name="overview"),
    path("c/<slug:cluster>/fleet.json", overview.Fleet.as_view(), name="fleet"),
    path("c/<slug:cluster>/monitoring/", lists.Monitoring.as_view(), name="monitoring"),
    path("c/<slug:cluster>/monitoring/nodes.<str:form>", lists.NodeExport.as_view(), name="nodes_export"),
    path("c/<slug:cluster>/containers/", lists.Containers.as_view(), name="containers"),
    path(
        "c/<slug:cluster>/containers/containers.<str:form>",
        lists.ContainerExport.as_view(),
        name="containers_export",
    ),
    path("c/<slug:cluster>/failures/", failures.Failures.as_view(), name="failures"),
    path("c/<slug:cluster>/failures/starting/", failures.Starting.as_view(), name="starting"),
    path(
        "c/<slug:cluster>/failures/failures.<str:form>",
        failures.FailureExport.as_view(),
        name="failures_export",
    ),
    path(
        "c/<slug:cluster>/failures/not-starting.<str:form>",
        failures.StartExport.as_view(),
        name="starting_export",
    ),
    path("c/<slug:cluster>/failures/<int:line>/planner/", failures.AskPlanner.as_view(), name="ask_planner"),
    path("c/<slug:cluster>/pods/", kubernetes.Pods.as_view(), name="pods"),
    path("c/<slug:cluster>/pods/pods.<str:form>", kubernetes.PodExport.as_view(), name="pods_export"),
    path("c/<slug:cluster>/connection/", kubernetes.ConnectionPage.as_view(), name="connection"),
    path("c/<slug:cluster>/planner/", planner.Planner.as_view(), name="planner"),
    path(NODE, node.NodePage.as_view(), name="node"),
    path(f"{NODE}drawing.json", node.Drawing.as_view(), name="drawing"),
    path(f"{NODE}history.json", history.History.as_view(), name="history"),
    path(f"{NODE}document.<str:form>", node.Document.as_view(), name="document"),
]
