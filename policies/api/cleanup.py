"""Clean-up of failed pods by REST: a preview, its start, how far it is, what became of each pod."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NoReturn

import django_filters as df
import msgspec
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from msgspec import Meta
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request

from monitoring.api import base, lists, rows, shapes
from monitoring.api.explicit import encode
from monitoring.filters import FailureFilter, Several
from monitoring.models import Cluster
from monitoring.selectors import failures
from policies import audit, selectors, tasks, words
from policies.models import Cleanup, CleanupPod
from policies.services import cleanup as services
from policies.services.who import Who

OPERATE = "policies.operate_cleanup"
FILTERS = ("namespace", "owner", "owner_kind", "node", "reason")


class CleanupRow(msgspec.Struct):
    """A clean-up. preview: nothing was done; running, stopped, done: see `outcomes`."""

    id: int
    cluster: str
    state: Literal["preview", "running", "stopped", "done"]
    made: datetime
    made_by: str
    started: datetime | None
    started_by: str | None
    ended: datetime | None
    left_out: Annotated[int, Meta(description="pods beyond what one clean-up takes on")]
    missing: Annotated[list[str], Meta(description="rights that are missing; with any, nothing is deleted")]
    error: Annotated[str | None, Meta(description="why it does not get on at the moment")]
    address: shapes.Address


class CleanupReport(CleanupRow):
    """A clean-up with its pods counted."""

    pods: int
    outcomes: Annotated[
        dict[str, int],
        Meta(description="pods: waiting, asked, deleted, gone (already), changed (left alone), refused"),
    ]
    owners: Annotated[dict[str, int], Meta(description="pods by owner, most first, at most 50")]


class CleanupPodRow(msgspec.Struct):
    """What became of one pod."""

    namespace: str
    name: str
    uid: str
    node: str | None
    owner_kind: str | None
    owner: str | None
    reason: str
    outcome: Literal["waiting", "asked", "deleted", "gone", "changed", "refused"]
    cause: str | None
    at: datetime | None


class CleanupList(shapes.Page):
    results: list[CleanupRow]


class CleanupPods(shapes.Page):
    results: list[CleanupPodRow]


class CleanupFilter(df.FilterSet):
    """Clean-ups."""

    state = Several(field_name="state", choices=list(Cleanup.State.choices), label=_("State"))

    class Meta:
        model = Cleanup
        fields: list[str] = []


class PodFilter(df.FilterSet):
    """Pods of a clean-up."""

    outcome = Several(field_name="outcome", choices=list(CleanupPod.Outcome.choices), label=_("Outcome"))
    namespace = Several(field_name="namespace", label=_("Namespace"))

    class Meta:
        model = CleanupPod
        fields: list[str] = []


class PreviewBody(serializers.Serializer[Any]):
    """Of which lines of failures the pods are meant: names of a list mean any of them, an absent list means all."""

    namespace = serializers.ListField(
        child=serializers.CharField(max_length=253), required=False, max_length=100
    )
    owner = serializers.ListField(child=serializers.CharField(max_length=253), required=False, max_length=100)
    owner_kind = serializers.ListField(
        child=serializers.CharField(max_length=253), required=False, max_length=100
    )
    node = serializers.ListField(child=serializers.CharField(max_length=253), required=False, max_length=100)
    reason = serializers.ListField(
        child=serializers.CharField(max_length=253), required=False, max_length=100
    )


class StartBody(serializers.Serializer[Any]):
    """How many pods the preview has: whoever starts it has seen it."""

    pods = serializers.IntegerField(min_value=1, max_value=services.MOST)


class NoBody(serializers.Serializer[Any]):
    """Nothing."""


COLUMNS = rows.columns(
    CleanupRow,
    blank=("started_by",),
    renamed={"id": "pk", "cluster": "cluster__slug"},
    make=lambda keys, _moment: {
        "address": rows.path("clusters", keys["slug"], "cleanups", str(keys["key"])),
        "error": words.hindrance(keys["error"]) or None,
    },
    made=("address", "error"),
    needed={"key": "pk", "slug": "cluster__slug", "error": "error"},
)
POD_COLUMNS = rows.columns(
    CleanupPodRow,
    blank=("node", "owner_kind", "owner", "cause"),
    renamed={"node": "node_name", "owner": "owner_name"},
    make=lambda _keys, _moment: {},
    made=(),
    needed={"key": "pk"},
)


def cleanup_of(cluster: str, number: int) -> Cleanup:
    found = selectors.cleanups(base.cluster_of(cluster)).filter(pk=number).first()
    if found is None:
        raise NotFound(_("There is no such clean-up; cleanups/ lists them."))
    return found


def report(of: Cleanup) -> CleanupReport:
    counts = selectors.cleanup_counts(of)
    return CleanupReport(
        id=of.pk,
        cluster=of.cluster.slug,
        state=of.state,  # type: ignore[arg-type]  # the choices of the column
        made=of.made,
        made_by=of.made_by,
        started=of.started,
        started_by=of.started_by or None,
        ended=of.ended,
        left_out=of.left_out,
        missing=of.missing,
        error=words.hindrance(of.error) or None,
        address=rows.path("clusters", of.cluster.slug, "cleanups", str(of.pk)),
        pods=sum(counts.values()),
        outcomes=counts,
        owners=selectors.cleanup_owners(of),
    )


def answered(of: Cleanup, status: int = 200) -> HttpResponse:
    response = HttpResponse(encode(report(of)), content_type=base.JSON, status=status)
    response["Cache-Control"] = "no-store"
    return response


def refuse(error: services.CleanupError) -> NoReturn:
    raise base.Conflict(" ".join(words.obstacle(error.code, error.cause)))


def who(request: Request) -> Who:
    return Who(audit.actor(request), request.META.get("REMOTE_ADDR", ""))


class Operating(base.ApiView):
    """What operators may do."""

    required_permission = OPERATE
    required_scope = "operate"


class Cleanups(Operating, lists.ListView):
    """Clean-ups of failed pods of a cluster"""

    answers = {"GET": CleanupList, "POST": CleanupReport}
    accepts = {"POST": PreviewBody}
    columns, sorts, filterset, sort = COLUMNS, {"id": "id", "made": "made"}, CleanupFilter, "-id"
    parameters = lists.asked(CleanupFilter, {"id": "id", "made": "made"}, COLUMNS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        assert cluster is not None
        return selectors.cleanups(cluster)

    def post(self, request: Request, cluster: str) -> HttpResponse:
        """Looks at failed pods and writes down which would go (operators). Nothing is deleted."""
        of = base.cluster_of(cluster)
        query = QueryDict(mutable=True)
        for name, values in self.body(request).items():
            query.setlist(name, values)
        form = FailureFilter(query, failures.lines(of))
        if not form.is_valid():
            raise ValidationError(form.errors)
        try:
            made = services.preview(of, form.qs, who(request), timezone.now())
        except services.CleanupError as error:
            refuse(error)
        response = answered(made, 201)
        response["Location"] = rows.path("clusters", of.slug, "cleanups", str(made.pk))
        return response


class CleanupDetail(base.ApiView):
    """A clean-up of failed pods and how far it is"""

    answers = {"GET": CleanupReport}

    def get(self, request: Request, cluster: str, cleanup: int) -> HttpResponse:
        return base.respond(request, report(cleanup_of(cluster, cleanup)))


class StartCleanup(Operating):
    """Deletes the pods of a preview, in the background (operators)"""

    answers = {"POST": CleanupReport}
    accepts = {"POST": StartBody}
    done = {"POST": 200}

    def post(self, request: Request, cluster: str, cleanup: int) -> HttpResponse:
        of = cleanup_of(cluster, cleanup)
        if self.body(request)["pods"] != of.pods.count():
            raise ValidationError({"pods": [" ".join(words.obstacle("count"))]})
        try:
            services.start(of, who(request), timezone.now())
        except services.CleanupError as error:
            refuse(error)
        tasks.offer(of.pk)
        return answered(cleanup_of(cluster, cleanup))


class StopCleanup(Operating):
    """Stops a clean-up; what is deleted stays deleted (operators)"""

    answers = {"POST": CleanupReport}
    accepts = {"POST": NoBody}
    done = {"POST": 200}

    def post(self, request: Request, cluster: str, cleanup: int) -> HttpResponse:
        of = cleanup_of(cluster, cleanup)
        try:
            services.stop(of, who(request), timezone.now())
        except services.CleanupError as error:
            refuse(error)
        return answered(cleanup_of(cluster, cleanup))


class CleanedPods(lists.ListView):
    """The pods of a clean-up and what became of each"""

    answers = {"GET": CleanupPods}
    columns, sorts, filterset, sort = POD_COLUMNS, {"id": "id"}, PodFilter, "id"
    parameters = lists.asked(PodFilter, {"id": "id"}, POD_COLUMNS.names())

    def found(self, cluster: Cluster | None, **named: str) -> QuerySet[Any]:
        assert cluster is not None
        number = int(named["cleanup"])
        if not selectors.cleanups(cluster).filter(pk=number).exists():
            raise NotFound(_("There is no such clean-up; cleanups/ lists them."))
        return CleanupPod.objects.filter(cleanup=number)
