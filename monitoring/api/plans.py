"""Plans and the linter by REST: a manifest goes in, an answer for each node comes out. Reads and judges, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request

from monitoring import hot, selectors
from monitoring.api import base
from monitoring.api.explicit import encode
from monitoring.figures import causes, manifests, plananswers, planshapes
from monitoring.models import Cluster
from monitoring.selectors import planning
from monitoring.selectors.planning import Question
from monitoring.selectors.planning.question import MOST_REPLICAS, MOST_WEIGHT, POLICIES, SCOPES
from monitoring.sources import manifest as source
from numacore import manifest
from numacore.manifest import Group, ManifestError

SECONDS = 10.0
"""So long nodes are judged for one answer, over all groups."""
MOST_NAMES = 1000
MOST_GROUPS = 20
"""Workloads of one request."""


class Unavailable(APIException):
    """The newest state cannot be read at the moment."""

    status_code = 503
    default_code = "unavailable"


class ManifestBody(base.JsonBody):
    """A body with a manifest in it."""

    most = 2 * source.MOST_CHARACTERS


class PlanBody(serializers.Serializer[Any]):
    """A manifest (YAML or JSON as a text, or a document, or a list of documents) and on which nodes it is judged."""

    manifest = serializers.JSONField()
    nodes = serializers.ListField(
        child=serializers.CharField(max_length=253), required=False, max_length=MOST_NAMES
    )
    find = serializers.CharField(max_length=253, required=False, allow_blank=True)
    on = serializers.ChoiceField(choices=POLICIES, required=False)
    policy = serializers.ChoiceField(choices=POLICIES, required=False)
    scope = serializers.ChoiceField(choices=SCOPES, required=False)
    replicas = serializers.IntegerField(min_value=1, max_value=MOST_REPLICAS, required=False)
    together = serializers.BooleanField(
        required=False, help_text="workloads stand on a node one after the other, in the manifest's order"
    )
    weight = serializers.CharField(
        max_length=MOST_WEIGHT,
        required=False,
        allow_blank=True,
        help_text="of numa-aware, as it is written behind `weight:` in the scheduler's configuration",
    )
    trace = serializers.BooleanField(
        required=False,
        help_text=f"how each answer came about, what else may come of it, and what would make it fit: for at most {plananswers.MOST_TRACED} nodes",
    )


class ClusterPlanBody(PlanBody):
    """The same, with the cluster where there are several."""

    cluster = serializers.SlugField(max_length=63, required=False)


class Judging(base.ApiView):
    """A question by POST that changes nothing: who may read may ask."""

    done = {"POST": 200}
    parser_classes = [ManifestBody]
    required_permission = "monitoring.view_cluster"
    required_scope = "read"

    def asked(self, request: Request) -> dict[str, Any]:
        """The body, checked; a field that does not exist is refused: it may be a misspelt one."""
        form = self.accepts["POST"](data=request.data)
        form.is_valid(raise_exception=True)
        if unknown := sorted(set(request.data) - set(form.fields)):
            text = _("There is no such field; there are: %(names)s.") % {"names": ", ".join(form.fields)}
            raise ValidationError({str(name)[:100]: [text] for name in unknown[:20]})
        return dict(form.validated_data)

    def answered(self, request: Request, cluster: str | None) -> HttpResponse:
        asked = self.asked(request)
        of = cluster_named(asked.pop("cluster", None)) if cluster is None else base.cluster_of(cluster)
        groups = groups_of(asked.pop("manifest"))
        names = tuple(asked.pop("nodes", ()))
        traced = bool(asked.pop("trace", False))
        question = Question(names=names, **{name: value for name, value in asked.items() if value != ""})
        try:
            value = self.judged(of, groups, question, traced)
        except planning.UnknownNodesError as error:
            text = _("There is no current node “%(node)s” in this cluster.")
            raise ValidationError({"nodes": [text % {"node": name} for name in error.names[:20]]}) from None
        except hot.StoreError as error:
            raise Unavailable(
                _("The store of live data cannot be reached: %(cause)s") % {"cause": causes.said(str(error))}
            ) from None
        response = HttpResponse(encode(value), content_type=base.JSON)
        response["Cache-Control"] = "no-store"
        return response

    def judged(self, cluster: Cluster, groups: Sequence[Group], question: Question, traced: bool) -> Any:
        raise NotImplementedError


class Plan(Judging):
    """Where the pods of a manifest would go in this cluster, and why not elsewhere"""

    answers = {"POST": planshapes.PlanAnswer}
    accepts = {"POST": PlanBody}

    def post(self, request: Request, cluster: str) -> HttpResponse:
        return self.answered(request, cluster)

    def judged(
        self, cluster: Cluster, groups: Sequence[Group], question: Question, traced: bool
    ) -> planshapes.PlanAnswer:
        return plananswers.answer(cluster, groups, question, traced, SECONDS)


class AnyPlan(Plan):
    """Where the pods of a manifest would go, and why not elsewhere"""

    accepts = {"POST": ClusterPlanBody}

    def post(self, request: Request) -> HttpResponse:  # type: ignore[override]  # no cluster in the address
        return self.answered(request, None)


class Lint(Judging):
    """What is wrong with the workloads of a manifest, by the capacity of this cluster's nodes"""

    answers = {"POST": planshapes.LintAnswer}
    accepts = {"POST": PlanBody}

    def post(self, request: Request, cluster: str) -> HttpResponse:
        return self.answered(request, cluster)

    def judged(
        self, cluster: Cluster, groups: Sequence[Group], question: Question, _traced: bool
    ) -> planshapes.LintAnswer:
        return plananswers.linted(cluster, groups, question)


class AnyLint(Lint):
    """What is wrong with the workloads of a manifest"""

    accepts = {"POST": ClusterPlanBody}

    def post(self, request: Request) -> HttpResponse:  # type: ignore[override]  # no cluster in the address
        return self.answered(request, None)


def cluster_named(slug: str | None) -> Cluster:
    """The named cluster, else the only one. Raises ValidationError."""
    known = {each.cluster.slug: each.cluster for each in selectors.clusters()}
    if slug is None and len(known) == 1:
        return next(iter(known.values()))
    if slug is None or slug not in known:
        text = _("Name one of the clusters: %(names)s.")
        raise ValidationError({"cluster": [text % {"names": ", ".join(known) or "-"}]})
    return known[slug]


def groups_of(given: Any) -> tuple[Group, ...]:
    """The groups of a manifest. Raises ValidationError, which names every fault."""
    reading: Callable[[Any], tuple[Group, ...]] = source.read if isinstance(given, str) else manifest.read
    try:
        found = reading(given if isinstance(given, str | list) else [given])
    except ManifestError as error:
        raise ValidationError({"manifest": [fault(each) for each in error.faults[:100]]}) from None
    if len(found) > MOST_GROUPS:
        text = _("%(found)d workloads; at most %(most)d are judged at a time.")
        raise ValidationError({"manifest": [text % {"found": len(found), "most": MOST_GROUPS}]})
    return found


def fault(of: manifest.Fault) -> dict[str, str]:
    said = manifests.fault(of)
    return {
        "document": str(of.document),
        "field": of.field,
        "code": of.reason.code,
        "text": said.text,
        "remedy": said.remedy,
    }
