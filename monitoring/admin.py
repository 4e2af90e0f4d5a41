"""The administration of this room: clusters, where their exporters answer, nodes, and what may be set while it runs.

Tokens are write-only: a form shows whether there is one and takes a new one, and never gives one back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.conf import settings as project
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring import selectors, services
from monitoring.figures import causes, connecting, sentences
from monitoring.models import Cluster, Connection, Endpoint, Node, Settings
from monitoring.models.sealed import Unreadable
from monitoring.services import editing
from monitoring.services.watching import service
from monitoring.services.watching.trial import ConnectionTrial, try_connection

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
        fields = ("cluster", "url", "name", "token", "ca", "server_name", "enabled")

    def clean_ca(self) -> str:
        return editing.authority(self.cleaned_data["ca"])

    def clean_server_name(self) -> str:
        return editing.certificate_name(self.cleaned_data["server_name"])

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
    readonly_fields = ("created", "api_server")
    inlines = (EndpointInline,)

    @admin.display(description=_("connection to Kubernetes"))
    def api_server(self, cluster: Cluster) -> str:
        if cluster._state.adding:
            return gettext("Save the cluster first.")
        found = Connection.objects.filter(cluster=cluster).only("pk", "state").first()
        if found is None:
            address = f"{reverse('admin:monitoring_connection_add')}?cluster={cluster.pk}"
            return format_html('<a href="{}">{}</a>', address, gettext("Add a connection"))
        address = reverse("admin:monitoring_connection_change", args=[found.pk])
        return format_html('<a href="{}">{}</a>', address, found.get_state_display())

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
        (_("TLS, for an address with https://"), {"fields": ("ca", "server_name")}),
        (_("State"), {"fields": readonly_fields}),
    )
    list_editable = ("enabled",)
    actions = ("try_now",)
    list_per_page = 50

    @admin.display(description=_("cause"))
    def cause(self, endpoint: Endpoint) -> str:
        return causes.said(endpoint.conflict or endpoint.error)

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
                gettext("%(endpoint)s: %(cause)s")
                % {"endpoint": endpoint, "cause": causes.said(trial.error)},
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


class ConnectionForm(forms.ModelForm[Any]):
    """How a cluster is reached. Secrets are write-only; what they hold is tried for form before it is stored."""

    SECRETS = ("kubeconfig", "token", "exporter_token")
    forget_kubeconfig = forms.BooleanField(label=_("Remove the stored kubeconfig"), required=False)
    forget_token = forms.BooleanField(label=_("Remove the stored token"), required=False)
    forget_exporter_token = forms.BooleanField(label=_("Remove the exporters' stored token"), required=False)

    class Meta:
        model = Connection
        fields = (
            *("cluster", "source", "enabled", "kubeconfig", "context", "server", "ca", "token"),
            *(
                "exporter_namespace",
                "exporter_service",
                "exporter_https",
                "exporter_ca",
                "exporter_name",
                "exporter_token",
            ),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stored = {name: getattr(self.instance, name, "") for name in self.SECRETS}
        for name in self.SECRETS:
            if name not in self.fields:
                continue
            field = self.fields[name]
            field.required = False
            field.help_text = about_secret(self._stored[name])
            self.initial[name] = ""
            if name == "kubeconfig":
                field.widget = EmptyTextarea(attrs={"rows": 8, "cols": 90, "spellcheck": "false"})
                field.help_text = gettext(
                    "Paste what “kubectl config view --minify --flatten --raw” prints, with the token of a ServiceAccount. It may "
                    "start no program and name no file. %(stored)s"
                ) % {"stored": field.help_text}
            else:
                field.widget = forms.PasswordInput(
                    render_value=False, attrs={"autocomplete": "new-password", "size": 60}
                )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name in self.SECRETS:
            given = (data.get(name) or "").strip()
            data[name] = "" if data.get(f"forget_{name}") else given or self._stored[name]
        self.check_access(data)
        if data["exporter_token"] and not data.get("exporter_namespace"):
            text = gettext(
                "Name it: the token goes only to pods of this namespace, and a label alone is anybody's to write."
            )
            self.add_error("exporter_namespace", text)
        if data.get("exporter_ca") and not editing.is_authority(data["exporter_ca"]):
            self.add_error("exporter_ca", gettext("This is no certificate in PEM form."))
        return data

    def clean_exporter_service(self) -> str:
        text: str = self.cleaned_data["exporter_service"].strip()
        try:
            return text and ":".join(map(str, service.parse(text)))
        except ValueError:
            raise forms.ValidationError(gettext("This is no HOST:PORT.")) from None

    def check_access(self, data: dict[str, Any]) -> None:
        """Whether the API server could be asked at all, with the field that is at fault."""
        names = ("source", "kubeconfig", "context", "server", "ca", "token")
        if any(name in self.errors for name in names):
            return
        tried = Connection(**{name: data.get(name) or "" for name in names})
        field, text = editing.fault_of(tried)
        if text:
            self.add_error(field if field in self.fields else "source", text)

    @property
    def changed_data(self) -> list[str]:
        secrets = {*self.SECRETS, *(f"forget_{name}" for name in self.SECRETS)}
        changed = [name for name in super().changed_data if name not in secrets]
        return changed + [
            name
            for name in self.SECRETS
            if self.data.get(self.add_prefix(name)) or self.data.get(self.add_prefix(f"forget_{name}"))
        ]


class EmptyTextarea(forms.Textarea):
    """A text that is taken and never given back, not even when the form has to be corrected."""

    def format_value(self, value: Any) -> str:  # noqa: ARG002 - Django names it
        return ""


@admin.register(Connection)
class ConnectionAdmin(admin.ModelAdmin[Connection]):
    """How each cluster's API server is reached, and how that goes."""

    form = ConnectionForm
    list_display = ("cluster", "source", "reached", "state", "version", "last_ok", "enabled", "cause")
    list_filter = ("state", "source", "enabled")
    list_select_related = ("cluster",)
    readonly_fields = (
        *("state", "reached", "version", "last_try", "last_ok", "cause"),
        *("missing_rights", "watched_objects", "exporters"),
    )
    fieldsets = (
        (None, {"fields": ("cluster", "source", "enabled")}),
        (_("With a kubeconfig"), {"fields": ("kubeconfig", "forget_kubeconfig", "context")}),
        (_("With address and token"), {"fields": ("server", "ca", "token", "forget_token")}),
        (
            _("Exporters"),
            {
                "fields": (
                    *(
                        "exporter_namespace",
                        "exporter_service",
                        "exporter_https",
                        "exporter_ca",
                        "exporter_name",
                    ),
                    *("exporter_token", "forget_exporter_token"),
                )
            },
        ),
        (_("State"), {"fields": readonly_fields}),
    )
    actions = ("try_now",)

    def get_readonly_fields(self, request: HttpRequest, obj: Connection | None = None) -> list[str]:
        """A connection stays with its cluster: what it brought would be another's otherwise."""
        return [*super().get_readonly_fields(request, obj), *(["cluster"] if obj else [])]

    @admin.display(description=_("cause"))
    def cause(self, connection: Connection) -> str:
        return (
            " ".join(filter(None, (causes.said(connection.error), sentences.remedy(connection.remedy))))
            or "–"
        )

    @admin.display(description=_("missing rights"))
    def missing_rights(self, connection: Connection) -> str:
        return lines((each.right, each.text) for each in connecting.lacks(connection))

    @admin.display(description=_("What is read"))
    def watched_objects(self, connection: Connection) -> str:
        found = map(connecting.watch, connection.watches.all())
        return lines(
            (each.resource, " ".join(filter(None, (str(each.state), each.text, each.remedy))))
            for each in found
        )

    @admin.display(description=_("DaemonSets of exporters"))
    def exporters(self, connection: Connection) -> str:
        return lines(
            (f"{each['namespace']}/{each['name']}", f"{each['ready']}/{each['desired']}")
            for each in connection.daemonsets
        )

    @admin.action(description=_("Ask now and tell what happens"), permissions=["change"])
    def try_now(self, request: HttpRequest, chosen: models.QuerySet[Connection]) -> None:
        for connection in chosen.select_related("cluster").order_by("pk")[:TRIED_AT_ONCE]:
            tell_connection(request, connection, try_connection(connection))
        if chosen.count() > TRIED_AT_ONCE:
            messages.info(request, gettext("Only the first %d were asked.") % TRIED_AT_ONCE)


