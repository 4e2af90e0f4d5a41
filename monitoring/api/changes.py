"""Changes that administrators make: clusters and the addresses of exporters. Each is told to the audit log.

This room does not know the audit log: the project gives its `record` to `urls.patterns`, which gives it to these views.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from django.core.exceptions import ValidationError as FieldError
from django.db import IntegrityError, models, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from monitoring import filters, selectors
from monitoring.api import base, lists, rows, shapes
from monitoring.api.explicit import encode
from monitoring.models import Cluster, Endpoint
from monitoring.selectors import ClusterSummary
from monitoring.services import editing

Values = dict[str, Any]
CLUSTER_FIELDS = ("slug", "name", "kind", "enabled")
ENDPOINT_FIELDS = ("url", "name", "token", "ca", "server_name", "enabled")
HIDDEN = "(hidden)"
CODES = {"POST": 201, "PATCH": 200}


class Record(Protocol):
    """Writes an entry of the audit log, in the transaction of the change."""

    def __call__(
        self,
        request: HttpRequest,
        action: str,
        *,
        target: str,
        before: Values | None,
        after: Values | None,
        detail: str,
    ) -> object: ...


class ClusterBody(serializers.Serializer[Any]):
    """A cluster. `slug` is its name in addresses."""

    slug = serializers.SlugField(max_length=63)
    name = serializers.CharField(max_length=200)
    kind = serializers.ChoiceField(choices=Cluster.Kind.choices, default=Cluster.Kind.KUBERNETES)
    enabled = serializers.BooleanField(default=True)


class ClusterPatch(serializers.Serializer[Any]):
    """What of a cluster is to change. The slug stays: addresses that people keep have it."""

    name = serializers.CharField(max_length=200, required=False)
    kind = serializers.ChoiceField(choices=Cluster.Kind.choices, required=False)
    enabled = serializers.BooleanField(required=False)


def checked(check: Callable[[str], str], value: str) -> str:
    """A field's value as `check` wants it stored, or REST's word for its refusal."""
    try:
        return check(value)
    except FieldError as error:
        raise serializers.ValidationError(error.messages) from None


class EndpointBody(serializers.Serializer[Any]):
    """The address of an exporter, and the bearer token that it wants, which is never shown again.

    For https: `ca` is whom its certificate must be from (PEM; empty = an authority that numaweb's machine trusts), and `server_name`
    the name in it where that is not the host of the address.
    """

    url = serializers.CharField(max_length=500)
    name = serializers.CharField(max_length=253, required=False, allow_blank=True)
    token = serializers.CharField(
        max_length=4096, required=False, allow_blank=True, write_only=True, trim_whitespace=True
    )
    ca = serializers.CharField(max_length=65_536, required=False, allow_blank=True)
    server_name = serializers.CharField(max_length=253, required=False, allow_blank=True)
    enabled = serializers.BooleanField(default=True)

    def validate_url(self, value: str) -> str:
        return checked(editing.address, value)

    def validate_ca(self, value: str) -> str:
        return checked(editing.authority, value)

    def validate_server_name(self, value: str) -> str:
        return checked(editing.certificate_name, value)

    def validate_token(self, value: str) -> str:
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise serializers.ValidationError(_("A bearer token has no blanks and no special characters."))
        return value


class EndpointPatch(EndpointBody):
    """What of an endpoint is to change."""

    url = serializers.CharField(max_length=500, required=False)
    enabled = serializers.BooleanField(required=False)


class Changing(base.ApiView):
    """A view with changes. `record` comes from the project; without it nothing can be changed."""

    record: ClassVar[Record | None] = None
    model: ClassVar[type[models.Model]]
    verbs: ClassVar[dict[str, str]] = {"POST": "add", "PATCH": "change", "DELETE": "delete"}

    @property
    def required_permission(self) -> str:
        verb = self.verbs.get(self.request.method or "", "change")
        return f"monitoring.{verb}_{self.model._meta.model_name}"

    def told(
        self, request: Request, action: str, row: models.Model, before: Values | None, after: Values | None
    ) -> None:
        assert self.record is not None
        secret = before is not None and after is not None and before.get("token") != after.get("token")
        self.record(
            request._request,
            action,
            target=f"{row._meta.label_lower} {row.pk} {row}",
            before=hidden(before),
            after=hidden(after),
            detail="new token" if secret else "",
        )


def hidden(values: Values | None) -> Values | None:
    """Values without secrets, for the audit log."""
    if values is None or "token" not in values:
        return values
    return {**values, "token": HIDDEN if values["token"] else ""}


def cluster_values(cluster: Cluster) -> Values:
    return {name: getattr(cluster, name) for name in CLUSTER_FIELDS}


def endpoint_values(endpoint: Endpoint) -> Values:
    return {"cluster": endpoint.cluster.slug, **{name: getattr(endpoint, name) for name in ENDPOINT_FIELDS}}


def version(values: Values) -> str:
    """A strong ETag's text: what people may change, so that a collector's note does not outdate what they saw."""
    return hashlib.blake2b(encode(values), digest_size=12).hexdigest()


def answered(value: Any, values: Values, status: int = 200) -> HttpResponse:
    """A thing that can be changed, with the ETag that a change has to name."""
    response = HttpResponse(encode(value), content_type=base.JSON, status=status)
    return base.headed(response, f'"{version(values)}"')


class Clusters(Changing):
    """The clusters"""

    answers = {"GET": shapes.ClusterList, "POST": shapes.ClusterRow}
    accepts = {"POST": ClusterBody}
    model = Cluster

    def get(self, request: Request) -> HttpResponse:
        return base.respond(request, shapes.ClusterList([cluster_row(each) for each in selectors.clusters()]))

    def post(self, request: Request) -> HttpResponse:
        """Adds a cluster (administrators)"""
        values = self.body(request)
        try:
            with transaction.atomic():
                cluster = editing.save_cluster(Cluster(), values)
                self.told(request, "add", cluster, None, cluster_values(cluster))
        except IntegrityError:
            raise base.Conflict(_("There is a cluster with this slug already; choose another.")) from None
        response = answered(cluster_row(summary(cluster.slug)), cluster_values(cluster), 201)
        response["Location"] = rows.path("clusters", cluster.slug)
        return response


def cluster_row(each: ClusterSummary) -> shapes.ClusterRow:
    held = each.cluster
    return shapes.ClusterRow(
        slug=held.slug,
        name=held.name,
        kind=held.kind,  # type: ignore[arg-type]  # the choices of the column
        enabled=held.enabled,
        created=held.created,
        nodes=each.nodes,
        endpoints=each.endpoints,
        address=rows.path("clusters", held.slug),
    )


def summary(slug: str) -> ClusterSummary:
    found = [each for each in selectors.clusters() if each.cluster.slug == slug]
    return found[0] if found else ClusterSummary(base.cluster_of(slug), 0, 0)


class ClusterDetail(Changing):
    """A cluster"""

    answers = {"GET": shapes.ClusterRow, "PATCH": shapes.ClusterRow, "DELETE": None}
    accepts = {"PATCH": ClusterPatch}
    model = Cluster

    def get(self, _request: Request, cluster: str) -> HttpResponse:
        found = summary(cluster)
        return answered(cluster_row(found), cluster_values(found.cluster))

    @transaction.atomic
    def patch(self, request: Request, cluster: str) -> HttpResponse:
        """Changes a cluster's name, kind or whether it is collected (administrators)"""
        held, before = self.held(request, cluster)
        editing.save_cluster(held, self.body(request))
        self.told(request, "change", held, before, cluster_values(held))
        return answered(cluster_row(summary(held.slug)), cluster_values(held))

    @transaction.atomic
    def delete(self, request: Request, cluster: str) -> HttpResponse:
        """Removes a cluster with its nodes and their history (administrators)"""
        held, before = self.held(request, cluster)
        self.told(request, "remove", held, before, None)
        try:
            editing.remove_cluster(held)
        except editing.UnfinishedError as error:
            raise base.Conflict(
                _(
                    "Something of this cluster is not finished (%(things)s). End it or take it back first; of a cluster that is gone for good, switch off its collection, then remove it."
                )
                % {"things": error.things}
            ) from None
        return HttpResponse(status=204)

    def held(self, request: Request, slug: str) -> tuple[Cluster, Values]:
        """The row, locked until the end of the transaction, as the caller has seen it."""
        base.cluster_of(slug)
        held = Cluster.objects.select_for_update().get(slug=slug)
        base.check_version(request, version(cluster_values(held)))
        return held, cluster_values(held)


class AllEndpoints(lists.ListView):
    """The exporters of all clusters and how they answer"""

    answers = {"GET": shapes.EndpointPage}
    columns, sorts, filterset, sort = rows.ENDPOINTS, rows.ENDPOINT_SORTS, filters.EndpointFilter, "id"
    parameters = lists.asked(filters.EndpointFilter, rows.ENDPOINT_SORTS, rows.ENDPOINTS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> models.QuerySet[Endpoint]:
        return Endpoint.objects.all() if cluster is None else Endpoint.objects.filter(cluster=cluster)


class Endpoints(Changing, AllEndpoints):
    """The exporters of a cluster and how they answer"""

    answers = {"GET": shapes.EndpointPage, "POST": shapes.EndpointRow}
    accepts = {"POST": EndpointBody}
    parameters = lists.asked(
        filters.EndpointFilter, rows.ENDPOINT_SORTS, rows.ENDPOINTS.names(), without=("cluster",)
    )
    model = Endpoint

    def post(self, request: Request, cluster: str) -> HttpResponse:
        """Adds the address of an exporter (administrators)"""
        values = self.body(request)
        try:
            with transaction.atomic():
                endpoint = editing.save_endpoint(Endpoint(cluster=base.cluster_of(cluster)), values)
                self.told(request, "add", endpoint, None, endpoint_values(endpoint))
        except IntegrityError:
            raise base.Conflict(_("This cluster has an endpoint with this address already.")) from None
        response = answered(endpoint_row(endpoint), endpoint_values(endpoint), 201)
        response["Location"] = rows.path("endpoints", str(endpoint.pk))
        return response


def endpoint_row(endpoint: Endpoint) -> rows.Row:
    found = Endpoint.objects.filter(pk=endpoint.pk).values_list(*rows.ENDPOINTS.expressions())
    return rows.ENDPOINTS.rows(found, rows.Moment(timezone.now(), {}, 0.0))[0]


class EndpointDetail(Changing):
    """The address of one exporter and how it answers"""

    answers = {"GET": shapes.EndpointRow, "PATCH": shapes.EndpointRow, "DELETE": None}
    accepts = {"PATCH": EndpointPatch}
    model = Endpoint

    def get(self, _request: Request, endpoint: int) -> HttpResponse:
        found = endpoint_of(endpoint)
        return answered(endpoint_row(found), endpoint_values(found))

    def patch(self, request: Request, endpoint: int) -> HttpResponse:
        """Changes an exporter's address, name, token, whose certificate it needs, or whether it is collected (administrators)"""
        try:
            with transaction.atomic():
                held, before = self.held(request, endpoint)
                editing.save_endpoint(held, self.body(request))
                self.told(request, "change", held, before, endpoint_values(held))
        except IntegrityError:
            raise base.Conflict(_("This cluster has an endpoint with this address already.")) from None
        return answered(endpoint_row(held), endpoint_values(held))

    @transaction.atomic
    def delete(self, request: Request, endpoint: int) -> HttpResponse:
        """Removes the address of an exporter (administrators)

        Its node stays, without new data.
        """
        held, before = self.held(request, endpoint)
        self.told(request, "remove", held, before, None)
        editing.remove_endpoint(held)
        return HttpResponse(status=204)

    def held(self, request: Request, key: int) -> tuple[Endpoint, Values]:
        """The row, locked until the end of the transaction, as the caller has seen it."""
        endpoint_of(key)
        held = Endpoint.objects.select_for_update(of=("self",)).select_related("cluster").get(pk=key)
        base.check_version(request, version(endpoint_values(held)))
        return held, endpoint_values(held)


def endpoint_of(key: int) -> Endpoint:
    found = Endpoint.objects.select_related("cluster").filter(pk=key).first()
    if found is None:
        raise NotFound(_("There is no endpoint with this id; /endpoints/ lists them."))
    return found
