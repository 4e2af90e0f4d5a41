"""Rollouts in words: why one is not begun, why a node is left alone or failed, what an act is, what a plan warns of.

A code comes from three places: the planner and the engine (`policies.services.rollout.causes`), the applier on a node
(`numaagent.applier`), and whatever a preview refuses (`policies.words.changing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from monitoring.figures import causes as own_words
from monitoring.figures import kubelet, sentences
from monitoring.figures.headlines import Headline, Level
from monitoring.figures.sentences import Form, Said
from numacore.diagnosis import Reason
from policies import plan as plans
from policies.words import changing

OBSTACLES: dict[str, tuple[Promise, Promise]] = {
    "off": (
        _("Rollouts are switched off."),
        _("Set NUMAWEB_ROLLOUTS=1 for numaweb and apply rollouts.yaml of the chart, which gives it the rights."),
    ),
    "no-connection": (_("This cluster has no connection to Kubernetes."), _("Add one in the administration.")),
    "access": (_("The connection to Kubernetes cannot be used."), _("Correct it in the administration.")),
    "unreachable": (_("The API server does not answer."), _("Try again when it does; nothing was done.")),
    "missing-right": (
        _("numaweb has not all rights that a rollout needs."),
        _("Bind its ServiceAccount to the roles of rollouts.yaml of the chart; nothing was done."),
    ),
    "no-key": (
        _("There is no key to sign orders with."),
        _("Set NUMAWEB_ORDER_KEY_FILE, or enter the secret key again that the stored key was encrypted with."),
    ),
    "nothing": (_("No node would change."), _("All nodes of the policy are as wanted, or cannot be changed; its preview says why.")),
    "nothing-changed": (_("No node of this cluster stands as numaweb changed it."), _("There is nothing to take back.")),
    "busy": (_("Another rollout of this cluster is not finished."), _("Wait until it has ended, or stop it.")),
    "old": (_("This plan is too old to be confirmed."), _("Plan again: nodes may have changed since.")),
    "stale": (_("Nodes have changed since this was planned:"), _("Plan again.")),
    "altered": (
        _("The stored plan is not the one that was made: something changed it in the database."),
        _("Nothing is done by it any more. Look at its nodes, and find out who writes there; then plan again."),
    ),
    "hash": (_("This is not the plan that you have seen."), _("Load the page again and look at it.")),
    "count": (_("The number is not that of the nodes."), _("Type the number of nodes that the plan shows.")),
    "number": (_("This is not the number of this rollout."), _("Type the number that stands in its title.")),
    "not-planned": (_("This rollout does not wait for a confirmation any more."), _("Load the page again.")),
    "not-active": (_("This rollout is not at work any more."), _("Load the page again.")),
    "not-paused": (_("This rollout is not paused."), _("Load the page again.")),
    "not-stopped": (_("This rollout is neither paused nor stopped."), _("Pause or stop it first.")),
    "not-failed": (_("This node has neither failed nor been left alone."), _("Load the page again.")),
    "option": (_("These options cannot be used."), _("See the fields below.")),
    "frozen": (_("The pool shares nodes with another one, and both are frozen:"), _("Give the nodes other labels, or let the selectors part.")),
    "no-policy": (_("Nobody has written a policy for this yet."), _("Write one first.")),
    "wish": (_("This policy contradicts itself."), _("Change the policy first.")),
}  # fmt: skip
"""Why something is not done, and what to do: codes of `policies.services.rollout.control.RolloutError`."""

FAULTS: dict[str, Promise] = {
    "below-zero": _("This is 0 or more."),
    "no-amount": _("This is a number of nodes, or a share such as 10%%."),
    "span": _("This is too short or too long: a node gets 10 seconds to a day to be drained, and a pause is a week at most."),
    "no-clock": _("This is a time such as 22:30."),
    "empty-window": _("The window ends when it starts."),
    "no-days": _("Choose at least one day."),
    "no-zone": _("There is no such time zone; they are written like Asia/Shanghai."),
}  # fmt: skip
"""What is wrong with an option (`policies.plan.faults`)."""


DAYS: dict[str, Promise] = {
    "mon": _("Monday"),
    "tue": _("Tuesday"),
    "wed": _("Wednesday"),
    "thu": _("Thursday"),
    "fri": _("Friday"),
    "sat": _("Saturday"),
    "sun": _("Sunday"),
}


def obstacle(code: str, cause: str = "") -> tuple[str, str]:
    """Why something is not done, and what to do; `cause` in others' words stands between."""
    text, remedy = OBSTACLES[code]
    return (f"{text} {own_words.said(cause)}" if cause else str(text)), str(remedy)


