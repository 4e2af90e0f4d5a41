"""Django's admin site with our sign-in and our roles, where every change becomes an audit entry with before and after.

A room registers its models with `django.contrib.admin.site.register` as usual; `register` here adds the recording.
"""

from typing import Any

from django.contrib import admin
from django.contrib.admin.sites import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from policies import audit

HIDDEN_FIELDS = ("kubeconfig", "password", "hash", "secret", "token", "bearer", "key")
HIDDEN = "(hidden)"


def values_of(instance: models.Model) -> dict[str, Any]:
    """Every stored field as text, secrets hidden, relations to many as sorted lists of names."""
    found: dict[str, Any] = {
        field.name: HIDDEN if hidden(field.name) else field.value_to_string(instance)
        for field in instance._meta.concrete_fields
    }
    for relation in instance._meta.many_to_many:
        found[relation.name] = sorted(str(item) for item in getattr(instance, relation.name).all())
    return found


def hidden(name: str) -> bool:
    return any(word in name for word in HIDDEN_FIELDS)


def target_of(instance: models.Model) -> str:
    return f"{instance._meta.label_lower} {instance.pk} {instance}"


class Recorded(admin.ModelAdmin[Any]):
    """Put in front of every registered ModelAdmin: the change and its audit entry are one transaction."""

    @transaction.atomic
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        before = self.stored(request, object_id) if request.method == "POST" and object_id else None
        request.numaweb_before = before  # type: ignore[attr-defined]
        return super().changeform_view(request, object_id, form_url, extra_context)

    def stored(self, request: HttpRequest, object_id: str) -> dict[str, Any] | None:
        instance = self.get_object(request, object_id)
        return values_of(instance) if instance is not None else None

    def save_related(self, request: HttpRequest, form: ModelForm[Any], formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        instance = self.model._base_manager.get(pk=form.instance.pk)
        before = getattr(request, "numaweb_before", None)
        audit.record_request(
            request,
            "change" if change else "add",
            target=target_of(instance),
            before=before,
            after=values_of(instance),
            detail=self.secret_changes(form),
        )

    def secret_changes(self, form: ModelForm[Any]) -> str:
        """Secrets are hidden in before and after, so that one changed is said in words."""
        return ", ".join(f"new {name}" for name in form.changed_data if hidden(name))

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        with transaction.atomic():
            target, before = target_of(obj), values_of(obj)
            super().delete_model(request, obj)
            audit.record_request(request, "remove", target=target, before=before)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        with transaction.atomic():
            gone = [(target_of(item), values_of(item)) for item in queryset]
            super().delete_queryset(request, queryset)
            for target, before in gone:
                audit.record_request(request, "remove", target=target, before=before)


class AuditedSite(AdminSite):
    site_header = site_title = _("numaweb administration")
    index_title = _("Clusters, people and settings")
    site_url = "/"
    enable_nav_sidebar = False

    def register(
        self, model_or_iterable: Any, admin_class: type[admin.ModelAdmin[Any]] | None = None, **options: Any
    ) -> None:
        base = admin_class or admin.ModelAdmin
        recorded = type(f"Recorded{base.__name__}", (Recorded, base), {"__module__": base.__module__})
        super().register(model_or_iterable, recorded, **options)

    def login(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """There is one sign-in page; somebody who is signed in without the right to be here is told so."""
        if request.user.is_authenticated:
            raise PermissionDenied(_("The administration is for administrators."))
        return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME, "/admin/"))
