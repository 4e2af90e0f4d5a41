"""Sentences for what the engine says of a pod on a node: refusals with their amounts, crashes, nodes that cannot be judged,
what had to be assumed, Volcano's verdict, and where the two disagree."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from monitoring.figures import amounts, sentences
from monitoring.figures.sentences import Form, Said
from numacore.diagnosis import Reason
from numacore.volcano.plugin import NodeVerdict
from numacore.whatif.disagreement import Disagreement

Values = Mapping[str, str | int | float]

_LESS = gettext_lazy("Ask for less, take a laxer policy, or wait until a pod that lies there has left.")

REFUSALS: dict[str, Form] = {
    "scheduler-short": (
        ngettext_lazy(
            "Not enough left on the whole node: %(asked)s %(resource)s is asked for; not requested yet: %(free)s.",
            "Not enough left on the whole node: %(asked)s %(resource)s are asked for; not requested yet: %(free)s.",
            "number of asked",
        ),
        gettext_lazy("Ask for less, or wait until pods have left; the scheduler will not send it here."),
    ),
    "numa-lacks": (
        ngettext_lazy(
            "%(owner)s must fit into one NUMA node (%(policy)s). NUMA node %(numa)s comes nearest: %(free)s of %(total)s "
            "%(kind)s are free there, %(asked)s is asked for.",
            "%(owner)s must fit into one NUMA node (%(policy)s). NUMA node %(numa)s comes nearest: %(free)s of %(total)s "
            "%(kind)s are free there, %(asked)s are asked for.",
            "number of asked",
        ),
        _LESS,
    ),
    "numa-set-lacks": (
        ngettext_lazy(
            "%(owner)s must fit into as few NUMA nodes as on an empty machine (%(policy)s). NUMA nodes %(numa)s come nearest: "
            "%(free)s of %(total)s %(kind)s are free there, %(asked)s is asked for.",
            "%(owner)s must fit into as few NUMA nodes as on an empty machine (%(policy)s). NUMA nodes %(numa)s come nearest: "
            "%(free)s of %(total)s %(kind)s are free there, %(asked)s are asked for.",
            "number of asked",
        ),
        _LESS,
    ),
    "not-enough-free": (
        gettext_lazy(
            "%(owner)s asks for %(asked)s %(resource)s; all NUMA nodes together (%(numa)s) have %(free)s of %(total)s free."
        ),
        gettext_lazy("Ask for less, or wait until pods have left."),
    ),
    "widths-differ": (
        gettext_lazy(
            "restricted admits only what every resource prefers: %(wide)s needs %(most)s NUMA nodes, %(narrow)s needs "
            "%(fewest)s, and so they never agree, however much is free."
        ),
        gettext_lazy(
            "Use best-effort or single-numa-node, or ask for amounts that need equally many NUMA nodes."
        ),
    ),
    "no-common-numa": (
        gettext_lazy(
            "%(owner)s: each of %(resources)s would fit somewhere, but no NUMA nodes suit them all (%(policy)s)."
        ),
        _LESS,
    ),
    "memory-lacks": (
        gettext_lazy(
            "%(owner)s: NUMA node %(numa)s has the most %(resource)s, %(free)s of %(total)s free, and %(asked)s are asked for; "
            "NUMA nodes that serve other pods alone cannot be joined to a group."
        ),
        gettext_lazy(
            "Ask for less memory, or wait until a pod that lies there has left."
        ),
    ),
    "smt-multiple": (
        ngettext_lazy(
            "The node gives away whole cores only (full-pcpus-only): %(asked)s CPU is no multiple of the %(per_core)s threads "
            "of a core.",
            "The node gives away whole cores only (full-pcpus-only): %(asked)s CPUs are no multiple of the %(per_core)s threads "
            "of a core.",
            "number of asked",
        ),
        gettext_lazy("Ask for a multiple of %(per_core)s CPUs."),
    ),
    "smt-short": (
        ngettext_lazy(
            "The node gives away whole cores only (full-pcpus-only): %(free)s CPU is in a free core, and asked for: %(asked)s.",
            "The node gives away whole cores only (full-pcpus-only): %(free)s CPUs are in free cores, and asked for: %(asked)s.",
            "number of free",
        ),
        gettext_lazy("Ask for fewer CPUs, or wait until pods have left."),
    ),
    "cpus-short": (
        ngettext_lazy(
            "%(owner)s asks for %(asked)s CPU of its own; %(free)s can still be given away.",
            "%(owner)s asks for %(asked)s CPUs of its own; %(free)s can still be given away.",
            "number of asked",
        ),
        gettext_lazy("Ask for fewer CPUs, or wait until pods have left."),
    ),
    "cpus-not-divisible": (
        gettext_lazy("%(owner)s: its CPUs cannot be spread as the options of the CPU manager demand."),
        gettext_lazy("Ask for another number of CPUs, or change the options of the CPU manager."),
    ),
    "devices-short": (
        ngettext_lazy(
            "%(owner)s asks for %(asked)s × %(resource)s; %(free)s is free.",
            "%(owner)s asks for %(asked)s × %(resource)s; %(free)s are free.",
            "number of free",
        ),
        gettext_lazy("Ask for fewer, or wait until a pod that has some has left."),
    ),
    "devices-unregistered": (
        gettext_lazy("%(owner)s asks for %(resource)s, and no device plugin offers it on this node."),
        gettext_lazy("Start the device plugin on the node, or choose another node."),
    ),
    "devices-unhealthy": (
        gettext_lazy("%(owner)s asks for %(resource)s, and no healthy one is there."),
        gettext_lazy("Look at the device plugin's log on that node."),
    ),
    "devices-changed": (
        gettext_lazy("%(owner)s asks for another number of %(resource)s than it holds already."),
        None,
    ),
    "memory-nowhere": (
        gettext_lazy("%(owner)s: no NUMA nodes have enough memory for it."),
        gettext_lazy("Ask for less memory, or wait until pods have left."),
    ),
    "memory-not-extended": (
        gettext_lazy(
            "%(owner)s: its memory does not fit the NUMA nodes of its CPUs, and they cannot be extended by others."
        ),
        gettext_lazy("Ask for less memory, or wait until pods have left."),
    ),
    "memory-not-preferred": (
        gettext_lazy("%(owner)s: its memory would need more NUMA nodes than the policy allows."),
        gettext_lazy("Ask for less memory, or take a laxer policy."),
    ),
    "memory-groups": (
        gettext_lazy("%(owner)s: its memory would split a group of NUMA nodes that serves other pods."),
        gettext_lazy("Ask for less memory, or wait until those pods have left."),
    ),
    "memory-amount": (
        gettext_lazy("%(owner)s asks for an amount of memory that the kubelet cannot read as a whole number."),
        gettext_lazy("Write the amount as a whole number with a suffix, such as 1536Mi instead of 1.5Gi."),
    ),
    "empty-shared-pool": (
        gettext_lazy(
            "The pod asks as a whole for no more than its exclusive containers take; nothing is left for the others."
        ),
        gettext_lazy("Raise what the pod asks for as a whole, or give the other containers less."),
    ),
    "refused-otherwise": (gettext_lazy("The kubelet refuses it (%(reason)s): %(message)s"), None),
    "kubelet-panics": (
        gettext_lazy(
            "The kubelet of this node would crash on this pod, again at each restart: every pod of the node suffers. Go says: "
            "%(message)s"
        ),
        gettext_lazy("Do not let this pod get onto this node; change its requests or the kubelet's settings first."),
    ),
    "kubelet-hangs": (
        gettext_lazy(
            "The kubelet of this node would hang on this pod and never come back: every pod of the node suffers. %(message)s"
        ),
        gettext_lazy("Do not let this pod get onto this node; change its requests or the kubelet's settings first."),
    ),
}  # fmt: skip

PROBLEMS: dict[str, Form] = {
    "no-data": (
        gettext_lazy("Nothing current is known of this node: no answer of its exporter is at hand."),
        gettext_lazy("Wait a moment after a start; the node's own page says whether its exporter answers."),
    ),
    "kubelet-unknown": (
        gettext_lazy("Nothing is known of this node's kubelet."),
        gettext_lazy("Mount /var/lib/kubelet into the exporter, read-only, as the deployment files do."),
    ),
    "no-kubelet": (gettext_lazy("This machine has no kubelet: no pod can run on it."), None),
    "settings-unread": (
        gettext_lazy("Settings of the kubelet may stand in %(file)s, which the exporter cannot read."),
        gettext_lazy("Let the exporter read that file."),
    ),
    "memory-unknown": (
        gettext_lazy("The size of the memory of NUMA node %(numa)s is unknown."),
        gettext_lazy("Look at the problems of the exporter's readers on this node."),
    ),
    "crashed-before": (
        gettext_lazy("The kubelet of this node would crash on the pods of %(workload)s, which come first."),
        gettext_lazy("Look at that workload alone; it must not get onto this node."),
    ),
    "would-not-start": (
        gettext_lazy("With these settings the kubelet would not start: %(message)s"),
        gettext_lazy("Choose another policy or scope, or correct the kubelet's settings."),
    ),
    "settings-wrong": (
        gettext_lazy("The kubelet's settings cannot be read: %(message)s"),
        gettext_lazy("Correct the kubelet's settings on that node."),
    ),
    "state-unknown": (
        gettext_lazy("The state file of the %(manager)s manager cannot be read; what is free is unknown."),
        gettext_lazy("Let the exporter read the state files in /var/lib/kubelet."),
    ),
    "policy-pending": (
        gettext_lazy(
            "The %(manager)s manager is asked for the policy %(asked)s, but %(in_force)s is in force until the kubelet restarts."
        ),
        gettext_lazy("Restart the kubelet with its state file removed, then ask again."),
    ),
}

NOTES: dict[str, Form] = {
    "version-assumed": (
        gettext_lazy("The kubelet's version is unknown; the rules of %(version)s were taken."),
        None,
    ),
    "version-nearest": (
        gettext_lazy("No rules are known for kubelet %(version)s; those of %(nearest)s were taken."),
        None,
    ),
    "version-documents": (
        gettext_lazy(
            "The rules of kubelet %(version)s come from documents; they were not held against the kubelet itself."
        ),
        None,
    ),
    "devices-unknown": (
        gettext_lazy(
            "Devices: some kubelets do not tell all that they have (older than 1.23, or under an older exporter); whether %(resources)s are "
            "left there is not judged."
        ),
        None,
    ),
    "numatopology-assumed": (
        gettext_lazy(
            "Volcano's view of a node was made as its resource-exporter makes it; its rules are those of 1.15, its weight is %(weight)s."
        ),
        None,
    ),
    "scores-compare": (
        gettext_lazy(
            "Volcano's score compares the nodes that it would take: where all need equally many NUMA nodes, as a single one does, "
            "each scores 0."
        ),
        None,
    ),
    "one-candidate": (
        gettext_lazy(
            "Volcano's score compares candidates: %(node)s is the only one, gets 0, and is chosen all the same."
        ),
        None,
    ),
    "weight-unused": (
        gettext_lazy(
            "The weight that stands in the scheduler's configuration is no whole number; Volcano says nothing and takes %(weight)s."
        ),
        None,
    ),
    "in-order": (
        gettext_lazy(
            "In the manifest's order: each node as if the pods of %(workloads)s stood on it already, as many as fit, then these."
        ),
        None,
    ),
    "requests-unknown": (
        ngettext_lazy(
            "The requests of %(count)s container are unknown to its node; the scheduler may count more than is counted here.",
            "The requests of %(count)s containers are unknown to their nodes; the scheduler may count more than is counted here.",
            "number of count",
        ),
        None,
    ),
    "one-by-one": (
        gettext_lazy("Each group was judged alone, on the nodes as they are now."),
        None,
    ),
}

VOLCANO: dict[str, Form] = {
    "fits": (gettext_lazy("Volcano would take this node."), None),
    "no-numatopology": (
        gettext_lazy("Volcano refuses: there is no Numatopology object of this node."),
        gettext_lazy("Run Volcano's resource-exporter on the node."),
    ),
    "not-static": (
        gettext_lazy("Volcano refuses: the CPU manager of this node is not static."),
        gettext_lazy("Set cpuManagerPolicy to static on this node, or leave out the policy annotation."),
    ),
    "other-policy": (
        gettext_lazy("Volcano refuses: the pod asks for the policy %(asked)s and the node has %(policy)s; it compares the words."),
        gettext_lazy("Ask for the policy that the nodes have, or change the nodes."),
    ),
    "no-cpus": (gettext_lazy("Volcano refuses: no CPU of this node can be given away."), None),
    "container": (gettext_lazy("Volcano refuses: by its count a container's CPUs cannot be aligned here."), None),
    "skipped-not-guaranteed": (
        gettext_lazy("Volcano looks at no NUMA node: the pod is not Guaranteed."),
        None,
    ),
    "skipped-no-numatopology": (
        gettext_lazy("Volcano looks at no NUMA node: there is no Numatopology object of this node."),
        None,
    ),
    "skipped-not-static": (
        gettext_lazy("Volcano looks at no NUMA node: the CPU manager of this node is not static."),
        None,
    ),
    "skipped-no-policy": (
        gettext_lazy("Volcano looks at no NUMA node: neither the pod nor the node has a policy."),
        None,
    ),
}  # fmt: skip

CAUSES: dict[str, Form] = {
    "crash": (gettext_lazy("Volcano counts CPUs only and foresees no crash."), None),
    "memory": (gettext_lazy("Volcano counts CPUs only, and memory or huge pages decide here."), None),
    "devices": (gettext_lazy("Volcano counts CPUs only, and devices decide here."), None),
    "scope": (
        gettext_lazy("Volcano looks at one container after the other, and the kubelet here at the whole pod (scope pod)."),
        None,
    ),
    "init-containers": (gettext_lazy("Volcano leaves init containers out, and the kubelet counts them."), None),
    "full-pcpus-only": (
        gettext_lazy("Volcano does not know full-pcpus-only, and the kubelet gives away whole cores only."),
        None,
    ),
    "reserved-cpus": (
        gettext_lazy("Volcano guesses the reserved CPUs from an amount, and they are others on this node."),
        None,
    ),
    "merge": (
        gettext_lazy("the kubelet's newer rules admit only hints that agree, and Volcano's older ones do not."),
        None,
    ),
    "policy-names": (
        gettext_lazy("Volcano compares the policy's name with the node's, and the kubelet never reads the annotation."),
        None,
    ),
    "no-numatopology": (gettext_lazy("there is no Numatopology object of this node."), None),
    "not-static": (gettext_lazy("the CPU manager of this node is not static."), None),
    "core-ids": (
        gettext_lazy("core ids of this machine repeat in each socket, so that Volcano takes other CPUs for siblings."),
        None,
    ),
    "rules": (gettext_lazy("the two count otherwise."), None),
}  # fmt: skip

ALL: dict[str, Form] = {**REFUSALS, **PROBLEMS, **NOTES}


def reason(of: Reason) -> Said:
    """The sentence of a reason and what can be done."""
    return said(ALL, of.code, of.values)


def said(forms: Mapping[str, Form], code: str, values: Values) -> Said:
    """A code's sentence and remedy, with their values; an unknown code is shown as it is."""
    if code not in forms:
        return Said(_("Unknown reason “%(code)s”.") % {"code": code}, "")
    text, remedy = forms[code]
    given = shown(values)
    return Said(
        sentences.filled(text, given, values), sentences.filled(remedy, given, values) if remedy else ""
    )