def option_fault(code: str) -> str:
    return sentences.filled(FAULTS[code], {})


# ---------------------------------------------------------------- why a node is not changed, or failed

APPLIER: dict[str, Form] = {
    "arguments": (_("The applier was started wrongly."), _("Compare its Job with job.yaml of the chart.")),
    "busy": (_("Another applier is at work on this node."), _("Wait for its answer, then try this node again.")),
    "dbus-lost": (_("The connection to systemd broke off at %(call)s."), _("Look whether dbus runs on the node.")),
    "dbus-refused": (_("systemd refused %(call)s."), _("The applier needs root and systemd on the node; compare its Job with job.yaml of the chart.")),
    "dbus-silent": (_("systemd did not answer %(call)s in time."), _("Look at the node with systemctl status.")),
    "dead-man": (
        _("The node's own safeguard (numaweb-kubelet-undo) was there first, or could not be set up: %(unit)s"),
        _("Look at it with systemctl status on the node."),
    ),
    "dead-man-short": (_("The time after which the node goes back by itself is too short."), _("Bring numaweb and the applier to the same version.")),
    "ended": (_("Somebody ended the applier's Job."), _("Look who deletes pods of its namespace, then try this node again.")),
    "epoch": (_("A newer order (%(newest)s) has overtaken this one (%(epoch)s) on the node."), _("Plan again.")),
    "epoch-twice": (_("The node has taken on another order with the same number %(epoch)s."), _("Two numaweb may speak to this cluster: let one of them do it.")),
    "expired": (_("The order came too late."), _("Try this node again; if it happens again, set the node's clock.")),
    "file-changed": (_("Somebody changed %(path)s after it was planned."), _("Look at the node, then plan again.")),
    "interrupted": (_("The applier was interrupted midway, and the node went back."), _("Try this node again.")),
    "job": (_("systemd ended a start or stop of %(unit)s with %(result)s."), _("Look at it with systemctl status on the node.")),
    "key-unknown": (_("The node does not believe the key of this numaweb (%(key)s)."), _("Put the output of manage.py orderkey into the ConfigMap numaweb-order-keys.")),
    "key-unreadable": (_("The keys that the node believes cannot be read."), _("Put the output of manage.py orderkey into the ConfigMap numaweb-order-keys.")),
    "kubelet-dies": (ngettext_lazy(
            "The kubelet ended %(times)s time after its start, with status %(status)s.",
            "The kubelet ended %(times)s times after its start, the last time with status %(status)s.",
            "number of times",
        ), _("Its own words stand in journalctl -u kubelet on the node.")),
    "kubelet-runs": (_("The kubelet was stopped and runs again (process %(pid)s): something on the node starts it."), _("Find out what starts the kubelet on this node, and plan again.")),
    "kubelet-silent": (_("The kubelet ran and was not well after %(seconds)s s."), _("Its own words stand in journalctl -u kubelet on the node.")),
    "kubelet-unwell": (_("The kubelet was not well before the change (%(active)s)."), _("Repair it first; its words stand in journalctl -u kubelet.")),
    "no-dbus": (_("systemd cannot be reached on this node."), _("Look whether dbus runs, and compare the Job with job.yaml of the chart.")),
    "no-file": (_("There is no %(path)s on the node any more."), _("Plan again.")),
    "no-kubelet": (_("No service of systemd runs the kubelet here (%(load)s)."), _("Change the kubelet's settings where it is started.")),
    "no-original": (_("The node keeps no original of %(path)s: numaweb never changed it here."), _("Nothing is to be restored.")),
    "no-room": (_("%(folder)s has no room left for copies."), _("Make room on the node, then try it again.")),
    "not-editable": (_("%(path)s cannot be changed without changing more: %(why)s"), _("Write the file in a plain form by hand.")),
    "not-in-force": (_("The kubelet runs and has %(field)s otherwise than asked: a flag, a later drop-in, or a field that it does not know."), _("Look at the node's flags and drop-ins.")),
    "not-settings": (_("%(path)s holds something else than a kubelet's settings."), _("Look at the kubelet's --config on the node.")),
    "not-written": (_("%(path)s is not what was written: something on the node writes it, too."), _("Find out what writes this file.")),
    "order": (_("The order cannot be read: %(field)s"), _("Bring numaweb and the applier to the same version.")),
    "original-damaged": (_("The kept original of %(path)s is damaged."), _("Compare it with the record beside it in /var/lib/numaweb on the node.")),
    "original-differs": (_("The original kept on the node is another one than the plan has (%(path)s)."), _("Look at the kept file, then plan again.")),
    "outcome-differs": (_("%(path)s would not become what the plan shows."), _("Bring numaweb and the applier to the same version, then plan again.")),
    "overtaken": (_("The node went back and a newer order came meanwhile."), _("Plan again.")),
    "place": (_("The order names a place where the applier does not write: %(field)s"), _("Look at the kubelet's --config and --root-dir.")),
    "signature": (_("The order's signature is wrong: somebody changed it on its way."), _("Look who may create Jobs in numaweb's namespace.")),
    "state-moved": (_("%(name)s came or went while the kubelet stopped."), _("Try this node again.")),
    "state-unreadable": (_("What the applier noted on the node cannot be read."), _("Look at /var/lib/numaweb on the node.")),
    "system": (_("The node's system said: %(error)s"), _("Look whether its file systems are writable and have room.")),
    "unfinished": (_("An earlier change (%(epoch)s) is not finished on this node."), _("Wait until the node has gone back by itself, then try again.")),
    "unreadable": (_("%(path)s cannot be read on the node."), _("Compare the applier's Job with job.yaml of the chart.")),
    "wrong-node": (_("The order is for %(order)s and came to %(node)s: the node was replaced."), _("Plan again.")),
}  # fmt: skip
"""Why an applier did not carry out an order, or went back (`numaagent.applier`)."""

