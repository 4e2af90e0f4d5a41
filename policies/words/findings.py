"""What the checks of a kubelet's settings find, in words: `numacore.kubelet.checks`, reason and remedy of each finding.

docs/en/kubelet-settings.md has the same sentences for those who ask `python -m numacore check`.
"""

from __future__ import annotations

import msgspec
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from monitoring.figures import sentences
from numacore.diagnosis import Reason
from numacore.kubelet.checks.findings import Finding

SEVERITIES: dict[str, Promise] = {
    "crash": _("the kubelet would crash"),
    "fatal": _("the kubelet would not start"),
    "silent": _("it does something else than what is written"),
    "warning": _("seldom meant"),
}

REASONS: dict[str, Promise] = {
    "gate-unknown": _("The gate %(gate)s does not exist in any version that numaweb knows."),
    "gate-removed": _("The gate %(gate)s was dropped in %(since)s: the version takes only what it knows."),
    "gate-too-new": _("The gate %(gate)s came in %(since)s."),
    "gate-locked": _("The gate %(gate)s is locked: it cannot be set to the other value."),
    "gate-depends": _("The gate %(gate)s is on and needs gates that are off. AllAlpha and AllBeta can do this by themselves."),
    "gate-off-late": _("A default that needs the gate %(gate)s was filled in before a drop-in or a flag turned the gate off."),
    "gate-ending": _("The gate %(gate)s decides nothing any more and will be dropped: from then on this line stops the kubelet."),
    "gate-not-documented": _("numaweb does not know the gate %(gate)s in a version this old."),
    "unknown-flag": _("The version does not know the flag --%(flag)s."),
    "bad-flag": _("The flag --%(flag)s has a value that it does not take."),
    "drop-ins-alpha": _("1.28 and 1.29 read drop-ins only with a variable in their environment."),
    "empty-file": _("The file is empty."),
    "yaml-syntax": _("Line %(line)s is no YAML: %(problem)s."),
    "json-syntax": _("A file that begins with a brace is read as JSON, and line %(line)s is none: %(problem)s."),
    "not-a-mapping": _("The file holds no fields."),
    "no-kind": _("kind is missing. Drop-ins need it too."),
    "no-version": _("apiVersion is missing."),
    "wrong-kind": _("The file is a %(kind)s of %(version)s, not a KubeletConfiguration of kubelet.config.k8s.io/v1beta1."),
    "more-documents": _("The file holds %(number)s documents; the kubelet reads the first."),
    "duplicate": _("The key stands there twice. In the file the last one counts; in a drop-in the kubelet does not start."),
    "wrong-case": _("The field is written %(field)s. As it stands it is ignored, with one line in the log, or none in a drop-in."),
    "wrong-case-counts": _("The field is written %(field)s. In a drop-in it counts all the same; in the file it would not."),
    "unknown-field": _("The kubelet does not know this field and ignores it; perhaps %(field)s is meant."),
    "field-too-new": _("The field came in %(since)s; this version ignores it."),
    "field-removed": _("The field was dropped in %(since)s; this version ignores it."),
    "unquoted": _("The field takes a text, and %(value)s without quotes is none."),
    "wrong-type": _("The field takes %(type)s, and %(value)s is none."),
    "bad-duration": _("%(value)s is no duration."),
    "bad-quantity": _("%(value)s is no quantity."),
    "bad-cpus": _("%(value)s is no list of CPUs."),
    "bad-percentage": _("%(value)s is no percentage."),
    "bad-threshold": _("%(value)s is no threshold."),
    "unknown-signal": _("There is no eviction signal %(signal)s."),
    "not-conf": _("The file's name does not end in .conf: it is not read."),
    "list-replaced": _("The list in %(by)s takes the place of the one in %(of)s: lists do not join."),
    "merge-in-drop-in": _("mergeDefaultEvictionSettings counts in the file only."),
    "flag-beats-file": _("The flag %(flag)s beats what stands in %(file)s."),
    "value-case": _("%(value)s is written in the wrong case."),
    "value-unknown": _("%(value)s is none of the values that the field takes."),
    "number": _("%(value)s is out of bounds."),
    "needs-field": _("It needs %(field)s."),
    "needs-gate": _("It needs the feature gate %(gate)s."),
    "exclusive": _("%(first)s and %(second)s exclude one another."),
    "twice": _("%(value)s stands there twice."),
    "none-with-others": _("none allows no company."),
    "serial-pulls": _("Images are pulled one at a time. The default for that is filled in before drop-ins are read."),
    "run-once": _("runOnce is not possible any more."),
    "cpus-with-cgroup": _("CPUs reserved by list and reserved by cgroup exclude one another."),
    "cpus-not-online": _("CPUs %(cpus)s are not online; %(online)s are."),
    "cpus-beat-amount": ngettext_lazy(
        "The %(number)s CPU of reservedSystemCPUs (%(cpus)s) takes the place of this amount.",
        "The %(number)s CPUs of reservedSystemCPUs (%(cpus)s) take the place of this amount.",
        "number of number",
    ),
    "cpus-only-counted": _("Without the static policy CPUs %(cpus)s are only counted: pods run on them."),
    "cpus-not-reserved": _("As many CPUs as are reserved cannot be taken."),
    "half-cores": _("CPUs %(cpus)s share cores with reserved ones: under full-pcpus-only nobody can own them."),
    "no-reserved-cpus": _("The static policy needs at least a part of a CPU reserved."),
    "no-topology": _("The machine's CPUs cannot be made out."),
    "option-unknown": _("The version does not know the option %(option)s."),
    "option-gate": _("The option %(option)s is %(stage)s in this version, and the gate for such options is off."),
    "option-value": _("The option %(option)s takes true or false."),
    "option-number": _("max-allowable-numa-nodes takes a whole number from 8."),
    "options-exclude": _("The options %(first)s and %(second)s exclude one another."),
    "options-without-policy": _("Options of the CPU manager need the static policy."),
    "socket-single-numa": _("align-by-socket and single-numa-node exclude one another."),
    "socket-hardware": _("The machine has more sockets than NUMA nodes: align-by-socket is not possible."),
    "no-distances": _("The firmware tells no distances between NUMA nodes, and prefer-closest-numa-nodes needs them."),
    "too-many-nodes": _("The machine has %(nodes)s NUMA nodes; %(most)s are allowed."),
    "many-nodes": _("Up to %(most)s NUMA nodes are allowed: every one doubles the time that admission takes."),
    "only-devices": _("Both managers are off: the policy %(policy)s aligns devices only."),
    "without-policy": _("The field does nothing, since %(policy)s is off."),
    "memory-kind": _("%(kind)s is no kind of memory."),
    "memory-zero": _("Nothing (%(kind)s on NUMA node %(numa)s) cannot be reserved."),
    "memory-twice": _("%(kind)s of NUMA node %(numa)s stands there twice."),
    "memory-no-node": _("There is no NUMA node %(numa)s."),
    "memory-not-whole": _("An amount is no whole number of bytes that the kubelet can hold."),
    "memory-none": _("The Static policy needs memory reserved on some NUMA node."),
    "memory-sum": _("reservedMemory names %(have)s bytes of %(kind)s; kubeReserved, systemReserved and evictionHard make %(need)s."),
    "memory-sum-eviction": _("The sum of reservedMemory forgets evictionHard: %(have)s of %(need)s bytes of %(kind)s, %(eviction)s of them for eviction (100Mi if it is not set)."),
    "memory-windows": _("BestEffort is for Windows."),
    "numa-missing": _("numaNode is missing and counts as 0."),
    "not-reservable": _("%(kind)s cannot be reserved."),
    "eviction-defaults-lost": _("Thresholds of one's own take the place of all defaults: %(signals)s have none any more."),
    "no-eviction": _("A kubelet without a configuration file has no thresholds at all: %(signals)s have none."),
    "managers-refuse": _("A manager refuses, in words that numaweb has no explanation for."),
    "state-refused": _("The kubelet does not start on its state files."),
    "pod-lost": _("A running pod (%(uid)s) would be refused after the restart: %(reason)s."),
}  # fmt: skip
"""Why it is a finding."""