def shown(values: Values) -> dict[str, object]:
    """Values as words: amounts in the unit of their resource, and whose request it is. `resource` follows what is asked for, `kind`
    the total."""
    found: dict[str, object] = dict(values)
    resource = str(values.get("resource", "cpu"))
    for key in ("asked", "free", "total", "most"):
        if isinstance(value := values.get(key), int | float):
            found[key] = amounts.of(resource, value)
    for key, counted in (("resource", "asked"), ("kind", "total")):
        if "resource" in values:
            found[key] = amounts.name(resource, sentences.grammatical(values.get(counted)))
    for key in ("wide", "narrow"):
        if key in values:
            found[key] = amounts.name(str(values[key]))
    if "resources" in values:
        found["resources"] = _(", ").join(map(amounts.name, str(values["resources"]).split(", ")))
    if "manager" in values:
        found["manager"] = _("CPU") if values["manager"] == "cpu" else amounts.name(str(values["manager"]))
    if "container" in values:
        found["owner"] = (
            _("Container “%(name)s”") % {"name": values["container"]}
            if values["container"]
            else _("The pod as a whole")
        )
    return found


def volcano(of: NodeVerdict) -> Said:
    """Volcano's verdict in a sentence; its own words stand beside it."""
    outcome = of.outcomes[0]
    code = f"skipped-{of.skipped}" if of.skipped else (outcome.cause or "fits")
    return said(VOLCANO, code, {"asked": of.pod_policy, "policy": of.node_policy or ""})


def disagreement(of: Disagreement) -> str:
    """Who would refuse what the other accepts, and why."""
    cause = said(CAUSES, of.cause, {}).text
    if of.side == "kubelet-crashes":
        return _("Volcano would send it here and the kubelet would crash on it. %(cause)s") % {"cause": cause}
    if of.side == "kubelet-refuses":
        return _("Volcano would send it here and the kubelet would refuse it, because: %(cause)s") % {
            "cause": cause
        }
    return _("The kubelet would take it and Volcano never sends it here, because: %(cause)s") % {
        "cause": cause
    }
