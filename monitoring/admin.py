"""The administration of this room: clusters, where their exporters answer, nodes, and what may be set while it runs.

Tokens are write-only: a form shows whether there is one and takes a new one, and never gives one back.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings as project
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring import selectors, services
from monitoring.models import Cluster, Endpoint, Node, Settings
from monitoring.models.sealed import Unreadable
from monitoring.services import editing

TRIED_AT_ONCE = 10


class SecretForm(forms.ModelForm[Any]):
    """A form whose secret field is empty when shown, keeps the stored secret when left empty, and can drop it."""

    secret: str
    forget = forms.BooleanField(label=_("Remove the stored token"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = getattr(self.instance, self.secret, "")
        if self.secret in self.fields:
            field = self.fields[self.secret]
            field.widget = forms.PasswordInput(
                render_value=False, attrs={"autocomplete": "new-password", "size": 60}
            )
            field.required = False
            field.help_text = about_secret(stored)
        self.initial[self.secret] = ""
        self._stored = stored

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        given = (data.get(self.secret) or "").strip()
        if given and not (given.isascii() and given.isprintable()):
            self.add_error(self.secret, gettext("A token has visible ASCII characters only."))
        data[self.secret] = "" if data.get("forget") else given or self._stored
        return data

    @property
    def changed_data(self) -> list[str]:
        changed = [name for name in super().changed_data if name not in (self.secret, "forget")]
        if self.data.get(self.add_prefix(self.secret)) or self.data.get(self.add_prefix("forget")):
            changed.append(self.secret)
        return changed


def about_secret(stored: str) -> str:
    """What a form says instead of showing a secret."""
    if isinstance(stored, Unreadable):
        return gettext(
            "The stored token cannot be read: it was encrypted with another secret key. Enter it again, or give that key in NUMAWEB_SECRET_KEY_FALLBACKS."
        )
    if stored:
        return gettext("A token is stored and is not shown. Leave this empty to keep it.")
    return gettext("None is stored.")


class EndpointForm(SecretForm):
    secret = "token"  # noqa: S105 - a field's name

    class Meta:
        model = Endpoint
        fields = ("cluster", "url", "name", "token", "enabled")

    def clean_url(self) -> str:
        return editing.address(self.cleaned_data["url"])


class EndpointInline(admin.TabularInline[Endpoint, Cluster]):
    model = Endpoint
    fields = ("url", "name", "enabled", "state", "last_ok", "error")
    readonly_fields = ("url", "name", "state", "last_ok", "error")
    extra = 0
    max_num = 0
    can_delete = False
    show_change_link = True
    ordering = ("url",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Endpoint]:
        """A large cluster's endpoints have a list of their own."""
        return (
            super().get_queryset(request).none()
            if Endpoint.objects.count() > 200
            else super().get_queryset(request)
        )


@admin.register(Cluster)
class ClusterAdmin(admin.ModelAdmin[Cluster]):
    list_display = ("name", "slug", "kind", "enabled", "created")
    list_filter = ("kind", "enabled")
    search_fields = ("name", "slug")
    readonly_fields = ("created",)
    inlines = (EndpointInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Cluster | None = None) -> list[str]:
        """The slug is part of addresses that people keep."""
        return [*super().get_readonly_fields(request, obj), *(["slug"] if obj else [])]


