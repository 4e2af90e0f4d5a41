"""Rollouts by REST: a plan is asked for and confirmed, a rollout steered, every node and every act read.

Two people who steer the same one: who has not seen its newest state hears of it (412). Its ETag is "STATE.PROGRESS"; an If-Match is
held against the part before the dot, so that progress alone stands in nobody's way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NoReturn

import django_filters as df
import msgspec
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils import timezone
from django.utils.http import parse_etags
from django.utils.translation import gettext_lazy as _
from msgspec import Meta
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request

from monitoring.api import base, lists, rows, shapes
from monitoring.api.explicit import encode
from monitoring.filters import Several
from monitoring.models import Cluster
from numacore.diagnosis import Reason
from policies import audit, selectors, tasks
from policies.models import Act, Original, Policy, Rollout, RolloutNode
from policies.plan import Options, PlannedNode
from policies.services.rollout import control
from policies.services.rollout.error import RolloutError
from policies.services.who import Who
from policies.words import rollout as words

OPERATE, CONFIRM = "policies.operate_rollout", "policies.confirm_rollout"
State = Literal[
    "planning",
    "planned",
    "discarded",
    "running",
    "paused",
    "stopping",
    "stopped",
    "returning",
    "returned",
    "done",
]
Step = Literal[
    "waiting",
    "preflight",
    "cordon",
    "drain",
    "apply",
    "verify",
    "undo",
    "confirm",
    "uncordon",
    "ended",
]
Outcome = Literal["changed", "unchanged", "skipped", "failed", "lost", "returned"]


class Cause(msgspec.Struct):
    """Why: a code with its values, and both in words."""

    code: str
    values: dict[str, str | int | float]
    text: str
    remedy: str | None


class RolloutRow(msgspec.Struct):
    """A rollout. planned: it waits for a confirmation; stopped, returned, done: it has ended."""

    id: int
    cluster: str
    level: Annotated[
        Literal["cluster", "pool", "node", "changed"],
        Meta(
            description="changed: without a policy, all nodes that numaweb changed go back to their originals"
        ),
    ]
    target: Annotated[str | None, Meta(description="name of the pool or node; null = the whole cluster")]
    version: Annotated[int, Meta(description="of the policy; 0 = there is none")]
    state: State
    made: datetime
    made_by: str
    planned: Annotated[datetime | None, Meta(description="since when its plan may be confirmed")]
    confirmed: datetime | None
    confirmed_by: str | None
    changed: Annotated[datetime, Meta(description="when its state changed last")]
    ended: datetime | None
    address: shapes.Address


class LeftOutRow(msgspec.Struct):
    node: str
    why: Cause


class BatchRow(msgspec.Struct):
    """One batch; 0 = the canary."""

    number: int
    nodes: int
    ended: int
    at_work: int
    bad: Annotated[int, Meta(description="failed or lost")]


class RolloutReport(RolloutRow):
    """A rollout with its plan and how far it is."""

    options: Options
    plan_hash: Annotated[str | None, Meta(description="what a confirmation has to name")]
    old: Annotated[bool, Meta(description="its plan is too old to be confirmed")]
    nodes: int
    looked_at: Annotated[int, Meta(description="nodes that are looked at, while the plan is made")]
    to_look_at: int
    outcomes: Annotated[dict[str, int], Meta(description="nodes that have ended, by what came of them")]
    at_work: int
    waiting: int
    batches: list[BatchRow]
    cause: Annotated[Cause | None, Meta(description="why it stopped, or could not be planned")]
    waits_for: Annotated[Cause | None, Meta(description="why nothing happens at the moment")]
    warnings: list[Cause]
    left_out: list[LeftOutRow]


class RolloutNodeRow(msgspec.Struct):
    """A node of a rollout: what the plan has for it, where it stands, what came of it."""

    name: str
    uid: str
    position: int
    batch: int
    step: Step
    outcome: Outcome | None
    back: Annotated[bool, Meta(description="it goes back to what stood before this rollout")]
    cause: Cause | None
    words: Annotated[str | None, Meta(description="what the node's own system said, in English")]
    epoch: int | None
    tries: int
    cordoned: Annotated[bool, Meta(description="by this rollout, and not yet released")]
    ended: datetime | None
    act: Literal["apply", "restore"] | None
    path: str | None
    before: Annotated[str | None, Meta(description="SHA-256 of the file as it stood; empty = there was none")]
    after: Annotated[str | None, Meta(description="SHA-256 of the file as it is to be")]
    present: Annotated[dict[str, Any], Meta(description="fields as they were in force; null = the default")]
    intended: Annotated[dict[str, Any], Meta(description="the same fields as they are to be")]
    state_files: list[str]
    lost: Annotated[list[str], Meta(description="pods that would not be admitted again if they ran on")]
    moved: Annotated[int | None, Meta(description="pods that a drain moves")]
    stays: Annotated[list[Cause], Meta(description="pods that a drain does not move, and why")]


class ActRow(msgspec.Struct):
    """One act on a node, written down before it was done; of kind note: something that was seen."""

    kind: str
    subject: str | None
    epoch: int
    tries: int
    state: Literal["begun", "done", "failed"]
    at: datetime
    ended: datetime | None
    said: Cause | None


class ChangedRow(msgspec.Struct):
    """A node's file that stands as numaweb changed it."""

    id: int
    node: str
    uid: str
    path: str
    drop_in: Annotated[bool, Meta(description="it is a drop-in of numaweb's own")]
    sha256: Annotated[
        str | None, Meta(description="of the file before the first change; null = there was none")
    ]
    present_before: Annotated[
        dict[str, Any],
        Meta(description="fields that were changed, as they were in force before; null = the default"),
    ]
    since: datetime
    rollout: Annotated[int | None, Meta(description="by which it was changed first")]
    where: Annotated[
        Literal["there", "gone", "replaced"],
        Meta(
            description="gone: the node is not in the cluster any more; replaced: another machine has its name"
        ),
    ]