ENGINE: dict[str, Form] = {
    # why a node of the target is not in the plan
    "already": (_("Its file already says what is wanted."), None),
    "control-plane": (_("It belongs to the control plane, which is left out unless the options say otherwise."), None),
    "frozen": (_("Its pools share nodes and are frozen: %(pools)s"), _("Give the nodes other labels, or let the selectors part.")),
    "no-data": (_("Nothing current is known of this node."), _("Look whether its exporter answers; the node's own page says why not.")),
    "old-data": (_("What is known of it is %(age)s s old."), _("Look whether its exporter answers, then plan again.")),
    "would-crash": (_("Its kubelet would crash with this on a pod that runs now."), _("The preview of the policy names the pod.")),
    "would-not-start": (_("Its kubelet would not start with this: %(words)s"), _("Choose otherwise, or correct the node's own settings.")),
    "original-unread": (
        _("%(file)s cannot be read, so nobody could bring back what stood there first."), _("Let the exporter read it."),
    ),
    "file-alone": (
        _("Its file is the original one again, but %(field)s is not in force as it says."), _("Restart its kubelet, then plan again."),
    ),
    # what a plan warns of
    "single-node": (_("This is the cluster's only node: while its kubelet restarts, nothing else takes its work."), _("Choose a time when that does no harm.")),
    "capacity": (
        _("While batch %(batch)s is away, the other nodes lack %(missing)s of %(resource)s (CPUs, or GiB of memory): pods would wait."),
        _("Make batches smaller, or add nodes for the time."),
    ),
    "blocking-budget": (
        _("The disruption budget %(budget)s allows no eviction now, so a drain would wait for it: %(pods)s"),
        _("Start more of these pods first, or ask their owner."),
    ),
    "local-data": (_("These pods keep data on their node, and it is lost when they move: %(pods)s"), _("Back it up first.")),
    "bare-pods": (_("Nobody makes these pods anew when they are evicted: %(pods)s"), _("Ask their owner first.")),
    "own-pods": (_("numaweb itself runs on %(nodes)s, which come last; this page may be away for a moment."), None),
    "missing-right": (_("numaweb has not all rights that a rollout needs: %(rights)s"), _("Bind its ServiceAccount to the roles of rollouts.yaml of the chart.")),
    "lost-pods": (_("These pods would not be admitted where they are again: %(pods)s"), _("Drain the nodes, or look at the preview for why.")),
    "policies-on": (
        _("Policies that are switched on: %(number)s. When the nodes are back, the page of policies shows them as not as wanted; no node changes again by that alone."),
        _("Switch these policies off if the nodes are to stay as they were."),
    ),
    "second-file": (_("numaweb changed a second file on %(nodes)s, which this plan leaves as it is."), _("Plan once more when this is through.")),
    # why a pod stays when its node is drained
    "daemonset": (_("%(pod)s belongs to a DaemonSet and keeps the CPUs that it had until it is started anew."), None),
    "static-pod": (_("%(pod)s is a static pod of the node and keeps the CPUs that it had until it is started anew."), None),
    "own-pod": (_("%(pod)s belongs to numaweb and stays."), None),
    # why a node failed, was left alone, or goes back
    "stopped": (_("The rollout was stopped before this node was begun."), None),
    "not-begun": (_("The rollout was rolled back before this node's turn."), None),
    "gone": (_("The node is not in the cluster any more."), None),
    "replaced": (_("Another machine has this node's name now."), _("Plan again.")),
    "not-ready": (_("The node was not ready before the change."), _("Repair it first, then try it again.")),
    "cordoned-by-others": (_("Somebody else cordoned this node."), _("Uncordon it when it may be used, then try it again.")),
    "uncordoned-by-others": (_("Somebody else uncordoned this node while it was worked on."), _("Agree with them, then try it again.")),
    "altered": (
        _("The stored plan is not the one that was made: something changed it in the database."),
        _("Nothing is done by it any more. Look at its nodes, and find out who writes there; then plan again."),
    ),
    "stale": (_("%(file)s has changed since it was planned."), _("Plan again.")),
    "other-topology": (_("The machine's topology is another one than was planned with."), _("Look at the node, then plan again.")),
    "drain-timeout": (
        _("It could not be drained within %(seconds)s s; these pods stayed: %(pods)s"), _("Look at their disruption budgets, then try the node again."),
    ),
    "name-taken": (_("Somebody else made %(name)s, which is the name of ours."), _("Remove that object, then try the node again.")),
    "no-answer": (
        _("The applier gave no answer: %(words)s"),
        _("Look at the node by hand: systemctl status kubelet and numaweb-kubelet-undo. It goes back by itself if the change is unfinished."),
    ),
    "strange-answer": (_("The applier's answer is not one to this order."), _("Bring numaweb and the applier to the same version.")),
    "gate-not-ready": (_("The node did not stay ready long enough after the change."), _("Its kubelet's words stand in journalctl -u kubelet.")),
    "gate-not-in-force": (_("After the change %(field)s is not in force as asked."), _("Look at the node's flags and drop-ins.")),
    "gate-no-data": (_("After the change its exporter told nothing."), _("Look whether the exporter runs on the node.")),
    "gate-topology": (_("After the change the exporter tells another topology of the machine."), _("Look at the node: CPUs or memory may have been taken away.")),
    "gate-refused-pods": (_("After the change these pods were refused: %(pods)s"), _("The page of failures says why.")),
    "gate-locality": (_("After the change more containers cross NUMA nodes than before: %(after)s instead of %(before)s."), _("Look at the node's containers.")),
    "undo-failed": (_("It could not go back: %(why)s"), _("Look at the node by hand; the original files are kept in /var/lib/numaweb there.")),
    "undo-unknown": (_("What stood there before cannot be made again from here."), _("Look at the node by hand; the original files are kept in /var/lib/numaweb there.")),
    # why a rollout stopped, waits, or could not be planned
    "stopped-by": (_("%(who)s stopped it."), None),
    "node-failed": (_("Node %(node)s stopped it."), None),
    "unreachable": (_("The API server does not answer: %(words)s"), _("It goes on by itself when it does.")),
    "api": (_("The API server refused: %(words)s"), None),
    "no-connection": (_("This cluster has no connection to Kubernetes."), _("Add one in the administration.")),
    "access": (_("The connection to Kubernetes cannot be used: %(words)s"), _("Correct it in the administration.")),
    "off": OBSTACLES["off"],
    "no-key": (_("There is no key to sign orders with: %(words)s"), OBSTACLES["no-key"][1]),
    "store": (_("The store of live data does not answer: %(words)s"), _("It goes on by itself when it does.")),
    "nothing": OBSTACLES["nothing"],
    "nothing-back": (_("None of the nodes can be taken back from here."), _("Why stands beside each.")),
    "policy-gone": (_("The policy is not there any more."), None),
    "window": (_("It waits for its maintenance window, which opens at %(opens)s."), None),
    "pause": (_("It waits between two batches until %(until)s."), None),
    "nodes-down": (_("It waits: %(nodes)s are away already, and at most %(most)s may be."), _("It goes on when they are back.")),
    # what an act saw
    "as-before": (_("Before: %(crossing)s containers across NUMA nodes, %(refused)s refused pods."), None),
    "blocked": (_("The eviction has to wait: %(words)s"), None),
    "evicted": (_("It was evicted."), None),
    "pod-gone": (_("It was gone already."), None),
    "somebody-was-quicker": (_("Somebody else changed the node in the same moment; it is tried again."), None),
    "answered": (_("The applier answered: %(outcome)s"), None),
    "gate-waits": (_("It waits until the node has been well for long enough."), None),
    "tidied": (_("Job and order were removed."), None),
    "left-cordoned": (_("It stays cordoned: somebody took our mark off it."), _("Uncordon it by hand.")),
    "locality-worse": (_("More containers cross NUMA nodes than before: %(after)s instead of %(before)s."), None),
}  # fmt: skip
"""What the planner and the engine say (`policies.services.rollout.causes`)."""

