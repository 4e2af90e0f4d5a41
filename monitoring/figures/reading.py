"""What an exporter could not read on its node, in words: which reader, what, why, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.figures import causes
from monitoring.figures.sentences import Said
from numacore.wire import Problem

READERS: dict[str, Promise] = {
    "topology": _("Topology"),
    "identity": _("Name of the machine"),
    "devices": _("Devices"),
    "performance": _("Latency and bandwidth"),
    "memory-size": _("Size of memory"),
    "memory-places": _("Memory of NUMA nodes"),
    "memory": _("Use of memory"),
    "cpu-times": _("Use of CPUs"),
    "cgroups": _("Folder of cgroups"),
    "containers": _("Cgroups of containers"),
    "containers-use": _("Use of containers"),
    "container-names": _("Names of containers"),
    "limits": _("Limits of containers"),
    "numa-maps": _("Pages of processes"),
    "kubelet": _("Kubelet"),
    "kubelet-process": _("Command line of the kubelet"),
    "kubelet-config": _("Configuration of the kubelet"),
    "podresources": _("PodResources socket"),
    "cpu-state": _("State of the CPU manager"),
    "memory-state": _("State of the memory manager"),
    "exporter": _("Exporter"),
    "server": _("Server of the exporter"),
}
"""What the readers of `numaagent` call themselves, as people know it."""

_STATE = _(
    "A kubelet does not start with a state file that it cannot read: drain the node, remove this file and restart the kubelet, "
    "which writes a new one."
)
_MOUNT_KUBELET = _("Mount /var/lib/kubelet into the exporter, read-only, as the deployment files do.")
_MOUNT_LOGS = _("Mount /var/log/pods and /var/log/containers into the exporter, read-only.")
_KERNEL = _(
    "The kernel of this machine tells what nobody can use: compare the file with its firmware's settings, and report it with the machine's model."
)
_KUBELET_LOG = _(
    "Look at the kubelet's log on that node (journalctl -u kubelet); the exporter asks again by itself."
)
_OPTIONAL = _(
    "Nothing has to be done where this kernel or machine does not have it; else mount the host's /sys and /proc as they are."
)

REMEDIES: dict[str, Promise] = {
    "missing": _OPTIONAL,
    "no-right": _(
        "Run the exporter as uid 0 without capabilities, as the deployment files do; SELinux or AppArmor may forbid it too."
    ),
    "links": _("Mount the host's folder itself, not a link to it."),
    "files-open": _(
        "Raise the exporter's limit of open files (LimitNOFILE= of its unit, or of the container runtime)."
    ),
    "too-large": _(
        "Look at this file on the node: no file of its kind is that large. It is read again once it is smaller."
    ),
    "distances": _(
        "Compare this file with “numactl --hardware”; distances come from the firmware (ACPI SLIT): update it. Costs are unknown until they fit."
    ),
    "rubbish": _KERNEL,
    "damaged": _KERNEL,
    "yaml": _(
        "Correct this file on the node; a kubelet that restarts reads it too. The exporter reads it again by itself."
    ),
    "flag": _("Correct this flag of the kubelet; what it asks for is unknown until then."),
    "no-cgroups": _("Mount the host's /sys into the exporter, read-only, as the deployment files do."),
    "hangs": _KUBELET_LOG,
    "nobody": _("Check that the kubelet runs on that node, and that the exporter mounts /var/lib/kubelet."),
    "refused": _(
        "Bring the exporter and the kubelet to versions that understand each other; the kubelet's log says more."
    ),
    "no-socket": _("Name the kubelet's real folder in NUMAAGENT_KUBELET_DIR."),
    "defect": _("This is a defect of the exporter: please report it, with its log."),
    "many": _("Solve the problems above first; further ones appear then."),
    "failed": _("Look at the kernel's log on that node (dmesg) and at the exporter's log."),
}
"""By the kind of cause (`causetexts.READING`)."""
BY_READER: dict[tuple[str, str], Promise] = {
    ("damaged", "cpu-state"): _STATE,
    ("damaged", "memory-state"): _STATE,
    ("missing", "kubelet"): _MOUNT_KUBELET,
    ("missing", "podresources"): _(
        "Check that the kubelet runs on that node, and that the exporter mounts /var/lib/kubelet."
    ),
    ("missing", "kubelet-config"): _(
        "Mount the folder of this file into the exporter, read-only; the chart has exporter.kubeletDropIns for drop-ins."
    ),
    ("missing", "container-names"): _MOUNT_LOGS,
    ("missing", "topology"): _(
        "Check that the exporter sees the host's /sys as it is; where firmware or virtualisation leaves this file out, what it tells stays unknown."
    ),
    ("no-right", "numa-maps"): _(
        "Pages of other users' processes need CAP_SYS_PTRACE, or switch NUMAAGENT_NUMA_MAPS off."
    ),
}
"""Where a reader's file has a remedy of its own."""


class Shown(msgspec.Struct, frozen=True):
    """One problem. `code` is the kind of cause, "" = one that this version does not know; `cause` is as the exporter wrote it, `text` the same
    in the reader's language."""

    reader: str
    name: str
    what: str
    code: str
    cause: str
    text: str
    remedy: str
    count: int


def problems(found: Iterable[Problem]) -> list[Shown]:
    """All problems of a node."""
    return [problem(each) for each in found]


def problem(of: Problem) -> Shown:
    """One problem in words."""
    kind = causes.kind(of.cause)
    return Shown(
        reader=of.reader,
        name=str(READERS.get(of.reader, of.reader)),
        what=causes.said(of.what),
        code=kind,
        cause=of.cause,
        text=causes.said(of.cause),
        remedy=remedy(of.reader, kind),
        count=of.count,
    )


def old_ownership(found: Iterable[Problem]) -> Said:
    """Why who owns what is as old as it is, and what to do. `found`: all problems of the node."""
    told = next((each for each in found if each.reader == "podresources"), None)
    text = gettext(
        "The kubelet's socket (PodResources) does not tell it at the moment, and its last answer is shown."
    )
    if told is None:
        return Said(text, str(_KUBELET_LOG))
    shown = problem(told)
    return Said(gettext("%(text)s The cause: %(cause)s.") % {"text": text, "cause": shown.text}, shown.remedy)


def remedy(reader: str, kind: str) -> str:
    """What can be done about a kind of cause that a reader met."""
    return str(BY_READER.get((kind, reader)) or REMEDIES.get(kind) or _UNKNOWN)


_UNKNOWN = _("Look at the exporter's log on that node.")
