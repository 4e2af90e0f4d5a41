"""The Planner: where would these pods go, and why not elsewhere? Reads and judges; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_htmx.http import HttpResponseClientRefresh

from monitoring import hot, selectors
from monitoring.figures import causes, evidence, manifests, plan
from monitoring.figures.headlines import Headline
from monitoring.selectors import planning
from monitoring.selectors.planning import Question
from monitoring.sources import manifest as source
from monitoring.views import columns, planner_input
from monitoring.views.base import ClusterPage
from monitoring.views.planner_input import Containers, PodForm, QuestionForm
from monitoring.views.saving import Table
from numacore import lint
from numacore.manifest import Group, ManifestError

SECONDS = 1.5
"""So long nodes are judged for one answer; the page then asks for the rest."""
PER_PAGE = 50
SHOWN = ("crash", "admitted", "refused", "unknown", "disagreement")
EXAMPLE = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: {name}
spec:
  schedulerName: volcano
  tasks:
  - name: worker
    replicas: {replicas}
    topologyPolicy: {policy}
    template:
      spec:
        containers:
        - name: main
          resources:
            limits: {{cpu: "{cpu}", memory: {memory}}}
"""
EXAMPLES = (
    (
        gettext_lazy("3 workers of 8 CPUs and 16 GiB, each on one NUMA node"),
        EXAMPLE.format(name="inference", replicas=3, policy="single-numa-node", cpu=8, memory="16Gi"),
    ),
    (
        gettext_lazy("An odd number of CPUs on one NUMA node: what of cores with two threads?"),
        EXAMPLE.format(name="odd", replicas=2, policy="single-numa-node", cpu=7, memory="16Gi"),
    ),
)


