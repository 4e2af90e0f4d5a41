"""Rollouts: what is planned, a typed confirmation, how far it is node by node, and the way back. The page survives a reload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.figures.sentences import Said
from monitoring.views.base import MENU_PATH, ClusterPage, Crumb
from monitoring.views.saving import Table
from policies import audit, selectors, tasks
from policies.models import Act, Rollout, RolloutNode
from policies.plan import Plan, PlannedNode
from policies.selectors import Batch, Progress
from policies.services.rollout import control
from policies.services.rollout.error import RolloutError
from policies.services.who import Who
from policies.views import columns
from policies.views.policies import TITLE
from policies.words import rollout as words

OPERATE, CONFIRM = "policies.operate_rollout", "policies.confirm_rollout"
PER_PAGE = 50
SHOWN = 20
"""Rollouts on a page of the list."""
MOST_ACTS = 200
MOST_BATCHES = 120
"""Tiles of batches; of more the page has the bar alone."""
State, Step, Outcome = Rollout.State, RolloutNode.Step, RolloutNode.Outcome
WAYS = {
    "confirm": CONFIRM,
    "roll_back": CONFIRM,
    "retry": CONFIRM,
    "pause": OPERATE,
    "resume": OPERATE,
    "stop": OPERATE,
    "discard": OPERATE,
}
"""What may be done on the page, and the permission for it."""
FILTERS: dict[str, dict[str, Any]] = {
    "bad": {"outcome__in": selectors.BAD},
    "working": {"step__in": [each for each in Step if each not in (Step.WAITING, Step.ENDED)]},
    "waiting": {"step": Step.WAITING},
    **{outcome: {"outcome": outcome} for outcome in Outcome.values},
}


class Rolled(ClusterPage):
    """A page that everybody reads; operators and administrators use it."""

    http_method_names = ["get", "head", "post"]
    title = gettext_lazy("Rollouts")

    def crumbs(self) -> list[Crumb]:
        up = Crumb(TITLE, self.address("policies"))
        return [*(Crumb(label) for label in MENU_PATH), up, Crumb(self.title)]

    def who(self) -> Who:
        return Who(audit.actor(self.request), self.request.META.get("REMOTE_ADDR", ""))

    def may(self, permission: str) -> bool:
        return self.request.user.has_perm(permission)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            may_operate=self.may(OPERATE), may_confirm=self.may(CONFIRM), **kwargs
        )


class Line(NamedTuple):
    """A rollout in the list."""

    rollout: Rollout
    target: str
    progress: Progress
    cause: Said | None


class Rollouts(Rolled):
    """All rollouts of a cluster, newest first."""

    template_name = "policies/rollouts.html"
    http_method_names = ["get", "head"]

    def tables(self) -> Mapping[str, Table]:
        return {"rollouts": Table(columns.ROLLOUTS, lambda: told(selectors.rollouts(self.cluster)))}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        page = Paginator(selectors.rollouts(self.cluster), SHOWN).get_page(self.request.GET.get("page"))
        return super().get_context_data(
            page=page,
            lines=told(page),
            switched_on=settings.NUMAWEB_ROLLOUTS,
            off=words.obstacle("off"),
            **kwargs,
        )


def told(rollouts: Iterable[Rollout]) -> list[Line]:
    """Rollouts with how far each is."""
    found = list(rollouts)
    counted = selectors.progress_of(each.pk for each in found)
    return [
        Line(each, words.target(each.level, each.target), counted[each.pk], words.reason_of(each.cause))
        for each in found
    ]


class NodeLine(NamedTuple):
    """A node of a rollout as the page shows it."""

    node: RolloutNode
    planned: PlannedNode | None
    changes: list[tuple[str, str, str]]
    """Field, what is in force, what is asked for."""
    stays: list[Said]
    cause: Said | None
    said: str
    """What the node's own system said, in English."""


class LogLine(NamedTuple):
    act: Act
    kind: str
    said: Said | None


