"""Affinity policies and node pools by REST: what is wanted, written down by administrators; what would come of it, for operators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotFound, PermissionDenied, ValidationError
from rest_framework.request import Request

from monitoring import hot
from monitoring.api import base, document, rows, shapes
from monitoring.api.explicit import encode
from monitoring.models import Cluster
from numacore.change import wish as wishes
from numacore.change.wish import Wish
from numacore.kubelet.checks.findings import Finding
from policies import audit, selectors
from policies.models import Policy, Pool
from policies.selectors import Previewed
from policies.services import policy as services
from policies.services.policy import PolicyError, Target
from policies.services.who import Who
from policies.words import changing, findings
from policies.words import policy as words

PREVIEW = "policies.operate_preview"
MOST_PREVIEWED = 20
Level = Literal["cluster", "pool", "node"]


class PolicyRow(msgspec.Struct):
    """What is wanted of a target's nodes. `wish` has only what is wanted."""

    id: int
    level: Level
    target: Annotated[str | None, Meta(description="name of the pool or node; null = the whole cluster")]
    on: bool
    wish: dict[str, Any]
    version: int
    changed: datetime
    changed_by: str
    address: shapes.Address


class PolicyList(msgspec.Struct):
    results: list[PolicyRow]


class VersionRow(msgspec.Struct):
    """A version that a policy has or had."""

    version: int
    at: datetime
    by: str
    on: bool
    wish: dict[str, Any]


class VersionList(msgspec.Struct):
    results: list[VersionRow]


class DifferenceRow(msgspec.Struct):
    """A setting that is not known to be as wanted."""

    field: str
    is_now: Annotated[
        str | None, Meta(description="as somebody would write it, empty = not set; null = unknown")
    ]
    wanted: str


class StandingRow(msgspec.Struct):
    """Where a node stands beside what is wanted of it. nothing: nobody wants anything; frozen: its pools share nodes with others."""

    node: str
    state: Literal["agrees", "differs", "unknown", "frozen", "nothing"]
    topology_policy: Annotated[str | None, Meta(description="in force by its newest report")]
    policy: Annotated[int | None, Meta(description="the policy that counts for it")]
    level: Level | None
    target: str | None
    frozen: Annotated[list[str], Meta(description="its pools that have come to share nodes with another")]
    differences: list[DifferenceRow]


class StandingList(msgspec.Struct):
    counts: Annotated[dict[str, int], Meta(description="nodes of the whole cluster by state")]
    results: list[StandingRow]


class PoolRow(msgspec.Struct):
    """Nodes that are treated alike, by their labels."""

    name: str
    selector: str
    version: int
    changed: datetime
    changed_by: str
    nodes: Annotated[list[str], Meta(description="names of the nodes that it has now")]
    frozen: Annotated[bool, Meta(description="it has come to share nodes with another pool")]
    address: shapes.Address


class PoolList(msgspec.Struct):
    results: list[PoolRow]


class StateFileRow(msgspec.Struct):
    file: str
    why: str


class PodLost(msgspec.Struct):
    uid: str
    name: str
    why: str
    words: Annotated[str, Meta(description="the kubelet's own")]


class FindingRow(msgspec.Struct):
    """What the checks say to the new settings that they do not say to the present ones."""

    severity: Literal["crash", "fatal", "silent", "warning"]
    field: str
    code: str
    why: str
    remedy: str
    words: Annotated[str, Meta(description="the kubelet's own")]


class PreviewRow(msgspec.Struct):
    """What a policy would come to on one node. refused: it cannot be done there; loses: pods would not come back."""

    node: str
    outcome: Literal["crashes", "refused", "loses", "changes", "nothing", "unknown"]
    age: Annotated[float | None, Meta(description="seconds since its exporter answered; null = it never did")]
    refusals: list[str]
    notes: list[str]
    path: str | None
    diff: Annotated[list[str], Meta(description="lines of a unified difference")]
    state_files: list[StateFileRow]
    lost: list[PodLost]
    findings: list[FindingRow]
    before: Annotated[str | None, Meta(description="SHA-256 of the file as it stands")]
    after: Annotated[str | None, Meta(description="SHA-256 of the file as it would be")]


