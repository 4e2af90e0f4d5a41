"""The addresses of this room."""

from django.urls import path, re_path

from policies.views import audit, byhand, cleanup, policies, preview, restore, rollout

urlpatterns = [
    path("audit/", audit.AuditList.as_view(), name="audit"),
    path("audit/export.<str:form>", audit.AuditExport.as_view(), name="audit_export"),
    path("c/<slug:cluster>/cleanups/", cleanup.Cleanups.as_view(), name="cleanups"),
    path("c/<slug:cluster>/cleanups/<int:cleanup>/", cleanup.CleanupPage.as_view(), name="cleanup"),
    path("c/<slug:cluster>/rollouts/", rollout.Rollouts.as_view(), name="rollouts"),
    path("c/<slug:cluster>/rollouts/<int:rollout>/", rollout.RolloutPage.as_view(), name="rollout"),
    path("c/<slug:cluster>/policies/", policies.Policies.as_view(), name="policies"),
    path("c/<slug:cluster>/policies/restore/", restore.RestorePage.as_view(), name="restore"),
    path(
        "c/<slug:cluster>/policies/cluster/",
        policies.EditPolicy.as_view(),
        {"level": "cluster"},
        name="policy_cluster",
    ),
    path(
        "c/<slug:cluster>/policies/cluster/preview/",
        preview.PreviewPage.as_view(),
        {"level": "cluster"},
        name="preview_cluster",
    ),
    re_path(
        r"^c/(?P<cluster>[-\w]+)/policies/cluster/preview/by-hand\.(?P<form>sh|yml)$",
        byhand.ByHand.as_view(),
        {"level": "cluster"},
        name="by_hand_cluster",
    ),
    path("c/<slug:cluster>/policies/pools/", policies.EditPool.as_view(), name="policy_pool_new"),
    path("c/<slug:cluster>/policies/pools/<slug:name>/", policies.EditPool.as_view(), name="policy_pool"),
    re_path(
        r"^c/(?P<cluster>[-\w]+)/policies/(?P<level>pool|node)/(?P<name>[^/]+)/$",
        policies.EditPolicy.as_view(),
        name="policy",
    ),
    re_path(
        r"^c/(?P<cluster>[-\w]+)/policies/(?P<level>pool|node)/(?P<name>[^/]+)/preview/$",
        preview.PreviewPage.as_view(),
        name="preview",
    ),
    re_path(
        r"^c/(?P<cluster>[-\w]+)/policies/(?P<level>pool|node)/(?P<name>[^/]+)/preview/by-hand\.(?P<form>sh|yml)$",
        byhand.ByHand.as_view(),
        name="by_hand",
    ),
]
