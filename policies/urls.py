"""The addresses of this room."""

from django.urls import path

from policies.views import audit, cleanup

urlpatterns = [
    path("audit/", audit.AuditList.as_view(), name="audit"),
    path("audit/export.<str:form>", audit.AuditExport.as_view(), name="audit_export"),
    path("c/<slug:cluster>/cleanups/", cleanup.Cleanups.as_view(), name="cleanups"),
    path("c/<slug:cluster>/cleanups/<int:cleanup>/", cleanup.CleanupPage.as_view(), name="cleanup"),
]