class ChangedList(shapes.Page):
    results: list[ChangedRow]


class RolloutList(shapes.Page):
    results: list[RolloutRow]


class RolloutNodes(shapes.Page):
    results: list[RolloutNodeRow]


class Acts(shapes.Page):
    results: list[ActRow]


class RolloutFilter(df.FilterSet):
    """Rollouts."""

    state = Several(field_name="state", choices=list(Rollout.State.choices), label=_("State"))

    class Meta:
        model = Rollout
        fields: list[str] = []


class NodeFilter(df.FilterSet):
    """Nodes of a rollout."""

    step = Several(field_name="step", choices=list(RolloutNode.Step.choices), label=_("Step"))
    outcome = Several(field_name="outcome", choices=list(RolloutNode.Outcome.choices), label=_("Outcome"))

    class Meta:
        model = RolloutNode
        fields: list[str] = []


class ActFilter(df.FilterSet):
    """Acts on a node."""

    kind = Several(field_name="kind", label=_("Act"))
    state = Several(field_name="state", choices=list(Act.State.choices), label=_("State"))

    class Meta:
        model = Act
        fields: list[str] = []


class ChangedFilter(df.FilterSet):
    """Nodes that stand changed."""

    where = Several(
        field_name="where", choices=[(each, each) for each in selectors.WHERES], label=_("Where it is")
    )

    class Meta:
        model = Original
        fields: list[str] = []


class RolloutBody(serializers.Serializer[Any]):
    """Which policy is to be rolled out, by its id; or restore: true, and all nodes that numaweb changed go back to their originals.
    Options that are absent have their defaults."""

    policy = serializers.IntegerField(min_value=1, required=False)
    restore = serializers.BooleanField(default=False)
    options = serializers.DictField(required=False, default=dict)


class ConfirmBody(serializers.Serializer[Any]):
    """What was looked at: the plan's hash and the number of its nodes."""

    plan_hash = serializers.CharField(max_length=64)
    nodes = serializers.IntegerField(min_value=1, max_value=1_000_000)


class RetryBody(serializers.Serializer[Any]):
    """Which node is to be tried once more."""

    node = serializers.CharField(max_length=253)


class NoBody(serializers.Serializer[Any]):
    """Nothing."""


def cause_of(value: Any) -> Cause | None:
    """A Reason as a row keeps it, or as it is."""
    if not value:
        return None
    reason = value if isinstance(value, Reason) else msgspec.convert(value, Reason)
    said = words.said(reason)
    return Cause(reason.code, reason.values, said.text, said.remedy or None)


