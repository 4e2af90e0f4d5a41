"""What this room adds to the REST API."""

from django.urls import URLPattern, path

from policies.api import audit, cleanup


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
    ]