ANSWERS: dict[str, Promise] = {
    "applied": _("changed, and the kubelet is well"),
    "unchanged": _("was as wanted already"),
    "restored": _("went back by itself"),
    "refused": _("nothing was touched"),
    "failed": _("not back yet, the node's safeguard tries"),
}
"""Outcomes of an order (`numacore.change.order.Outcome`)."""

FORMS: dict[str, Form] = {
    **changing.FORMS,
    **APPLIER,
    **ENGINE,
    "order": (_("The order could not be made or read."), _("Bring numaweb and the applier to the same version.")),
    "no-systemd": APPLIER["no-dbus"],
}  # fmt: skip
"""By code; what a preview refuses stands in a plan as the preview says it, and an engine's code wins where both have it."""


def said(reason: Reason) -> Said:
    """The sentence of a reason and what can be done; a code of a newer applier is shown as it is."""
    form = FORMS.get(reason.code)
    if form is None:
        return Said(gettext("Unknown reason “%(code)s”.") % {"code": reason.code}, "")
    text, remedy = form
    values = shown(reason.values)
    return Said(sentences.filled(text, values), sentences.filled(remedy, values) if remedy else "")


def shown(values: Mapping[str, str | int | float]) -> dict[str, object]:
    """What a preview calls `message` the engine calls `words`; an outcome, and why a node could not go back, are codes of their own."""
    found = changing.shown(values)
    if values.get("outcome") in ANSWERS:
        found["outcome"] = str(ANSWERS[str(values["outcome"])])
    if "message" in values:
        found.setdefault("words", values["message"])
    if "words" in found:
        found["words"] = own_words.said(str(found["words"]))
    if values.get("why") in FORMS:
        found["why"] = sentences.filled(FORMS[str(values["why"])][0], values)
    return found


