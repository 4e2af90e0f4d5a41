"""The kubelet's placement settings as rows: what is asked for, by whom, and what is in force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.figures import causes
from numacore.kubeletstate import Kubelet, Setting
from numacore.report import Policy
from numacore.wire import Problem

SOURCES: dict[str, Promise] = {
    "default": _("default"),
    "file": _("configuration file"),
    "drop-in": _("drop-in file"),
    "flag": _("command line"),
}
# Fields that decide where containers sit: what each is for, and the kubelet's default.
FIELDS: dict[str, tuple[Promise, str]] = {
    "topologyManagerPolicy": (
        _("Whether CPUs, memory and devices of a container must share a NUMA node"),
        "none",
    ),
    "topologyManagerScope": (_("What is aligned: each container alone, or the pod as a whole"), "container"),
    "topologyManagerPolicyOptions": (_("Finer rules of the topology manager"), ""),
    "cpuManagerPolicy": (_("static gives whole CPUs to Guaranteed containers; none pins nobody"), "none"),
    "cpuManagerPolicyOptions": (_("Finer rules of the CPU manager"), ""),
    "reservedSystemCPUs": (_("CPUs kept for the system"), ""),
    "memoryManagerPolicy": (_("Static ties the memory of Guaranteed pods to NUMA nodes"), "None"),
    "reservedMemory": (_("Memory of each NUMA node kept for the system"), ""),
    "systemReserved": (_("Resources kept for the system"), ""),
    "kubeReserved": (_("Resources kept for Kubernetes itself"), ""),
    "evictionHard": (_("Thresholds below which pods are evicted"), ""),
}


# State files of the kubelet, which tell what is in force; of other settings nothing on the node does.
TELLERS = {"cpuManagerPolicy": "cpu_manager_state", "memoryManagerPolicy": "memory_manager_state"}


class Row(NamedTuple):
    """One setting. `in_force` "" = unknown, and `cause` says why; `differs` = it is not what is asked for."""

    field: str
    help: str | Promise
    asked: str
    source: str | Promise
    where: str
    in_force: str
    cause: str
    differs: bool


def rows(
    kubelet: Kubelet,
    policy: Policy | None,
    problems: Iterable[Problem] = (),
    configz: Mapping[str, object] | None = None,
) -> list[Row]:
    """The placement settings first, then whatever else the kubelet's files ask for.

    `configz`: what the kubelet itself says is in force, where it could be asked; else its state files tell of two fields.
    """
    others = sorted(set(kubelet.settings) - set(FIELDS))
    force: dict[str, object] = {}
    if policy is not None:
        force = {"cpuManagerPolicy": policy.cpu_in_force, "memoryManagerPolicy": policy.memory_in_force}
    force |= configz or {}
    told = tuple(problems)
    return [
        row(
            field,
            kubelet.settings.get(field),
            force.get(field),
            cause="" if force.get(field) else cause(field, told, asked=configz is not None),
            read=not kubelet.unread,
        )
        for field in [*FIELDS, *others]
    ]


def row(field: str, setting: Setting | None, force: object, *, cause: str, read: bool) -> Row:
    """`force`: the value in force, None = unknown. `read` false = a file that may ask for it cannot be read: what nobody else asks for is unknown."""
    text, default = FIELDS.get(field, ("", ""))
    in_force = shown(force) if force else ""
    if setting is None and not read:
        return Row(field, text, "?", _("unknown"), "", in_force, cause, differs=False)
    asked = shown(setting.value) if setting else default
    source = setting.source if setting else "default"
    where = (setting.where or "") if setting else ""
    differs = bool(in_force) and not _same(force, setting.value if setting else default)
    return Row(field, text, asked, SOURCES[source], where, in_force, cause, differs)


def _same(force: object, asked: object) -> bool:
    """Whether what is in force is what is asked for. Where nobody asks for a structure, the kubelet's own default is."""
    if asked == "" and not isinstance(force, str):
        return True
    return force == asked or shown(force) == shown(asked)


def cause(field: str, problems: Iterable[Problem], *, asked: bool = False) -> str:
    """Why nobody knows what is in force of a setting; `asked`: the kubelet was, and left it out."""
    file = TELLERS.get(field)
    if asked:
        return gettext("the kubelet does not tell it")
    if file is None:
        return gettext("no file on the node tells it")
    problem = next((each for each in problems if each.what.endswith(file)), None)
    if problem is None:
        return gettext("%(file)s was not found") % {"file": file}
    return f"{file}: {causes.said(problem.cause)}"


def shown(value: object) -> str:
    """A value as somebody would write it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