@admin.register(Endpoint)
class EndpointAdmin(admin.ModelAdmin[Endpoint]):
    form = EndpointForm
    list_display = ("__str__", "cluster", "url", "enabled", "state", "node", "last_ok", "failures", "cause")
    list_filter = ("state", "enabled", "cluster")
    search_fields = ("url", "name", "node__name")
    list_select_related = ("cluster", "node")
    readonly_fields = (
        *("state", "node", "last_try", "last_ok", "failures", "failures_total", "error", "conflict", "skew"),
    )
    fieldsets = (
        (None, {"fields": ("cluster", "url", "name", "enabled")}),
        (_("Authentication"), {"fields": ("token", "forget")}),
        (_("State"), {"fields": readonly_fields}),
    )
    list_editable = ("enabled",)
    actions = ("try_now",)
    list_per_page = 50

    @admin.display(description=_("cause"))
    def cause(self, endpoint: Endpoint) -> str:
        return endpoint.conflict or endpoint.error

    @admin.action(description=_("Ask now and tell what happens"), permissions=["change"])
    def try_now(self, request: HttpRequest, chosen: models.QuerySet[Endpoint]) -> None:
        for endpoint in chosen.order_by("pk")[:TRIED_AT_ONCE]:
            self.tell(request, endpoint, services.try_endpoint(endpoint))
        if chosen.count() > TRIED_AT_ONCE:
            messages.info(request, gettext("Only the first %d were asked.") % TRIED_AT_ONCE)

    def tell(self, request: HttpRequest, endpoint: Endpoint, trial: services.Trial) -> None:
        if trial.error:
            messages.error(
                request,
                gettext("%(endpoint)s: %(cause)s") % {"endpoint": endpoint, "cause": trial.error},
            )
            return
        text = gettext(
            "%(endpoint)s answers: node %(node)s, exporter %(version)s, %(bytes)d bytes in %(ms).0f ms, "
            "%(problems)d problems of its readers."
        )
        messages.success(
            request,
            text
            % {
                "endpoint": endpoint,
                "node": trial.node,
                "version": trial.version or "?",
                "bytes": trial.size,
                "ms": trial.milliseconds,
                "problems": trial.problems,
            },
        )


@admin.register(Node)
class NodeAdmin(admin.ModelAdmin[Node]):
    """Nodes come and go by what exporters tell: here they can be looked at, and one that left be removed."""

    list_display = (
        "name",
        "cluster",
        "numa_nodes",
        "cpus",
        "containers",
        "first_seen",
        "last_seen",
        "gone_at",
    )
    list_filter = ("cluster", ("gone_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "uid")
    list_select_related = ("cluster",)
    list_per_page = 50
    fields = (
        *("cluster", "name", "uid", "topology", "boot_id", "first_seen", "last_seen", "gone_at"),
        *("sockets", "numa_nodes", "cpus", "memory_total", "containers", "topology_policy", "cpu_policy"),
    )

    def has_add_permission(self, *_: object) -> bool:
        return False

    def has_change_permission(self, *_: object, **__: object) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Node | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.gone_at is not None)


class SettingsForm(SecretForm):
    secret = "prometheus_token"  # noqa: S105 - a field's name

    class Meta:
        model = Settings
        fields = (
            *(
                "busy_threshold",
                "detail_hours",
                "minute_days",
                "quarter_days",
                "placement_days",
                "gone_hours",
            ),
            *("prometheus_url", "prometheus_token"),
        )

    def clean_prometheus_url(self) -> str:
        url: str = self.cleaned_data["prometheus_url"].strip()
        allowed = frozenset(project.NUMAWEB_PROMETHEUS_ALLOW)
        return editing.address(url, "prometheus", allowed) if url else ""


@admin.register(Settings)
class SettingsAdmin(admin.ModelAdmin[Settings]):
    """One row: the list leads straight to it."""

    form = SettingsForm
    fieldsets = (
        (_("Thresholds"), {"fields": ("busy_threshold",)}),
        (
            _("How long things are kept"),
            {"fields": ("detail_hours", "minute_days", "quarter_days", "placement_days", "gone_hours")},
        ),
        ("Prometheus", {"fields": ("prometheus_url", "prometheus_token", "forget")}),
    )

    def has_add_permission(self, *_: object) -> bool:
        return False

    def has_delete_permission(self, *_: object, **__: object) -> bool:
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            return super().changelist_view(request, extra_context)
        services.ensure_settings()
        return redirect(reverse("admin:monitoring_settings_change", args=[selectors.settings().pk]))