class PreviewList(msgspec.Struct):
    total: Annotated[int, Meta(description="nodes that the policy counts for")]
    results: list[PreviewRow]


class PolicyBody(serializers.Serializer[Any]):
    """A policy. `target` is the name of a pool or node, and empty for the whole cluster; `wish` has the fields of a policy's form."""

    level = serializers.ChoiceField(choices=Policy.Level.choices)
    target = serializers.CharField(max_length=253, required=False, allow_blank=True, default="")
    on = serializers.BooleanField(default=False)
    wish = serializers.DictField()


class PolicyPatch(serializers.Serializer[Any]):
    """What of a policy is to change. A wish takes the place of the whole one before."""

    on = serializers.BooleanField(required=False)
    wish = serializers.DictField(required=False)


class PoolBody(serializers.Serializer[Any]):
    """A pool: its name stays, its label selector is written as Kubernetes does."""

    name = serializers.SlugField(max_length=63)
    selector = serializers.CharField(max_length=1000)


class PoolPatch(serializers.Serializer[Any]):
    """What of a pool is to change."""

    selector = serializers.CharField(max_length=1000)


class Unread(APIException):
    """The newest state of the nodes cannot be read."""

    status_code = 503
    default_code = "unavailable"


class Writing(base.ApiView):
    """Everybody reads, administrators write."""

    required_permission = "policies.change_policy"


def who(request: Request) -> Who:
    return Who(audit.actor(request), request.META.get("REMOTE_ADDR", ""))


def wish_of(given: dict[str, Any]) -> Wish:
    try:
        return wishes.read(given)
    except msgspec.ValidationError as error:
        raise ValidationError({"wish": [str(error)]}) from None


def refuse(error: PolicyError) -> NoReturn:
    said = " ".join(words.obstacle(error.code, error.cause))
    match error.code:
        case "wish":
            raise ValidationError({f"wish.{each.field}": [words.fault(each)] for each in error.faults})
        case "selector" | "no-pool" | "no-node":
            raise ValidationError({error.field: [said]})
        case "overlap":
            shared = [words.overlap(each.pools, each.nodes) for each in error.overlaps]
            raise ValidationError({"selector": [said, *shared]})
    raise base.Conflict(said)


def policy_row(of: Policy) -> PolicyRow:
    return PolicyRow(
        id=of.pk,
        level=of.level,  # type: ignore[arg-type]  # the choices of the column
        target=of.target or None,
        on=of.on,
        wish=of.wish,
        version=of.version,
        changed=of.changed,
        changed_by=of.changed_by,
        address=rows.path("clusters", of.cluster.slug, "policies", str(of.pk)),
    )


def pool_row(of: Pool, inside: set[str], frozen: bool) -> PoolRow:
    return PoolRow(
        name=of.name,
        selector=of.selector,
        version=of.version,
        changed=of.changed,
        changed_by=of.changed_by,
        nodes=sorted(inside),
        frozen=frozen,
        address=rows.path("clusters", of.cluster.slug, "pools", of.name),
    )


def pool_rows(cluster: Cluster) -> list[PoolRow]:
    pools = list(Pool.objects.filter(cluster=cluster).select_related("cluster"))
    inside = selectors.members(cluster, pools)
    frozen = {name for each in selectors.overlaps(inside) for name in each.pools}
    return [pool_row(each, inside[each.name], each.name in frozen) for each in pools]


def answered(row: PolicyRow | PoolRow, status: int = 200) -> HttpResponse:
    """With the ETag that a change has to name: its version."""
    response = HttpResponse(encode(row), content_type=base.JSON, status=status)
    return base.headed(response, f'"{row.version}"')


def policy_of(cluster: Cluster, number: int) -> Policy:
    found = Policy.objects.filter(cluster=cluster, pk=number).select_related("cluster", "pool").first()
    if found is None:
        raise NotFound(_("There is no such policy; policies/ lists them."))
    return found