def causes_of(reasons: tuple[Reason, ...]) -> list[Cause]:
    return [each for each in map(cause_of, reasons) if each]


COLUMNS = rows.columns(
    RolloutRow,
    blank=("target", "confirmed_by"),
    renamed={"id": "pk", "cluster": "cluster__slug"},
    make=lambda keys, _moment: {
        "address": rows.path("clusters", keys["slug"], "rollouts", str(keys["key"])),
    },
    made=("address",),
    needed={"key": "pk", "slug": "cluster__slug"},
)
ACT_COLUMNS = rows.columns(
    ActRow,
    blank=("subject",),
    renamed={},
    make=lambda keys, _moment: {"said": cause_of(keys["said"])},
    made=("said",),
    needed={"key": "pk", "said": "said"},
)
PLANNED = (
    "act",
    "path",
    "before",
    "after",
    "present",
    "intended",
    "state_files",
    "lost",
    "moved",
    "stays",
)
"""Fields of a node's row that its plan tells."""
NODE_COLUMNS = rows.columns(
    RolloutNodeRow,
    blank=("outcome",),
    renamed={},
    make=lambda keys, _moment: node_made(keys, None),
    made=("cause", "words", *PLANNED),
    needed={"key": "pk", "called": "name", "cause": "cause", "answer": "answer", "became": "outcome"},
)
CHANGED_COLUMNS = rows.columns(
    ChangedRow,
    blank=("sha256",),
    renamed={"id": "pk", "node": "node_name", "since": "taken", "present_before": "fields"},
    make=lambda _keys, _moment: {},
    made=(),
    needed={},
)
SORTS = {"id": "id", "made": "made"}
CHANGED_SORTS = {"node": "node_name", "since": "taken"}
NODE_SORTS = {"position": "position", "name": "name"}


def node_made(keys: rows.Keys, planned: PlannedNode | None) -> rows.Row:
    """What a node's row has beside its columns."""
    answer: dict[str, Any] = keys["answer"] or {}
    said = answer.get("words") if keys["became"] in selectors.BAD else None
    made: rows.Row = {"cause": cause_of(keys["cause"]), "words": said or None}
    if planned is None:
        return {
            **made,
            **dict.fromkeys(PLANNED),
            "present": {},
            "intended": {},
            **{name: [] for name in ("state_files", "lost", "stays")},
        }
    plain = {name: getattr(planned, name) for name in PLANNED}
    return {**made, **plain, "stays": causes_of(planned.stays)}


def rollout_of(cluster: str, number: int) -> Rollout:
    found = selectors.rollouts(base.cluster_of(cluster)).filter(pk=number).first()
    if found is None:
        raise NotFound(_("There is no such rollout; rollouts/ lists them."))
    return found


def row(of: Rollout) -> dict[str, Any]:
    return {
        "id": of.pk,
        "cluster": of.cluster.slug,
        "level": of.level,
        "target": of.target or None,
        "version": of.version,
        "state": of.state,
        "made": of.made,
        "made_by": of.made_by,
        "planned": of.planned,
        "confirmed": of.confirmed,
        "confirmed_by": of.confirmed_by or None,
        "changed": of.changed,
        "ended": of.ended,
        "address": rows.path("clusters", of.cluster.slug, "rollouts", str(of.pk)),
    }


def report(of: Rollout) -> RolloutReport:
    progress, plan = selectors.progress(of), selectors.plan_of(of)
    return RolloutReport(
        **row(of),
        options=msgspec.convert(of.options, Options),
        plan_hash=of.plan_hash or None,
        old=selectors.is_old(of, timezone.now()),
        nodes=progress.nodes,
        looked_at=of.looked_at,
        to_look_at=of.nodes_total,
        outcomes=progress.outcomes,
        at_work=progress.at_work,
        waiting=progress.waiting,
        batches=[
            BatchRow(each.number, each.nodes, each.ended, each.at_work, each.bad)
            for each in selectors.batches(of)
        ],
        cause=cause_of(of.cause),
        waits_for=cause_of(of.waits_for),
        warnings=causes_of(plan.warnings) if plan else [],
        left_out=[LeftOutRow(each.name, one) for each in plan.left_out if (one := cause_of(each.reason))]
        if plan
        else [],
    )