class Planner(ClusterPage):
    """A question in the address, an answer on the page."""

    template_name = "monitoring/planner.html"
    title = gettext_lazy("Planner")
    http_method_names = ["get", "head", "post"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        if getattr(request, "htmx", None) and request.method == "GET" and self.complete:
            return HttpResponseClientRefresh()
        return response

    def get_template_names(self) -> list[str]:
        htmx = getattr(self.request, "htmx", None)
        if htmx and self.rows:
            return ["monitoring/parts/pod_form.html"]
        return ["monitoring/parts/plan.html"] if htmx else [str(self.template_name)]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """To the address that has the question; an input too long for one is answered here."""
        if self.rows:
            return self.get(request, *args, **kwargs)
        if self.filled:
            if not (self.pod_form.is_valid() and self.containers.is_valid()):
                return self.get(request, *args, **kwargs)
            made = planner_input.manifest_of(self.pod_form, self.containers)
            more = request.POST["form"] == "append" and self.text.strip()
            self.text = f"{self.text.rstrip()}\n---\n{made}" if more else made
        if (
            self.text
            and self.question_form.is_valid()
            and self.query is not None
            and not getattr(request, "htmx", None)
        ):
            return HttpResponseRedirect(f"{request.path}?{self.query}")
        return self.get(request, *args, **kwargs)

    # What was asked ----------------------------------------------------------------------------------------------

    @cached_property
    def text(self) -> str:
        """The manifest, empty = none yet."""
        if self.request.method == "POST":
            return self.request.POST.get("manifest", "").replace("\r\n", "\n")
        try:
            return planner_input.text_of(self.request.GET)
        except ValueError:
            self.broken = True
            return ""

    broken = False
    """The address has a manifest that cannot be unpacked."""

    @cached_property
    def question_form(self) -> QuestionForm:
        return QuestionForm(self.request.POST if self.request.method == "POST" else self.request.GET)

    @property
    def rows(self) -> str:
        """What is to become of the form's rows of containers: `more`, `drop-2`; empty = nothing."""
        return self.request.POST.get("rows", "")

    @property
    def filled(self) -> bool:
        """Whether the form of containers was sent: to be judged alone, or to be put behind the manifest."""
        return self.request.POST.get("form") in ("pod", "append")

    @cached_property
    def pod_form(self) -> PodForm:
        return PodForm(self.request.POST) if self.filled or self.rows else PodForm()

    @cached_property
    def containers(self) -> Any:
        if self.rows:
            return Containers(planner_input.with_rows(self.request.POST, self.rows), prefix="c")
        return Containers(self.request.POST, prefix="c") if self.filled else Containers(prefix="c")

    @cached_property
    def question(self) -> Question | None:
        """None = the form has an error."""
        return self.question_form.question() if self.question_form.is_valid() else None

    @cached_property
    def query(self) -> str | None:
        """The address of this question; None = too long for one."""
        return planner_input.address(self.text, self.question_form.cleaned_data)

    @cached_property
    def read(self) -> tuple[tuple[Group, ...], ManifestError | None]:
        try:
            return source.read(self.text), None
        except ManifestError as error:
            return (), error

    @cached_property
    def number(self) -> int:
        """Which of the manifest's groups is shown."""
        asked = self.request.GET.get("group", "0")
        return int(asked) if asked.isdecimal() and len(asked) < 4 and int(asked) < len(self.read[0]) else 0

    # What is saved ------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, Table]:
        return {
            "nodes": Table(columns.PLANNED, self.saved_nodes),
            "offers": Table(columns.OFFERS, self.saved_offers),
        }

    def saved_nodes(self) -> list[plan.Line]:
        if self.plan is None:
            return []
        if self.plan.pending:
            raise Http404(_("Nodes are still being judged; ask again in a moment."))
        return plan.lines(self.shown_rows(self.plan))

    def saved_offers(self) -> list[evidence.Offered]:
        found = self.detailed(self.plan, self.question) if self.plan and self.question else {}
        return found["evidence"].offers if "evidence" in found else []

    # What is answered --------------------------------------------------------------------------------------------

    @cached_property
    def plan(self) -> planning.Plan | None:
        groups, _error = self.read if self.text else ((), None)
        if not groups or self.question is None:
            return None
        try:
            return planning.plan(
                self.cluster,
                groups[self.number],
                self.question,
                timezone.now(),
                seconds=SECONDS,
                before=self.question.before(groups, self.number),
            )
        except hot.StoreError as error:
            self.failure = str(error)
            return None

    failure = ""
    """Why the newest state cannot be read."""

    @property
    def complete(self) -> bool:
        return self.plan is not None and not self.plan.pending

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        groups, error = self.read if self.text else ((), None)
        return super().get_context_data(
            manifest=self.text,
            question_form=self.question_form,
            pod_form=self.pod_form,
            containers=self.containers,
            headline=self.headline(),
            faults=[(manifests.place(each), manifests.fault(each)) for each in error.faults] if error else [],
            groups=groups,
            number=self.number,
            query=self.query if self.question is not None and self.text else None,
            link=self.link(),
            examples=[(label, planner_input.address(text, {})) for label, text in EXAMPLES],
            most=source.MOST_CHARACTERS,
            **(self.answer(self.plan, self.question) if self.plan and self.question else {}),
            **kwargs,
        )

    def link(self) -> str:
        if not self.text or self.question is None or self.query is None:
            return ""
        group = f"&group={self.number}" if self.number else ""
        return self.request.build_absolute_uri(f"{self.request.path}?{self.query}{group}")

    def headline(self) -> Headline | None:
        """The answer, or what stands in its way."""
        if self.broken:
            return Headline("danger", _("This link is cut off."), _("Ask whoever sent it for all of it."))
        if not self.text:
            return None
        _groups, error = self.read
        if error:
            return Headline("danger", _("The manifest cannot be read."), _("Each fault is named below."))
        if self.question is None:
            return Headline("danger", _("Some values are not acceptable."), _("The form names them."))
        if self.failure:
            return Headline(
                "unknown",
                _("The store of live data cannot be reached: %(cause)s")
                % {"cause": causes.said(self.failure)},
            )
        return plan.headline(self.plan, self.question) if self.plan else None

    @property
    def shown(self) -> str:
        """The state whose nodes are shown; empty = all."""
        asked = self.request.GET.get("show", "")
        return asked if asked in SHOWN else ""

    def shown_rows(self, found: planning.Plan) -> list[planning.Row]:
        return [*(of_state(found, self.shown) if self.shown else found.rows)]

    def answer(self, found: planning.Plan, question: Question) -> dict[str, Any]:
        groups, _error = self.read
        page = Paginator(self.shown_rows(found), PER_PAGE).get_page(self.request.GET.get("page"))
        return {
            "plan": found,
            "total": len(found.rows) + found.pending,
            "page": page,
            "lines": plan.lines(list(page.object_list)),
            "counts": [(name, count) for name in SHOWN if (count := len(of_state(found, name)))],
            "show": self.shown,
            "notes": plan.notes(found),
            "findings": [(group, plan.findings(lint.lint(group, found.capacities))) for group in groups],
            **({} if found.pending else self.detailed(found, question)),
        }

    def detailed(self, found: planning.Plan, question: Question) -> dict[str, Any]:
        """The evidence of one node: the asked one, else the best, else the first."""
        by_name = {row.node: row for row in found.rows}
        row = by_name.get(self.request.GET.get("node", "")) or found.best or next(iter(found.rows), None)
        if row is None:
            return {}
        try:
            detail = planning.detail(
                self.cluster, found.group, question, row.node, timezone.now(), found.before
            )
        except (planning.UnknownNodesError, hot.StoreError):
            return {"selected": row}
        if detail is None:
            return {"selected": row, "evidence_line": plan.line(row)}
        return {
            "selected": row,
            "evidence": evidence.evidence(detail, row),
            "detail": detail,
            "drawing": evidence.drawn(detail, selectors.settings().busy_threshold),
        }


def of_state(found: planning.Plan, name: str) -> tuple[planning.Row, ...]:
    """Rows of a state, or those on which Volcano and the kubelet disagree."""
    if name == "disagreement":
        return tuple(row for row in found.rows if row.disagreement)
    return tuple(row for row in found.rows if row.state == name)
