"""What this room adds to the REST API."""

from django.urls import URLPattern, path

from policies.api import audit, cleanup, policies


def patterns() -> list[URLPattern]:
    """Addresses below /api/v1/."""
    of_cluster = "clusters/<slug:cluster>/cleanups/"
    one = f"{of_cluster}<int:cleanup>/"
    return [
        path("audit/", audit.Audit.as_view(), name="audit"),
        path(of_cluster, cleanup.Cleanups.as_view(), name="cluster-cleanups"),
        path(one, cleanup.CleanupDetail.as_view(), name="cleanup"),
        path(f"{one}start/", cleanup.StartCleanup.as_view(), name="cleanup-start"),
        path(f"{one}stop/", cleanup.StopCleanup.as_view(), name="cleanup-stop"),
        path(f"{one}pods/", cleanup.CleanedPods.as_view(), name="cleanup-pods"),
        path("clusters/<slug:cluster>/policies/", policies.Policies.as_view(), name="policies"),
        path(
            "clusters/<slug:cluster>/policies/<int:policy>/", policies.PolicyDetail.as_view(), name="policy"
        ),
        path(
            "clusters/<slug:cluster>/policies/<int:policy>/preview/",
            policies.Preview.as_view(),
            name="policy-preview",
        ),
        path("clusters/<slug:cluster>/pools/", policies.Pools.as_view(), name="pools"),
        path("clusters/<slug:cluster>/pools/<slug:pool>/", policies.PoolDetail.as_view(), name="pool"),
    ]