def pool_of(cluster: Cluster, name: str) -> Pool:
    found = Pool.objects.filter(cluster=cluster, name=name).select_related("cluster").first()
    if found is None:
        raise NotFound(_("There is no such pool; pools/ lists them."))
    return found


class Policies(Writing):
    """Affinity policies of a cluster"""

    answers = {"GET": PolicyList, "POST": PolicyRow}
    accepts = {"POST": PolicyBody}

    def get(self, request: Request, cluster: str) -> HttpResponse:
        found = Policy.objects.filter(cluster=base.cluster_of(cluster)).select_related("cluster", "pool")
        return base.respond(request, PolicyList([policy_row(each) for each in found]))

    def post(self, request: Request, cluster: str) -> HttpResponse:
        """Writes down a policy for a target that has none (administrators). No node changes by that."""
        of, given = base.cluster_of(cluster), self.body(request)
        target, wish = Target(given["level"], given["target"]), wish_of(given["wish"])
        try:
            made = services.save(of, target, wish, given["on"], who(request), timezone.now())
        except PolicyError as error:
            refuse(error)
        response = answered(policy_row(made), 201)
        response["Location"] = rows.path("clusters", of.slug, "policies", str(made.pk))
        return response


class PolicyDetail(Writing):
    """An affinity policy"""

    answers = {"GET": PolicyRow, "PATCH": PolicyRow}
    accepts = {"PATCH": PolicyPatch}

    def get(self, _request: Request, cluster: str, policy: int) -> HttpResponse:
        return answered(policy_row(policy_of(base.cluster_of(cluster), policy)))

    def patch(self, request: Request, cluster: str, policy: int) -> HttpResponse:
        """Writes down another version of a policy, or switches it on or off (administrators). No node changes by that."""
        of = base.cluster_of(cluster)
        held, given = policy_of(of, policy), self.body(request)
        base.check_version(request, str(held.version))
        wish = wish_of(given.get("wish", held.wish))
        target = Target(held.level, held.target)
        try:
            made = services.save(
                of, target, wish, given.get("on", held.on), who(request), timezone.now(), held.version
            )
        except PolicyError as error:
            refuse(error)
        return answered(policy_row(made))


class Versions(base.ApiView):
    """The versions of an affinity policy, newest first"""

    answers = {"GET": VersionList}

    def get(self, request: Request, cluster: str, policy: int) -> HttpResponse:
        of = policy_of(base.cluster_of(cluster), policy)
        found = [VersionRow(each.version, each.at, each.by, each.on, each.wish) for each in of.versions.all()]
        return base.respond(request, VersionList(found))


class Standing(base.ApiView):
    """Where every node of a cluster stands beside what is wanted of it"""

    answers = {"GET": StandingList}
    parameters = (
        OpenApiParameter("state", enum=list(selectors.STATES), description="Only nodes in this state."),
    )

    def get(self, request: Request, cluster: str) -> HttpResponse:
        state = request.query_params.get("state")
        if state is not None and state not in selectors.STATES:
            raise ValidationError(
                {"state": [_("One of: %(names)s.") % {"names": ", ".join(selectors.STATES)}]}
            )
        found = selectors.standing(base.cluster_of(cluster))
        shown = [standing_row(each) for each in found if state in (None, each.state)]
        return base.respond(request, StandingList(dict(selectors.counts(found).items()), shown))


def standing_row(of: selectors.Standing) -> StandingRow:
    policy = of.applied.policy
    return StandingRow(
        node=of.node,
        state=of.state,
        topology_policy=of.topology_policy or None,
        policy=policy.pk if policy else None,
        level=policy.level if policy else None,  # type: ignore[arg-type]  # the choices of the column
        target=policy.target or None if policy else None,
        frozen=list(of.applied.frozen),
        differences=[DifferenceRow(each.field, each.is_now, each.wanted) for each in of.differences],
    )