def version_of(of: Rollout) -> str:
    """The part of the ETag that people steer by: it changes with the state and the plan, and with nothing else."""
    return f"{of.state}-{int(of.changed.timestamp() * 1_000_000)}-{of.plan_hash[:12]}"


def answered(of: Rollout, status: int = 200) -> HttpResponse:
    body = encode(report(of))
    response = HttpResponse(body, content_type=base.JSON, status=status)
    return base.headed(response, tag_of(of, body))


def tag_of(of: Rollout, body: bytes) -> str:
    digest = base.tag_of(body).removeprefix("W/").strip('"')
    return f'"{version_of(of)}.{digest}"'


def check_seen(request: Request, of: Rollout) -> None:
    """Whether the caller has seen this state. Raises Outdated or Unconditional."""
    given = parse_etags(request.headers.get("If-Match", ""))
    seen = {tag.strip('"').partition(".")[0] for tag in given}
    if version_of(of) not in seen:
        base.check_version(request, version_of(of))


def refuse(error: RolloutError) -> NoReturn:
    said = " ".join(words.obstacle(error.code, error.cause))
    match error.code:
        case "option":
            raise ValidationError({f"options.{error.field}": [words.option_fault(error.cause)]})
        case "count":
            raise ValidationError({"nodes": [said]})
        case "hash":
            raise ValidationError({"plan_hash": [said]})
        case "not-failed":
            raise ValidationError({"node": [said]})
    raise base.Conflict(said)


def who(request: Request) -> Who:
    return Who(audit.actor(request), request.META.get("REMOTE_ADDR", ""))


def policy_of(cluster: Cluster, number: int | None) -> Policy:
    if number is None:
        raise ValidationError({"policy": [_("Name a policy by its id, or say restore: true.")]})
    found = Policy.objects.filter(cluster=cluster, pk=number).select_related("pool").first()
    if found is None:
        raise ValidationError({"policy": [_("There is no such policy; policies/ lists them.")]})
    return found


class Operating(base.ApiView):
    """What operators may do."""

    required_permission = OPERATE
    required_scope = "operate"


class Confirming(base.ApiView):
    """What administrators may do."""

    required_permission = CONFIRM


