"""`manage.py plan FILE`: where the pods of a manifest would go, in a terminal; `--lint` says only what is wrong with it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone, translation

from monitoring import hot, selectors
from monitoring.figures import evidence, manifests, plan, plananswers, volcano
from monitoring.models import Cluster
from monitoring.selectors import planning
from monitoring.selectors.planning import Question, Row
from monitoring.selectors.planning.question import POLICIES, SCOPES
from monitoring.services import endpoints
from monitoring.sources import manifest as source
from numacore import lint
from numacore.manifest import Group, ManifestError

ASKED = ("find", "on", "policy", "scope", "replicas", "together", "weight")
PATIENT = 3600.0
"""Seconds: in a terminal every node is judged before anything is printed."""


class Command(BaseCommand):
    help = (
        "Judges the pods of a manifest (YAML or JSON; - reads standard input) on the nodes of a cluster as they are now, and "
        "changes nothing. Ends with 1 when no node would take them, or when the linter finds an error."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the manifest; - for standard input")
        parser.add_argument("--cluster", default="", help="slug; not needed where there is one cluster")
        parser.add_argument("--node", action="append", default=[], help="only this node; may be repeated")
        parser.add_argument("--find", default="", help="only nodes whose names hold this")
        parser.add_argument("--on", default="", choices=POLICIES, help="only nodes with this topology policy")
        parser.add_argument("--policy", default="", choices=POLICIES, help="what if this were the policy")
        parser.add_argument("--scope", default="", choices=SCOPES, help="what if this were the scope")
        parser.add_argument("--replicas", type=int, default=None, help="instead of the manifest's")
        parser.add_argument(
            "--together", action="store_true", help="workloads stand on a node in the manifest's order"
        )
        parser.add_argument(
            "--weight", default="", help="of numa-aware, as it is written in the scheduler's configuration"
        )
        parser.add_argument(
            "--json",
            action="store_true",
            help=f"one JSON document as REST answers it, with the traces of up to {plananswers.MOST_TRACED} nodes",
        )
        parser.add_argument("--lint", action="store_true", help="only what is wrong with the manifest")
        parser.add_argument("--language", default="en", choices=[code for code, _ in settings.LANGUAGES])

    def handle(self, *_: Any, **options: Any) -> None:
        with translation.override(options["language"]):
            cluster = self.cluster(options["cluster"])
            groups = self.groups(options["file"])
            question = Question(
                names=tuple(options["node"]),
                **{name: options[name] for name in ASKED},
            )
            try:
                self.hear(cluster)
                judged = (
                    (self.linted, self.linted_json) if options["lint"] else (self.planned, self.planned_json)
                )
                good = judged[bool(options["json"])](cluster, groups, question)
            except planning.UnknownNodesError as error:
                raise CommandError(f"--node: this cluster has no node {error}") from None
            except hot.StoreError as error:
                raise CommandError(f"the newest state cannot be read: {error}") from None
        if not good:
            sys.exit(1)

    def hear(self, cluster: Cluster) -> None:
        """Without a store that processes share, this one asks the exporters itself."""
        if settings.NUMAWEB_REDIS_LIVE_URL:
            return
        nodes = selectors.nodes(cluster).values_list("pk", flat=True)
        missing = set(nodes) - hot.store().get_many(nodes).keys()
        hot.store().put(endpoints.ask_once(missing))

    def cluster(self, slug: str) -> Cluster:
        known = {each.cluster.slug: each.cluster for each in selectors.clusters()}
        if slug in known:
            return known[slug]
        if not slug and len(known) == 1:
            return next(iter(known.values()))
        raise CommandError(f"--cluster: name one of {', '.join(known) or '(there is no cluster yet)'}")

    def groups(self, name: str) -> tuple[Group, ...]:
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
            return source.read(text)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{name}: {error}") from None
        except ManifestError as error:
            lines = [
                f"{manifests.place(each)}: {manifests.fault(each).text} {manifests.fault(each).remedy}"
                for each in error.faults
            ]
            raise CommandError("\n".join(lines)) from None

    def linted(self, cluster: Cluster, groups: Sequence[Group], question: Question) -> bool:
        capacities = planning.capacities(cluster, question, timezone.now())
        good = [self.write_findings(each, lint.lint(each, capacities)) for each in groups]
        return all(good)

    def write_findings(self, group: Group, found: Sequence[lint.Finding]) -> bool:
        """Prints them. Returns whether there is no error."""
        self.stdout.write(f"{group.title}: {len(found)}")
        for each in plan.findings(found):
            self.stdout.write(f"  {each.severity} {each.field}: {each.text} {each.remedy}".rstrip())
        return all(each.severity != "error" for each in found)

    def linted_json(self, cluster: Cluster, groups: Sequence[Group], question: Question) -> bool:
        answer = plananswers.linted(cluster, groups, question)
        self.stdout.write(msgspec.json.encode(answer).decode())
        return all(each.severity != "error" for group in answer.groups for each in group.findings)

    def planned_json(self, cluster: Cluster, groups: Sequence[Group], question: Question) -> bool:
        answer = plananswers.answer(cluster, groups, question, traced=True, seconds=PATIENT)
        self.stdout.write(msgspec.json.encode(answer).decode())
        return all(any(node.outcome == "admitted" for node in group.nodes) for group in answer.groups)

    def planned(self, cluster: Cluster, groups: Sequence[Group], question: Question) -> bool:
        good = [
            self.write_plan(cluster, each, question, question.before(groups, number))
            for number, each in enumerate(groups)
        ]
        return all(good)

    def write_plan(self, cluster: Cluster, group: Group, question: Question, before: Sequence[Group]) -> bool:
        """Prints one group's plan. Returns whether a node would take it."""
        found = planning.plan(cluster, group, question, timezone.now(), seconds=PATIENT, before=before)
        answer = plan.headline(found, question)
        self.stdout.write(f"{group.title}: {answer.text} {answer.detail}".rstrip())
        for line in plan.lines(found.rows):
            self.write_line(line)
            if question.names:
                self.write_detail(found, cluster, question, line.row)
        for note in plan.notes(found):
            self.stdout.write(f"  ({note})")
        self.write_findings(group, lint.lint(group, found.capacities))
        return bool(found.in_state("admitted"))

    def write_detail(self, found: planning.Plan, cluster: Cluster, question: Question, row: Row) -> None:
        """Volcano's steps, and what would make it fit, where nodes were named: it is dear to find for hundreds."""
        detail = planning.detail(cluster, found.group, question, row.node, timezone.now(), found.before)
        if detail is None:
            return
        for step in evidence.steps(detail, row):
            self.stdout.write(f"      Volcano, {volcano.STAGES[step.stage]}: {step.text}")
        for text in evidence.advised(detail):
            self.stdout.write(f"      + {text}")

    def write_line(self, line: plan.Line) -> None:
        row = line.row
        where = f"CPUs {row.cpus} NUMA {', '.join(map(str, row.numa))}" if row.cpus else ""
        score = f"score {row.score.value}" if row.score else ""
        parts = [row.node, line.state, where, f"x{line.fits}" if row.fits else "", score]
        self.stdout.write("  " + "  ".join(each for each in parts if each))
        for said in line.why:
            self.stdout.write(f"      {said.text} {said.remedy}".rstrip())
        if line.words:
            self.stdout.write(f"      Volcano: {line.words}")
        if line.disagreement:
            self.stdout.write(f"      {line.disagreement}")
