"""Sentences for the codes of the core and of the inventory: what is the case, and what one can do about it.

Every code has one sentence and at most one remedy, in the language of the person who looks. For views and tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from monitoring.figures import causes
from numacore.diagnosis import Reason


class Said(NamedTuple):
    """What is the case, and the remedy (empty = nothing to do)."""

    text: str
    remedy: str


Form = tuple[Promise, Promise | None]
"""A sentence and its remedy. One that depends on a number is an `ngettext_lazy` by "number of" and the name of the value."""

PINNING: dict[str, Form] = {
    "pinned": (
        ngettext_lazy(
            "Pinned: the kubelet gave it %(cpus)s CPU of its own.",
            "Pinned: the kubelet gave it %(cpus)s CPUs of its own.",
            "number of cpus",
        ),
        None,
    ),
    "plain": (
        gettext_lazy("Not pinned: it runs outside Kubernetes and may use every CPU of this machine."),
        gettext_lazy(
            "Limit it with AllowedCPUs= and AllowedMemoryNodes= of its systemd unit, or with numactl."
        ),
    ),
    "plain-cpuset": (
        gettext_lazy(
            "Limited, not alone: it runs outside Kubernetes on a cpuset that somebody chose; others may use these CPUs."
        ),
        None,
    ),
    "policy-none": (
        gettext_lazy("Not pinned: the CPU manager policy of this node is %(policy)s, which pins nobody."),
        gettext_lazy(
            "Set cpuManagerPolicy to static on this node and keep some CPUs reserved; then Guaranteed pods with whole "
            "CPUs are pinned."
        ),
    ),
    "qos": (
        gettext_lazy("Not pinned: its pod is %(qos)s, and only Guaranteed pods own CPUs."),
        gettext_lazy("Give every container of the pod CPU and memory limits that equal its requests."),
    ),
    "fraction": (
        gettext_lazy("Not pinned: it asks for %(cpus)s CPUs, and only whole CPUs can be owned."),
        gettext_lazy("Ask for a whole number of CPUs, as request and as limit."),
    ),
    "late": (
        gettext_lazy(
            "Not pinned although it could be: it is Guaranteed with whole CPUs, but the kubelet has no CPUs noted for it. "
            "It most likely started before the static policy did."
        ),
        gettext_lazy("Restart the pod; the kubelet pins when a container starts."),
    ),
    "unknown-qos": (
        gettext_lazy("Unknown: the node does not tell the quality of service class of its pod."),
        gettext_lazy("Look at the problems of the exporter's readers on this node."),
    ),
    "unknown-state": (
        gettext_lazy(
            "Unknown: it meets the conditions for pinning, but neither the kubelet's socket nor its state file can be read."
        ),
        gettext_lazy("Mount /var/lib/kubelet into the exporter, read-only, as the deployment files do."),
    ),
    "unknown-kubelet": (
        gettext_lazy("Unknown: nothing is known of this node's kubelet."),
        gettext_lazy("Mount /var/lib/kubelet into the exporter, read-only, as the deployment files do."),
    ),
}

MEMORY: dict[str, Form] = {
    "memory-first-touch": (
        gettext_lazy(
            "Its memory lies where its threads ran when they first touched it; nothing ties it to its CPUs."
        ),
        gettext_lazy(
            "Bind its memory (AllowedMemoryNodes=, numactl --membind) and restart it; pages stay where they are."
        ),
    ),
    "memory-manager-none": (
        gettext_lazy(
            "Its memory crossed because the memory manager policy of this node is %(policy)s: nothing ties memory to a "
            "NUMA node."
        ),
        gettext_lazy(
            "Set memoryManagerPolicy to Static with reservedMemory on this node; it counts for pods that start then."
        ),
    ),
    "memory-group": (
        gettext_lazy(
            "The memory manager gave it a group of NUMA nodes, because no single one had room for its memory."
        ),
        gettext_lazy(
            "Ask for less memory, or move it to a node with a NUMA node that has room; then restart the pod."
        ),
    ),
    "memory-moved": (
        gettext_lazy(
            "The memory manager bound it to NUMA nodes other than those where its pages are: pages from before, page "
            "cache, or memory that another process first touched."
        ),
        gettext_lazy("Restart the pod to place its memory anew."),
    ),
    "memory-not-managed": (
        gettext_lazy(
            "The memory manager is Static, but does not manage this container: only Guaranteed pods count."
        ),
        gettext_lazy("Give every container of the pod CPU and memory limits that equal its requests."),
    ),
}

POLICY: dict[str, Form] = {
    "cpu-policy-differs": (
        gettext_lazy(
            "The kubelet is asked for the CPU manager policy %(asked)s, but %(in_force)s is in force."
        ),
        gettext_lazy(
            "A changed policy takes effect only after the kubelet's cpu_manager_state is removed and the kubelet restarted."
        ),
    ),
    "memory-policy-differs": (
        gettext_lazy(
            "The kubelet is asked for the memory manager policy %(asked)s, but %(in_force)s is in force."
        ),
        gettext_lazy(
            "A changed policy takes effect only after the kubelet's memory_manager_state is removed and the kubelet "
            "restarted."
        ),
    ),
}

REASONS: dict[str, Form] = {**PINNING, **MEMORY, **POLICY}


def reason(of: Reason) -> Said:
    """The sentence of a reason from the core."""
    return spoken(of.code, of.values)


def spoken(code: str, values: Mapping[str, object] | None = None) -> Said:
    """The sentence of a code; a code from a newer core is shown as it is."""
    form = REASONS.get(code)
    if form is None:
        return Said(_("Unknown reason “%(code)s”.") % {"code": code}, "")
    text, remedy = form
    return Said(filled(text, values or {}), str(remedy or ""))


def filled(text: Promise, values: Mapping[str, object], counts: Mapping[str, object] | None = None) -> str:
    """A sentence with its values; a value that is missing is shown as unknown. `counts`: the values as numbers, where `values` has them
    in words."""
    given = {key: value for key, value in values.items() if value is not None}
    return cast(str, cast(Any, text) % _Shown(given, values if counts is None else counts))


_NUMBER_OF = "number of "


class _Shown(dict[str, object]):
    """Values by name, `?` for those that nobody gave; and under "number of" a name what decides between singular and plural."""

    def __init__(self, values: Mapping[str, object], counts: Mapping[str, object]) -> None:
        super().__init__(values)
        self._counts = counts

    def __missing__(self, key: str) -> str | int:
        if key.startswith(_NUMBER_OF):
            return grammatical(self._counts.get(key.removeprefix(_NUMBER_OF)))
        return "?"


def grammatical(count: object) -> int:
    """The number that grammar goes by: 1 of exactly one, else many; parts of one and what is unknown are many too."""
    return 1 if str(count) in ("1", "1.0") else 2


CAUSES: dict[str, Promise] = {
    "never-heard": gettext_lazy("No exporter has ever answered for this node."),
    "endpoint-missing": gettext_lazy("No exporter's address is known for this node any more."),
    "endpoint-disabled": gettext_lazy("Collection from this node's exporter is switched off."),
    "cluster-disabled": gettext_lazy("Collection from this whole cluster is switched off."),
    "endpoint-failing": gettext_lazy("The exporter of this node does not answer: %(cause)s"),
    "conflict": gettext_lazy("Two exporters claim to be this node: %(cause)s"),
    "not-collected": gettext_lazy("No worker collects from this node at the moment."),
    "store-unreachable": gettext_lazy("The store of live data cannot be reached: %(cause)s"),
}
CAUSE_REMEDIES: dict[str, Promise] = {
    "never-heard": gettext_lazy("Start numa-exporter on the node and add its address to the cluster."),
    "endpoint-missing": gettext_lazy("Add the exporter's address to the cluster again."),
    "endpoint-disabled": gettext_lazy(
        "An administrator can switch it on in the administration, under endpoints."
    ),
    "cluster-disabled": gettext_lazy(
        "An administrator can switch it on in the administration, under clusters."
    ),
    "not-collected": gettext_lazy(
        "Check that a worker runs and takes the queue “collect”, and that beat runs."
    ),
    "store-unreachable": gettext_lazy(
        "Check that Redis runs and that its address is right; it is tried again by itself."
    ),
}
REMEDIES: dict[str, Promise] = {
    "check-exporter-runs": gettext_lazy(
        "Check that numa-exporter runs on that node and listens at this address."
    ),
    "check-network": gettext_lazy(
        "Check the network, the firewall and the network policies between numaweb and the node."
    ),
    "set-token": gettext_lazy(
        "Set the bearer token of this endpoint to the one that the exporter was started with."
    ),
    "enter-token": gettext_lazy(
        "Enter the token again in the administration, or give the secret key that it was encrypted with in NUMAWEB_SECRET_KEY_FALLBACKS."
    ),
    "check-address": gettext_lazy("Check the address: something else than numa-exporter answers there."),
    "use-final-address": gettext_lazy("Use the address that it redirects to; redirects are not followed."),
    "check-exporter": gettext_lazy("Check the exporter's log: its answer is larger than it can be."),
    "check-exporter-version": gettext_lazy("Bring the exporter and numaweb to neighbouring versions."),
    "fix-address": gettext_lazy("Correct the address of this endpoint in the administration."),
    "check-certificate": gettext_lazy(
        "Check the exporter's certificate and the authority that numaweb trusts."
    ),
    "renew-machine-id": gettext_lazy(
        "Give the cloned machine an own machine-id (systemd-machine-id-setup) and restart it."
    ),
    "remove-duplicate": gettext_lazy("Remove one of the two addresses, or give each machine its own name."),
    "not-in-cluster": gettext_lazy(
        "Start this exporter with the name that its node has in Kubernetes (NODE_NAME), or move the address to another cluster."
    ),
    "name-of-its-node": gettext_lazy(
        "Give the exporter's pod the name of its node: NODE_NAME from the field spec.nodeName."
    ),
    "see-exporter-log": gettext_lazy("Look at the exporter's log on that node."),
    "check-api-server-runs": gettext_lazy(
        "Check that the API server runs and that numaweb reaches it: its address, firewalls and network policies. It is tried again by itself."
    ),
    "check-api-server-network": gettext_lazy(
        "Connections to the API server break off: look at load balancers and firewalls between. It is tried again by itself."
    ),
    "renew-credentials": gettext_lazy(
        "Enter a new token or kubeconfig for this cluster in the administration; tokens of ServiceAccounts end."
    ),
    "enter-credentials": gettext_lazy(
        "Enter the kubeconfig or token again in the administration, or give the secret key that it was encrypted with in NUMAWEB_SECRET_KEY_FALLBACKS."
    ),
    "grant-right": gettext_lazy(
        "Give the ServiceAccount of numaweb this right; watcher.yaml of the chart has the whole role."
    ),
    "check-api-server-ca": gettext_lazy(
        "Check the certificate of the API server, the certificate authority that was given for it, and the name in its address."
    ),
    "check-api-server-address": gettext_lazy(
        "Check the address: what answers there is no API server, or a proxy stands before it."
    ),
    "wait": gettext_lazy("Nothing is to be done: it is tried again by itself."),
    "see-api-server-log": gettext_lazy("Look at the API server's log; it is tried again by itself."),
    "report-defect": gettext_lazy(
        "This is a defect of numaweb: please report it, with this cause and the collector's log."
    ),
}


def cause(code: str, text: str) -> Said:
    """Why data is old, and what to do."""
    form = CAUSES.get(code)
    said = filled(form, {"cause": causes.said(text) or _("unknown")}) if form else causes.said(text) or code
    return Said(said, str(CAUSE_REMEDIES.get(code, "")))


def remedy(code: str) -> str:
    """What to do about an exporter or an API server that fails."""
    return str(REMEDIES.get(code, ""))


EVENTS: dict[str, Promise] = {
    "first-seen": gettext_lazy("exporter %(version)s"),
    "heard": gettext_lazy("exporter %(version)s"),
    "returned": gettext_lazy("exporter %(version)s"),
    "exporter-changed": gettext_lazy("exporter %(version)s"),
    "gone": gettext_lazy("it is now named %(renamed)s"),
    "replaced": gettext_lazy("the other machine has the uid %(uid)s"),
    "topology-changed": gettext_lazy("topology %(before)s became %(after)s"),
    "endpoint-failing": gettext_lazy("%(cause)s"),
    "placement-changed": gettext_lazy("containers now: %(containers)s"),
    "conflict": gettext_lazy("%(cause)s"),
}


def event(code: str, values: Mapping[str, object]) -> str:
    """What is known of an event beside its name; nothing for one that says all by its name."""
    form = EVENTS.get(code)
    if not values:
        return ""
    if form is None:
        return ", ".join(f"{key}: {value}" for key, value in values.items())
    return filled(form, in_words(values))


def in_words(values: Mapping[str, object]) -> Mapping[str, object]:
    """Values with their cause in the reader's language."""
    return {**values, "cause": causes.said(str(values["cause"]))} if values.get("cause") else values