REMEDIES: dict[str, Promise] = {
    "write": _("Write %(value)s."),
    "choose": _("Choose one of %(values)s."),
    "quote": _("Put %(value)s in quotes."),
    "give-type": _("Give a value of the type %(type)s."),
    "give-duration": _("Write a number with its unit: 10s."),
    "give-quantity": _("Write a quantity: 500m, 1Gi."),
    "give-cpus": _("Write a list: \"0,4-7\"."),
    "give-percentage": _("Write a percentage: \"50%%\"."),
    "give-threshold": _("Write an amount over zero or a percentage: 100Mi, 10%%."),
    "give-evictions": _("Add %(signals)s, or set mergeDefaultEvictionSettings (1.33 and newer) in the file."),
    "give-kind": _("Begin with apiVersion: kubelet.config.k8s.io/v1beta1 and kind: KubeletConfiguration."),
    "give-numa": _("Name the NUMA node."),
    "mend-syntax": _("Correct line %(line)s."),
    "mend-flag": _("Correct the value of --%(flag)s."),
    "remove-flag": _("Remove --%(flag)s."),
    "remove-one": _("Keep the setting in one place; flags are deprecated, so keep the file and remove %(flag)s."),
    "remove-gate": _("Remove %(gate)s from featureGates."),
    "set-gates": _("Turn the gates on that %(gate)s needs, or %(gate)s off."),
    "set-gate": _("Turn %(gate)s on in featureGates, or remove the field."),
    "gate-in-file": _("Set %(gate)s in the configuration file itself."),
    "ask-kubelet": _("Ask that kubelet: kubelet --help lists its gates."),
    "remove-duplicate": _("Remove one of the two."),
    "rename-field": _("Write %(field)s."),
    "remove-field": _("Remove the field."),
    "remove-value": _("Remove %(value)s."),
    "remove-one-field": _("Remove %(first)s or %(second)s."),
    "set-field": _("Set %(field)s."),
    "one-document": _("Keep one document in the file."),
    "rename-conf": _("Name it so that it ends in .conf, or move it away."),
    "whole-list": _("Write the whole list in the last drop-in."),
    "merge-in-file": _("Set it in the configuration file."),
    "set-drop-in-variable": _("Set KUBELET_CONFIG_DROPIN_DIR_ALPHA in the kubelet's environment."),
    "number-within": _("The value %(demand)s."),
    "only-online": _("Keep %(cpus)s."),
    "reserve-cpus": _("Give reservedSystemCPUs, or cpu in kubeReserved or systemReserved."),
    "reserve-fewer": _("Reserve fewer CPUs, or CPUs that exist."),
    "reserve-whole-cores": _("Reserve %(cpus)s too."),
    "reservable": _("Reserve %(kinds)s only."),
    "set-static": _("Set cpuManagerPolicy: static."),
    "set-memory-static": _("Set memoryManagerPolicy: Static."),
    "set-policy": _("Set %(policy)s, or remove the field."),
    "remove-option": _("Remove the option %(option)s."),
    "remove-one-option": _("Remove %(first)s or %(second)s."),
    "option-bool": _("Write \"true\" or \"false\"."),
    "option-at-least-8": _("Write a number from 8, in quotes."),
    "option-gate-cpu": _("Turn on CPUManagerPolicyAlphaOptions or CPUManagerPolicyBetaOptions, as the words say."),
    "option-gate-topology": _("Turn on TopologyManagerPolicyAlphaOptions or TopologyManagerPolicyBetaOptions, as the words say."),
    "remove-align-by-socket": _("Remove align-by-socket."),
    "remove-prefer-closest": _("Remove prefer-closest-numa-nodes."),
    "allow-nodes": _("Set max-allowable-numa-nodes to the number of NUMA nodes, or the policy to none."),
    "fewer-nodes": _("Use none on such a machine."),
    "watch-admission": _("Watch topology_manager_admission_duration_ms."),
    "memory-kinds": _("Name memory or hugepages-<size>."),
    "memory-once": _("Name each kind of memory once for a NUMA node."),
    "memory-nodes": _("Name NUMA nodes that exist."),
    "memory-bytes": _("Write whole Mi."),
    "memory-reserve": _("Reserve memory in reservedMemory, by the sum of kubeReserved, systemReserved and evictionHard."),
    "memory-sum": _("Make %(kind)s in reservedMemory %(need)s bytes in sum."),
    "look-at-machine": _("Look at /sys/devices/system/cpu of the machine."),
    "read-words": _("Read the kubelet's words."),
    "remove-state": _("Drain the node, stop the kubelet, remove cpu_manager_state and memory_manager_state, start it."),
    "drain-first": _("Drain the node before the restart."),
}  # fmt: skip
"""What to do about it."""

UNKNOWN_FIELD = _("The kubelet does not know this field and ignores it.")
"""Where no field has a similar name."""


class Shown(msgspec.Struct, frozen=True):
    """A finding in words. `words`: the kubelet's own, in English; "" = it says nothing."""

    severity: str
    label: str
    field: str
    text: str
    remedy: str
    words: str


def shown(of: Finding) -> Shown:
    return Shown(
        of.severity, str(SEVERITIES[of.severity]), of.field, _why(of.reason), _what(of.remedy), of.words
    )


def _why(reason: Reason) -> str:
    if reason.code == "unknown-field" and not reason.values:
        return str(UNKNOWN_FIELD)
    return sentences.filled(REASONS[reason.code], reason.values)


def _what(remedy: Reason) -> str:
    return sentences.filled(REMEDIES[remedy.code], remedy.values)
