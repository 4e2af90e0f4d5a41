"""`manage.py restore`: what stands as the product changed it, and the way back for all of it, for scripts and before the product is removed."""

from __future__ import annotations

import getpass
import sys
import time
from argparse import ArgumentParser
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone, translation

from monitoring.figures import kubelet
from monitoring.models import Cluster
from policies import selectors, tasks
from policies.models import Original, Rollout
from policies.plan import Options
from policies.services.rollout import control, planning
from policies.services.rollout.error import RolloutError
from policies.services.who import Who
from policies.words import rollout as words

LEFT = 3
"""Exit code: something stands changed. 0: nothing does. 1: it could not be done. 2: wrong arguments."""
PACE = 2.0
STAYS = (
    "On every node that numaweb changed, /var/lib/numaweb stays, with copies of the files and a record of each change.",
    "In each cluster the namespace and the roles stay that were made for numaweb: remove them last.",
)


class Command(BaseCommand):
    help = (
        "Say which nodes stand as numaweb changed them; ends with 3 if one does. With --plan: plan their way back; no node changes. "
        "With --confirm N --hash H: let the N nodes of that plan change back."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--cluster", default="", help="slug; of --plan and --confirm needed where there are several"
        )
        does = parser.add_mutually_exclusive_group()
        does.add_argument("--plan", action="store_true", help="make a plan, show it, change nothing")
        does.add_argument("--confirm", type=int, metavar="N", help="the number of nodes that the plan showed")
        parser.add_argument("--hash", default="", help="the hash that the plan showed")
        parser.add_argument("--no-drain", action="store_true", help="with --plan: leave pods where they are")
        parser.add_argument("--batch", default="1", help="with --plan: nodes in a batch, a number or a share")
        parser.add_argument("--max-unavailable", default="1", help="with --plan: nodes away at once at most")
        parser.add_argument(
            "--wait",
            type=float,
            default=0.0,
            metavar="S",
            help="with --confirm: wait up to S seconds for its end",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        with translation.override("en"):
            if options["confirm"] is not None:
                self.confirm(self.cluster(options["cluster"]), options)
            elif options["plan"]:
                self.plan(self.cluster(options["cluster"]), options)
            else:
                self.tell(options["cluster"])

    def cluster(self, slug: str) -> Cluster:
        known = {each.slug: each for each in Cluster.objects.all()}
        if not slug and len(known) == 1:
            return next(iter(known.values()))
        if slug not in known:
            raise CommandError(f"--cluster: one of {', '.join(sorted(known)) or 'none, there is no cluster'}")
        return known[slug]

    def tell(self, slug: str) -> None:
        """What stands changed, in one cluster or in all."""
        clusters = [self.cluster(slug)] if slug else list(Cluster.objects.order_by("slug"))
        found = [each for cluster in clusters for each in selectors.changed(cluster)]
        for each in found:
            self.stdout.write(line(each))
        if not found:
            self.stdout.write("No node stands as numaweb changed it.")
            return
        self.stdout.write(f"{len(found)} files stand changed. The way back: manage.py restore --plan")
        self.behind(found)
        sys.exit(LEFT)

    def behind(self, found: list[Original]) -> None:
        """What no rollout can take back."""
        for each in found:
            if (where := each.__dict__["where"]) != selectors.THERE:
                self.stdout.write(
                    f"Stays behind: {each.cluster.slug} {each.node_name} {each.path}: {words.WHERE[where]}"
                )
        for text in STAYS:
            self.stdout.write(f"Stays behind: {text}")

    def plan(self, cluster: Cluster, options: dict[str, Any]) -> None:
        chosen = Options(
            drain=not options["no_drain"],
            batch=options["batch"],
            max_unavailable=options["max_unavailable"],
        )
        try:
            made = control.restore_all(cluster, chosen, who(), timezone.now())
        except RolloutError as error:
            if error.code == "nothing-changed":
                self.stdout.write("No node stands as numaweb changed it.")
                return
            refuse(error)
        planning.plan_work(made.pk)
        made.refresh_from_db()
        plan = selectors.plan_of(made)
        for node in plan.nodes if plan else ():
            changes = words.changes(node.present, node.intended)
            told = ", ".join(f"{field}: {now} -> {then}" for field, now, then in changes)
            self.stdout.write(f"{node.name} {node.path}: {told or 'the file alone'}")
        for left in plan.left_out if plan else ():
            self.stdout.write(f"Stays behind: {left.name}: {words.causes([left.reason])}")
        for reason in plan.warnings if plan else ():
            self.stdout.write(f"Warning: {words.causes([reason])}")
        if made.state != Rollout.State.PLANNED:
            self.stdout.write(str(words.reason_of(made.cause)))
            if selectors.changed(cluster).exists():
                sys.exit(LEFT)
            return
        count = made.nodes.count()
        self.stdout.write(
            f"Rollout {made.pk} waits for its confirmation; no node has changed. To take these {count} nodes back:"
        )
        self.stdout.write(
            f"manage.py restore --cluster {cluster.slug} --confirm {count} --hash {made.plan_hash}"
        )

    def confirm(self, cluster: Cluster, options: dict[str, Any]) -> None:
        planned = Rollout.objects.filter(
            cluster=cluster,
            level=Rollout.Level.CHANGED,
            state=Rollout.State.PLANNED,
            plan_hash=options["hash"],
        )
        found = planned.first() if options["hash"] else None
        if found is None:
            raise CommandError("--hash: no plan waits that has this hash; manage.py restore --plan shows it")
        try:
            control.confirm(found, options["hash"], options["confirm"], who(), timezone.now())
        except RolloutError as error:
            refuse(error)
        tasks.offer_rollout(found.pk)
        self.stdout.write(f"Rollout {found.pk} runs; numaweb's workers go through its nodes.")
        if options["wait"] > 0:
            self.wait(found, options["wait"])

    def wait(self, rollout: Rollout, seconds: float) -> None:
        until = time.monotonic() + seconds
        while rollout.is_active and time.monotonic() < until:
            time.sleep(min(PACE, max(0.0, until - time.monotonic())))
            rollout.refresh_from_db(fields=["state"])
        for name, outcome in rollout.nodes.exclude(outcome="").values_list("name", "outcome"):
            self.stdout.write(f"{name}: {outcome}")
        self.stdout.write(f"Rollout {rollout.pk}: {rollout.state}")
        left = list(selectors.changed(rollout.cluster))
        self.behind(left)
        if rollout.state != Rollout.State.DONE or left:
            sys.exit(LEFT)


def line(of: Original) -> str:
    """One changed file: where, since when, and what it was."""
    fields = ", ".join(
        f"{name} was {kubelet.shown(was) if was is not None else 'the default'}"
        for name, was in sorted(of.fields.items())
    )
    return f"{of.cluster.slug} {of.node_name} {of.path} since {of.taken:%Y-%m-%d %H:%M} UTC: {fields or 'unknown fields'}"


def who() -> Who:
    """Whoever may run this on numaweb's own machine may do all that administrators may."""
    try:
        return Who(f"manage.py restore ({getpass.getuser()})", "")
    except (KeyError, OSError):
        return Who("manage.py restore", "")


def refuse(error: RolloutError) -> NoReturn:
    raise CommandError(" ".join(words.obstacle(error.code, error.cause)))