def lines(pairs: Iterable[tuple[str, str]]) -> str:
    """A line for each pair, – where there is none."""
    return format_html_join("", "<div><strong>{}</strong> {}</div>", pairs) or "–"


def tell_connection(request: HttpRequest, connection: Connection, trial: ConnectionTrial) -> None:
    """What came of asking an API server."""
    if trial.error:
        values = {
            "cluster": connection,
            "cause": causes.said(trial.error),
            "remedy": sentences.remedy(trial.remedy),
        }
        messages.error(request, gettext("%(cluster)s: %(cause)s %(remedy)s") % values)
        return
    values = {"cluster": connection, "version": trial.version, "ms": trial.milliseconds}
    messages.success(request, gettext("%(cluster)s answers: Kubernetes %(version)s in %(ms).0f ms.") % values)
    if trial.missing:
        rights = ", ".join(trial.missing)
        messages.warning(
            request,
            gettext("%(cluster)s: missing rights: %(rights)s. watcher.yaml of the chart has the whole role.")
            % {"cluster": connection, "rights": rights},
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
                "event_days",
                "failure_days",
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
            {
                "fields": (
                    *("detail_hours", "minute_days", "quarter_days", "placement_days", "event_days"),
                    *("failure_days", "gone_hours"),
                )
            },
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