class Rollouts(Operating, lists.ListView):
    """Rollouts of a cluster"""

    answers = {"GET": RolloutList, "POST": RolloutReport}
    accepts = {"POST": RolloutBody}
    columns, sorts, filterset, sort = COLUMNS, SORTS, RolloutFilter, "-id"
    parameters = lists.asked(RolloutFilter, SORTS, COLUMNS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        assert cluster is not None
        return selectors.rollouts(cluster)

    def post(self, request: Request, cluster: str) -> HttpResponse:
        """Has a rollout planned, in the background (operators). No node changes by that."""
        of, given = base.cluster_of(cluster), self.body(request)
        try:
            options = msgspec.convert(given["options"], Options)
        except msgspec.ValidationError as error:
            raise ValidationError({"options": [str(error)]}) from None
        policy = None if given["restore"] else policy_of(of, given.get("policy"))
        if given["restore"] and "policy" in given:
            raise ValidationError({"restore": [_("Name a policy, or say restore: not both.")]})
        try:
            if given["restore"]:
                made = control.restore_all(of, options, who(request), timezone.now())
            else:
                made = control.create(of, policy, options, who(request), timezone.now())
        except RolloutError as error:
            refuse(error)
        tasks.offer_plan(made.pk)
        response = answered(rollout_of(cluster, made.pk), 201)
        response["Location"] = rows.path("clusters", of.slug, "rollouts", str(made.pk))
        return response


class RolloutDetail(base.ApiView):
    """A rollout, its plan and how far it is"""

    answers = {"GET": RolloutReport}

    def get(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        found = rollout_of(cluster, rollout)
        body = encode(report(found))
        return base.send(request, body, tag_of(found, body))


class Steering(base.ApiView):
    """One step of a person: asked with If-Match, answered at once, worked on in the background."""

    answers = {"POST": RolloutReport}
    accepts = {"POST": NoBody}
    done = {"POST": 200}
    conditional = True
    works = True
    """Whether there is something to do for a worker afterwards."""

    def steer(self, request: Request, cluster: str, number: int, step: Callable[..., None]) -> HttpResponse:
        """`step`: called with the rollout, what the body says, who, and now."""
        found, given = rollout_of(cluster, number), self.body(request)
        check_seen(request, found)
        try:
            step(found, *given.values(), who(request), timezone.now())
        except RolloutError as error:
            refuse(error)
        if self.works:
            tasks.offer_rollout(found.pk)
        return answered(rollout_of(cluster, number))


class ConfirmRollout(Steering, Confirming):
    """Confirms a plan"""

    accepts = {"POST": ConfirmBody}

    def post(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        """Lets a plan's nodes be changed (administrators). Kubelets restart, pods may be moved."""
        return self.steer(request, cluster, rollout, control.confirm)


class PauseRollout(Steering, Operating):
    """Pauses a rollout"""

    works = False

    def post(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        """No act on any node until it is resumed (operators); an applier that has begun goes on by itself."""
        return self.steer(request, cluster, rollout, control.pause)


class ResumeRollout(Steering, Operating):
    """Resumes a rollout"""

    def post(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        """Lets a paused rollout go on (operators)."""
        return self.steer(request, cluster, rollout, control.resume)


class StopRollout(Steering, Operating):
    """Stops a rollout"""

    def post(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        """No further node is begun; what is under way is brought to an end (operators)."""
        return self.steer(request, cluster, rollout, control.stop)


class DiscardRollout(Steering, Operating):
    """Discards a plan"""

    works = False

    def post(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        """Nothing becomes of a plan that waits (operators)."""
        return self.steer(request, cluster, rollout, control.discard)


class RollBackRollout(Steering, Confirming):
    """Rolls a rollout back"""

    def post(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        """Every node that it changed goes back to what stood before, the last one first (administrators)."""
        return self.steer(request, cluster, rollout, control.roll_back)


class RetryRollout(Steering, Confirming):
    """Tries a node once more"""

    accepts = {"POST": RetryBody}

    def post(self, request: Request, cluster: str, rollout: int) -> HttpResponse:
        """A node that failed or was left alone waits again, and the rollout goes on (administrators)."""
        return self.steer(request, cluster, rollout, control.retry)


class ChangedNodes(lists.ListView):
    """What stands as numaweb changed it"""

    answers = {"GET": ChangedList}
    columns, sorts, filterset, sort = CHANGED_COLUMNS, CHANGED_SORTS, ChangedFilter, "node"
    parameters = lists.asked(ChangedFilter, CHANGED_SORTS, CHANGED_COLUMNS.names())

    def found(self, cluster: Cluster | None, **_named: str) -> QuerySet[Any]:
        assert cluster is not None
        return selectors.changed(cluster)


class NodesOfRollout(lists.ListView):
    """The nodes of a rollout"""

    answers = {"GET": RolloutNodes}
    columns, sorts, filterset, sort = NODE_COLUMNS, NODE_SORTS, NodeFilter, "position"
    parameters = lists.asked(NodeFilter, NODE_SORTS, NODE_COLUMNS.names())

    def found(self, cluster: Cluster | None, **named: str) -> QuerySet[Any]:
        assert cluster is not None
        self.rollout = rollout_of(cluster.slug, int(named["rollout"]))
        return RolloutNode.objects.filter(rollout=self.rollout)

    def results(self, chosen: rows.Columns, found: Sequence[Sequence[Any]]) -> list[rows.Row]:
        """With what the plan has for each node."""
        place = len(chosen.stored) + list(chosen.needed).index("called")
        planned = selectors.planned(selectors.plan_of(self.rollout), [each[place] for each in found])
        told = chosen._replace(make=lambda keys, _moment: node_made(keys, planned.get(keys["called"])))
        return super().results(told, found)


class ActsOfRollout(lists.ListView):
    """What a rollout did on a node, and what it saw"""

    answers = {"GET": Acts}
    columns, sorts, filterset, sort = ACT_COLUMNS, {"id": "id"}, ActFilter, "id"
    parameters = lists.asked(ActFilter, {"id": "id"}, ACT_COLUMNS.names())

    def found(self, cluster: Cluster | None, **named: str) -> QuerySet[Any]:
        assert cluster is not None
        of = rollout_of(cluster.slug, int(named["rollout"]))
        node = of.nodes.filter(name=named["node"]).first()
        if node is None:
            raise NotFound(_("This rollout has no such node; its nodes/ lists them."))
        return Act.objects.filter(node=node)
