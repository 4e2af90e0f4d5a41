"""The kubelet's placement settings as rows: what is asked for, by whom, and what is in force."""

from __future__ import annotations

import json
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from numacore.kubeletstate import Kubelet, Setting
from numacore.report import Policy

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


class Row(NamedTuple):
    """One setting. `told` = a state file tells what is in force; `differs` = that is not what is asked for."""

    field: str
    help: str | Promise
    asked: str
    source: str | Promise
    where: str
    told: bool
    in_force: str
    differs: bool


def rows(kubelet: Kubelet, policy: Policy | None) -> list[Row]:
    """The placement settings first, then whatever else the kubelet's files ask for."""
    others = sorted(set(kubelet.settings) - set(FIELDS))
    force = {}
    if policy is not None:
        force = {"cpuManagerPolicy": policy.cpu_in_force, "memoryManagerPolicy": policy.memory_in_force}
    return [
        row(
            field, kubelet.settings.get(field), force.get(field), told=field in force, read=not kubelet.unread
        )
        for field in [*FIELDS, *others]
    ]


def row(field: str, setting: Setting | None, in_force: str | None, *, told: bool, read: bool) -> Row:
    """`read` false = a file that may ask for it cannot be read: what nobody else asks for is unknown."""
    text, default = FIELDS.get(field, ("", ""))
    if setting is None and not read:
        return Row(field, text, "?", _("unknown"), "", told, in_force or "", differs=False)
    asked = shown(setting.value) if setting else default
    source = setting.source if setting else "default"
    where = (setting.where or "") if setting else ""
    return Row(
        field, text, asked, SOURCES[source], where, told, in_force or "", bool(in_force) and in_force != asked
    )


def shown(value: object) -> str:
    """A value as somebody would write it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