def reason_of(value: Mapping[str, Any] | None) -> Said | None:
    """The sentence of a Reason as a row keeps it; None = there is none."""
    return said(msgspec.convert(value, Reason)) if value else None


def causes(of: Iterable[Reason]) -> str:
    """Sentences one after another, each with what can be done."""
    told = [said(each) for each in of]
    return " ".join(f"{each.text} {each.remedy}".strip() for each in told)


# ---------------------------------------------------------------- what pages say of one

HEADLINES: dict[str, tuple[Level, Promise]] = {
    "planning": ("unknown", _("The plan is being made.")),
    "planned": ("warning", _("A plan waits to be confirmed; no node has changed.")),
    "discarded": ("unknown", _("Nothing came of this plan; no node has changed.")),
    "running": ("warning", _("It goes through its nodes.")),
    "paused": ("warning", _("It is paused: no node is touched until somebody resumes it.")),
    "stopping": ("warning", _("It is stopping: no further node is begun, what is under way is brought to an end.")),
    "stopped": ("danger", _("It was stopped.")),
    "returning": ("warning", _("It is rolled back: nodes that it changed go back, the last one first.")),
    "returned": ("ok", _("It was rolled back: its nodes are as they were before.")),
    "done": ("ok", _("It is through.")),
}  # fmt: skip
"""The first line of a rollout's page, by its state."""