class Preview(base.ApiView):
    """What a policy would come to on the nodes that it counts for, or would if it were on (operators)"""

    answers = {"GET": PreviewList}
    parameters = (
        document.number("offset", 0, 999_999, "How many nodes, by name, are left out before the first."),
    )

    def get(self, request: Request, cluster: str, policy: int) -> HttpResponse:
        if not request.user.has_perm(PREVIEW):
            raise PermissionDenied
        of = base.cluster_of(cluster)
        held = policy_of(of, policy)
        start = base.number(request, "offset", 0, 0, 999_999)
        names = selectors.reached(of, held)
        try:
            found = selectors.preview(of, held, names[start : start + MOST_PREVIEWED], timezone.now())
        except hot.StoreError:
            raise Unread(_("The newest state of the nodes cannot be read; try again later.")) from None
        return base.respond(request, PreviewList(len(names), [preview_row(each) for each in found]))


def preview_row(of: Previewed) -> PreviewRow:
    change = of.change
    if change is None:
        why = [changing.said(of.problem).text] if of.problem else []
        return PreviewRow(of.node, of.outcome, of.age, why, [], None, [], [], [], [], None, None)
    restart = words.restart(change.changed, of.names, "") if change.changed and change.diff else None
    return PreviewRow(
        node=of.node,
        outcome=of.outcome,
        age=of.age,
        refusals=[changing.said(each).text for each in change.refusals],
        notes=[changing.said(each).text for each in (*change.notes, *change.assumed)],
        path=change.path or None,
        diff=list(change.diff),
        state_files=[StateFileRow(each.file, changing.said(each.reason).text) for each in change.state_files],
        lost=[PodLost(each.uid, each.name, each.text, each.words) for each in restart.lost]
        if restart
        else [],
        findings=[finding_row(each) for each in change.findings],
        before=change.before or None,
        after=change.after or None,
    )


def finding_row(of: Finding) -> FindingRow:
    said = findings.shown(of)
    return FindingRow(of.severity, of.field, of.reason.code, said.text, said.remedy, said.words)


class Pools(Writing):
    """Node pools of a cluster"""

    answers = {"GET": PoolList, "POST": PoolRow}
    accepts = {"POST": PoolBody}

    def get(self, request: Request, cluster: str) -> HttpResponse:
        return base.respond(request, PoolList(pool_rows(base.cluster_of(cluster))))

    def post(self, request: Request, cluster: str) -> HttpResponse:
        """Makes a pool (administrators)"""
        of, given = base.cluster_of(cluster), self.body(request)
        try:
            made = services.save_pool(of, given["name"], given["selector"], who(request), timezone.now())
        except PolicyError as error:
            refuse(error)
        response = answered(row_of(of, made.name), 201)
        response["Location"] = rows.path("clusters", of.slug, "pools", made.name)
        return response


def row_of(cluster: Cluster, name: str) -> PoolRow:
    return next(each for each in pool_rows(cluster) if each.name == name)


class PoolDetail(Writing):
    """A node pool"""

    answers = {"GET": PoolRow, "PATCH": PoolRow, "DELETE": None}
    accepts = {"PATCH": PoolPatch}

    def get(self, _request: Request, cluster: str, pool: str) -> HttpResponse:
        of = base.cluster_of(cluster)
        return answered(row_of(of, pool_of(of, pool).name))

    def patch(self, request: Request, cluster: str, pool: str) -> HttpResponse:
        """Gives a pool another label selector (administrators)"""
        of = base.cluster_of(cluster)
        held, given = pool_of(of, pool), self.body(request)
        base.check_version(request, str(held.version))
        try:
            services.save_pool(of, held.name, given["selector"], who(request), timezone.now(), held.version)
        except PolicyError as error:
            refuse(error)
        return answered(row_of(of, held.name))

    def delete(self, request: Request, cluster: str, pool: str) -> HttpResponse:
        """Takes a pool away for which there is no policy (administrators)"""
        held = pool_of(base.cluster_of(cluster), pool)
        base.check_version(request, str(held.version))
        try:
            services.remove_pool(held, who(request))
        except PolicyError as error:
            refuse(error)
        return HttpResponse(status=204)
