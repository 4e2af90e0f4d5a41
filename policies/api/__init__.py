"""What this room adds to the REST API."""

from django.urls import URLPattern, path

from policies.api import audit, cleanup, policies, rollouts


def patterns() -> list[URLPattern]:
    """Addresses below /api/v1/."""
    of_cluster = "clusters/<slug:cluster>/cleanups/"
    one = f"{of_cluster}<int:cleanup>/"
    rolled = "clusters/<slug:cluster>/rollouts/"
    rollout = f"{rolled}<int:rollout>/"
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
        path(
            "clusters/<slug:cluster>/policies/<int:policy>/versions/",
            policies.Versions.as_view(),
            name="policy-versions",
        ),
        path("clusters/<slug:cluster>/standing/", policies.Standing.as_view(), name="cluster-standing"),
        path(rolled, rollouts.Rollouts.as_view(), name="cluster-rollouts"),
        path(rollout, rollouts.RolloutDetail.as_view(), name="rollout"),
        path(f"{rollout}confirm/", rollouts.ConfirmRollout.as_view(), name="rollout-confirm"),
        path(f"{rollout}pause/", rollouts.PauseRollout.as_view(), name="rollout-pause"),
        path(f"{rollout}resume/", rollouts.ResumeRollout.as_view(), name="rollout-resume"),
        path(f"{rollout}stop/", rollouts.StopRollout.as_view(), name="rollout-stop"),
        path(f"{rollout}discard/", rollouts.DiscardRollout.as_view(), name="rollout-discard"),
        path(f"{rollout}roll-back/", rollouts.RollBackRollout.as_view(), name="rollout-roll-back"),
        path(f"{rollout}retry/", rollouts.RetryRollout.as_view(), name="rollout-retry"),
        path(f"{rollout}nodes/", rollouts.NodesOfRollout.as_view(), name="rollout-nodes"),
        path(f"{rollout}nodes/<str:node>/acts/", rollouts.ActsOfRollout.as_view(), name="rollout-acts"),
        path("clusters/<slug:cluster>/changed-nodes/", rollouts.ChangedNodes.as_view(), name="changed-nodes"),
        path("clusters/<slug:cluster>/pools/", policies.Pools.as_view(), name="pools"),
        path("clusters/<slug:cluster>/pools/<slug:pool>/", policies.PoolDetail.as_view(), name="pool"),
    ]
