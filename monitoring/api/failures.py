"""Refused pods by REST: the lines of the Failures page, each with its explanation as values and in words; and what does not start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from django.db.models import QuerySet
from django.http import HttpResponse
from msgspec import Meta
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from monitoring import filters
from monitoring.api import base, document, lists, rows, shapes
from monitoring.figures import evidence, verdicts
from monitoring.figures import failures as words
from monitoring.figures.why import Why
from monitoring.models import Cluster
from monitoring.selectors import failures
from numacore.diagnosis import Reason
from numacore.kubelet.advice import Fit

MOST_STARTING = 1000
"""Groups of one answer."""


class FailureAdvice(msgspec.Struct):
    """One change with which the pod would have fitted: a smaller request, another setting, a pod that leaves."""

    kind: Literal["request", "setting", "leaving"]
    container: str | None
    name: Annotated[str | None, Meta(description="resource or setting")]
    value: Annotated[str | None, Meta(description="amount, value, or uid of the pod")]
    text: str


class FailureExplanation(msgspec.Struct):
    """What the engine says of the newest judged pod. admitted = the node has room by now, or what is not judged was in the way."""

    state: Literal["refused", "admitted", "crash"]
    text: str
    why: list[Why]
    advice: list[FailureAdvice]
    advice_complete: Annotated[
        bool, Meta(description="false: not every smaller request that may help was tried")
    ]
    assumed: list[Why]
    judged: datetime | None
    state_age: Annotated[float | None, Meta(description="seconds that the node's state was old")]


class FailureRow(msgspec.Struct):
    """Pods of one owner that one node's kubelet refused for one reason. `explanation` null = nobody can explain, see `obstacle`."""

    namespace: str
    owner_kind: str
    owner: str
    node: str
    reason: str
    count: Annotated[int, Meta(description="pods that were ever seen refused")]
    remaining: Annotated[int, Meta(description="pods that are still there")]
    first: datetime
    last: datetime
    last_pod: str | None
    message: Annotated[str | None, Meta(description="the kubelet's own words about the newest pod")]
    explanation: FailureExplanation | None
    obstacle: Why | None


class FailurePage(shapes.Page):
    results: list[FailureRow]


class StartingRow(msgspec.Struct):
    """Pods of one owner on one node that were admitted and do not start."""

    namespace: str
    owner_kind: str
    owner: str
    node: str | None
    reason: str
    text: str
    pods: int
    first: datetime | None
    last: datetime | None
    example: Annotated[str, Meta(description="one of the pods")]


class StartingList(msgspec.Struct):
    """Most pods first."""

    results: list[StartingRow]


NOTHING_KNOWN: Mapping[Any, Any] = {}


def made(keys: rows.Keys, there: Mapping[failures.Key, int], names: Mapping[str, str]) -> rows.Row:
    """What of a row is made of others."""
    key = failures.Key(*(keys[name] for name in failures.KEY))
    late = keys["judged"] is not None and keys["judged"] < keys["last"]
    told = words.told(keys["verdict"], keys["obstacle"], keys["state_age"], names, late=late)
    found = words.explanation(keys["verdict"])
    if found is None:
        code = words.OUTDATED if keys["verdict"] is not None else keys["obstacle"] or "unjudged-many"
        why = Why(code, told.said.text, told.said.remedy or None)
        return {"remaining": there.get(key, 0), "explanation": None, "obstacle": why}
    explanation = FailureExplanation(
        state=found.state,
        text=f"{told.said.text} {told.when}".strip(),
        why=[why_of(each) for each in found.why],
        advice=[advice_of(each, names) for each in found.advice],
        advice_complete=found.advice_complete,
        assumed=[why_of(each) for each in found.assumed],
        judged=keys["judged"],
        state_age=keys["state_age"],
    )
    return {"remaining": there.get(key, 0), "explanation": explanation, "obstacle": None}


def why_of(each: Reason) -> Why:
    said = verdicts.reason(each)
    return Why(each.code, said.text, said.remedy or None)


def advice_of(fit: Fit, names: Mapping[str, str]) -> FailureAdvice:
    return FailureAdvice(
        kind=fit.kind,
        container=fit.container or None,
        name=fit.name or None,
        value=fit.value or None,
        text=evidence.advice(fit, names),
    )


COLUMNS = rows.columns(
    FailureRow,
    blank=("last_pod", "message"),
    renamed={"owner": "owner_name", "node": "node_name"},
    make=lambda keys, _moment: made(keys, NOTHING_KNOWN, NOTHING_KNOWN),
    made=("remaining", "explanation", "obstacle"),
    needed={name: name for name in (*failures.KEY, "verdict", "obstacle", "state_age", "judged", "last")},
)
SORTS = {name: name for name in ("last", "first", "count", "namespace", "reason")} | {
    "owner": "owner_name",
    "node": "node_name",
}


class Failures(lists.ListView):
    """Pods that kubelets of a cluster refused, a line for each owner, node and reason, explained"""

    answers = {"GET": FailurePage}
    columns, sorts, filterset, sort = COLUMNS, SORTS, filters.FailureFilter, "-last"
    parameters = lists.asked(filters.FailureFilter, SORTS, COLUMNS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        assert cluster is not None
        self.cluster = cluster.pk
        return failures.lines(cluster)

    def results(self, chosen: rows.Columns, found: Sequence[Sequence[Any]]) -> list[rows.Row]:
        """What pods are still there and what they are called is looked up once for the whole page."""
        keys = [dict(zip(chosen.needed, each[len(chosen.stored) :], strict=True)) for each in found]
        there = failures.still(self.cluster, {each["node_name"] for each in keys})
        names = failures.names(self.cluster, words.leaving(each["verdict"] for each in keys))
        known = chosen._replace(make=lambda keys, _moment: made(keys, there, names))
        return super().results(known, found)


class StartingPods(base.ApiView):
    """Pods of a cluster that were admitted and do not start, by owner, node and reason

    At most 1000 groups; a filter finds the others.
    """

    answers = {"GET": StartingList}
    parameters = document.parameters_of(filters.StartFilter)

    def get(self, request: Request, cluster: str) -> HttpResponse:
        pods = failures.starting(base.cluster_of(cluster))
        form = filters.StartFilter(request.query_params, queryset=pods)
        if not form.is_valid():
            raise ValidationError(form.errors)
        found = failures.grouped(form.qs).order_by("-pods", *failures.OWNED)[:MOST_STARTING]
        return base.respond(request, StartingList([starting_row(each) for each in found]))


def starting_row(of: Mapping[str, Any]) -> StartingRow:
    return StartingRow(
        namespace=of["namespace"],
        owner_kind=of["line_kind"],
        owner=of["line_name"],
        node=of["node_name"] or None,
        reason=of["reason"],
        text=words.start_failure(of["reason"]),
        pods=of["pods"],
        first=of["first"],
        last=of["last"],
        example=of["example"],
    )