class RolloutPage(Rolled):
    """One rollout: its plan, its confirmation, its nodes."""

    template_name = "policies/rollout.html"

    @property
    def title(self) -> str:  # type: ignore[override]
        return _("Rollout %(number)s") % {"number": self.kwargs["rollout"]}

    def crumbs(self) -> list[Crumb]:
        found = super().crumbs()
        return [*found[:-1], Crumb(Rolled.title, self.address("rollouts")), found[-1]]

    def get_template_names(self) -> list[str]:
        htmx = getattr(self.request, "htmx", None)
        return ["policies/parts/rollout.html"] if htmx else [str(self.template_name)]

    def found(self) -> Rollout:
        found = selectors.rollouts(self.cluster).filter(pk=self.kwargs["rollout"]).first()
        if found is None:
            raise Http404(_("There is no such rollout."))
        return found

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = self.found()
        plan = selectors.plan_of(found)
        progress = selectors.progress(found)
        page = Paginator(self.nodes(found), PER_PAGE).get_page(self.request.GET.get("page"))
        kwargs["rollout"] = found  # instead of its number in the address
        return super().get_context_data(
            headline=words.headline(found.state, selectors.behind(found)),
            target=words.target(found.level, found.target),
            policy_address=address_of_policy(self.cluster.slug, found),
            of_policy=found.level != Rollout.Level.CHANGED,
            options=words.options(found.options),
            progress=progress,
            outcomes=[
                (name, Outcome(name).label, count) for name, count in progress.outcomes.items() if count
            ],
            batches=self.tiles(found),
            plan=plan,
            old=selectors.is_old(found, timezone.now()),
            warnings=words.warnings(plan) if plan else [],
            left_out=[(each.name, words.said(each.reason)) for each in plan.left_out] if plan else [],
            page=page,
            lines=lines(page, plan),
            show=self.shown,
            picks=words.picks(progress.at_work, progress.waiting),
            log=self.log(found),
            busy=selectors.active_rollout(self.cluster) if found.state == State.PLANNED else None,
            ways=ways(found),
            **kwargs,
        )

    def named(self) -> tuple[str, ...]:
        return (*super().named(), "rollout", str(self.kwargs["rollout"]))

    def tables(self) -> Mapping[str, Table]:
        return {
            "nodes": Table(columns.ROLLED, self.saved_nodes),
            "log": Table(columns.ACTS, self.saved_log),
        }

    def saved_nodes(self) -> list[NodeLine]:
        found = self.found()
        return lines(self.nodes(found), selectors.plan_of(found))

    def saved_log(self) -> Iterator[LogLine]:
        node = self.looked_at(self.found())
        return (logged(each) for each in selectors.acts(node)) if node else iter(())

    @property
    def shown(self) -> str:
        """Which nodes are shown; empty = all."""
        asked = self.request.GET.get("show", "")
        return asked if asked in FILTERS else ""

    def nodes(self, found: Rollout) -> QuerySet[RolloutNode]:
        return found.nodes.filter(**FILTERS.get(self.shown, {})).order_by("position")

    def looked_at(self, found: Rollout) -> RolloutNode | None:
        name = self.request.GET.get("node", "")
        return found.nodes.filter(name=name).first() if name else None

    def tiles(self, found: Rollout) -> list[Batch]:
        made = selectors.batches(found)
        return made if len(made) <= MOST_BATCHES else []

    def log(self, found: Rollout) -> tuple[RolloutNode, list[LogLine], bool] | None:
        """The node that is looked at, what was done on it (the newest of it), and whether there was more before."""
        node = self.looked_at(found)
        if node is None:
            return None
        acts = list(selectors.acts(node).reverse()[: MOST_ACTS + 1])
        kept = [logged(each) for each in acts[:MOST_ACTS]]
        return node, kept[::-1], len(acts) > MOST_ACTS

    def post(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        do = request.POST.get("do", "")
        if do not in WAYS:
            return self.back()
        if not self.may(WAYS[do]):
            raise PermissionDenied
        found = self.found()
        if do == "roll_back" and request.POST.get("number", "").strip() != str(found.pk):
            messages.error(request, " ".join(words.obstacle("number")))
            return self.back()
        try:
            self.do(found, do)
        except RolloutError as error:
            messages.error(request, " ".join(words.obstacle(error.code, error.cause)))
        return self.back()

    def do(self, found: Rollout, way: str) -> None:
        posted, who, now = self.request.POST, self.who(), timezone.now()
        match way:
            case "confirm":
                typed = posted.get("nodes", "").strip()
                control.confirm(found, posted.get("plan", ""), number_of(typed), who, now)
            case "roll_back":
                control.roll_back(found, who, now)
            case "retry":
                control.retry(found, posted.get("node", ""), who, now)
            case _:
                steps: dict[str, Callable[..., None]] = {
                    "pause": control.pause,
                    "resume": control.resume,
                    "stop": control.stop,
                    "discard": control.discard,
                }
                steps[way](found, who, now)
        if way not in ("pause", "discard"):
            tasks.offer_rollout(found.pk)

    def back(self) -> HttpResponse:
        query = self.request.GET.urlencode()
        return HttpResponseRedirect(f"{self.request.path}?{query}" if query else self.request.path)


def number_of(text: str) -> int:
    """What somebody typed; -1 = no number at all."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1


def ways(rollout: Rollout) -> set[str]:
    """What can be done in this state, whoever it is."""
    match rollout.state:
        case State.PLANNING:
            return {"discard"}
        case State.PLANNED:
            return {"confirm", "discard"}
        case State.RUNNING:
            return {"pause", "stop", "roll_back"}
        case State.PAUSED:
            return {"resume", "stop", "retry", "roll_back"}
        case State.STOPPING:
            return {"roll_back"}
        case State.STOPPED:
            return {"retry", "roll_back"}
        case State.RETURNING:
            return {"pause", "stop"}
        case State.DONE:
            return {"roll_back"}
    return set()


def logged(act: Act) -> LogLine:
    return LogLine(act, words.act(act.kind), words.reason_of(act.said))


def lines(page: Iterable[RolloutNode], plan: Plan | None) -> list[NodeLine]:
    shown = list(page)
    planned = selectors.planned(plan, [each.name for each in shown])
    return [line(each, planned.get(each.name)) for each in shown]


def line(node: RolloutNode, planned: PlannedNode | None) -> NodeLine:
    changes = words.changes(planned.present, planned.intended) if planned else []
    stays = [words.said(each) for each in planned.stays] if planned else []
    answer: dict[str, Any] = node.answer or {}
    said = str(answer.get("words", "")) if node.outcome in selectors.BAD else ""
    return NodeLine(node, planned, changes, stays, words.reason_of(node.cause), said)


def address_of_policy(cluster: str, rollout: Rollout) -> str:
    """The page of the policy that is rolled out; of the way back for all nodes its own."""
    if rollout.level == Rollout.Level.CHANGED:
        return reverse("restore", kwargs={"cluster": cluster})
    if rollout.level == "cluster":
        return reverse("policy_cluster", kwargs={"cluster": cluster})
    return reverse("policy", kwargs={"cluster": cluster, "level": rollout.level, "name": rollout.target})