def headline(state: str, behind: Iterable[Reason]) -> Headline:
    """How it stands; `behind`: why it stopped, or what it waits for."""
    level, text = HEADLINES[state]
    return Headline(level, str(text), causes(behind))


WHERE: dict[str, Promise] = {
    "gone": _("It is not in the cluster any more, so nothing can be done from here."),
    "replaced": _("Another machine has this node's name now, and that one was never changed."),
}
"""Of a changed node that cannot go back (`policies.selectors.changed`)."""

ACTS: dict[str, Promise] = {
    "cordon": _("cordon"),
    "evict": _("evict"),
    "job": _("start the applier with its order"),
    "tidy": _("tidy up"),
    "uncordon": _("uncordon"),
    "note": _("seen"),
}


def act(kind: str) -> str:
    """What was done; a kind that has no word yet is shown as it is recorded."""
    return str(ACTS.get(kind, kind))


def span(seconds: int) -> str:
    """A time that somebody chose, in the largest unit that tells it exactly."""
    if seconds and seconds % 3600 == 0:
        return ngettext("%(number)d hour", "%(number)d hours", seconds // 3600) % {"number": seconds // 3600}
    if seconds and seconds % 60 == 0:
        return ngettext("%(number)d minute", "%(number)d minutes", seconds // 60) % {"number": seconds // 60}
    return ngettext("%(number)d second", "%(number)d seconds", seconds) % {"number": seconds}


def options(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How a rollout goes, as label and value."""
    chosen = msgspec.convert(given, plans.Options)
    drain = (
        gettext("yes, within %(span)s a node") % {"span": span(chosen.drain_within)}
        if chosen.drain
        else gettext("no")
    )
    return [
        (gettext("Canary"), str(chosen.canary)),
        (gettext("Nodes in a batch"), chosen.batch),
        (gettext("Away at once at most"), chosen.max_unavailable),
        (
            gettext("Pause between batches"),
            span(chosen.pause_between) if chosen.pause_between else gettext("none"),
        ),
        (gettext("Drain each node before"), drain),
        (
            gettext("Nodes of the control plane, too"),
            gettext("yes") if chosen.control_plane else gettext("no"),
        ),
        (gettext("Maintenance window"), window(chosen.window) if chosen.window else gettext("any time")),
    ]


def window(of: plans.Window) -> str:
    days = (
        gettext("every day")
        if set(of.days) == set(plans.DAYS)
        else ", ".join(str(DAYS[day]) for day in of.days)
    )
    return f"{of.start}–{of.end} {of.zone}, {days}"


def changes(present: Mapping[str, Any], intended: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Field, what is in force, what is asked for; a default is called so."""
    return [(name, _value(present.get(name)), _value(intended[name])) for name in sorted(intended)]


def _value(value: Any) -> str:
    return gettext("default") if value is None else kubelet.shown(value)


def warnings(plan: plans.Plan) -> list[Said]:
    return [said(each) for each in plan.warnings]


PICKS: dict[str, Promise] = {"working": _("at work"), "waiting": _("waiting")}


def picks(at_work: int, waiting: int) -> list[tuple[str, str, int]]:
    """Which nodes can be looked at alone beside those with an outcome: filter, label, how many."""
    counted = [("working", at_work), ("waiting", waiting)]
    return [(name, str(PICKS[name]), count) for name, count in counted if count]


# ---------------------------------------------------------------- notices

EVENTS: dict[str, Promise] = {
    "stopped": _("Rollout %(number)s in cluster %(cluster)s stopped by itself."),
    "returned": _("Rollout %(number)s in cluster %(cluster)s was rolled back."),
    "done": _("Rollout %(number)s in cluster %(cluster)s is through."),
}
"""What a notice tells, by the rollout's state."""


def event(state: str, number: int, cluster: str) -> str:
    return sentences.filled(EVENTS[state], {"number": number, "cluster": cluster})


def target(level: str, name: str) -> str:
    """For which nodes a rollout is."""
    match level:
        case "pool":
            return gettext("pool %(name)s") % {"name": name}
        case "node":
            return gettext("node %(name)s") % {"name": name}
        case "changed":
            return gettext("all nodes that numaweb changed")
    return gettext("the whole cluster")
