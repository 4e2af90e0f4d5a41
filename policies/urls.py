"""The addresses of this room."""

from django.urls import path

from policies import views

urlpatterns = [
    path("audit/", views.AuditList.as_view(), name="audit"),
    path("audit/export.<str:form>", views.AuditExport.as_view(), name="audit_export"),
]
