"""Strings that scripts show: one catalogue for templates, Python and the browser. `{name}` is filled in there."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

WORDS: dict[str, str | Promise] = {
    "unknown": _("unknown"),
    "cpu": _("CPU {id}"),
    "core": _("core {id}"),
    "socket": _("Socket {id}"),
    "numa": _("NUMA {id}"),
    "several": _("Several sockets"),
    "memory": _("NUMA nodes without CPUs"),
    "offline": _("Offline CPUs"),
    "gridOf": _("CPUs of NUMA node {id}: {count}"),
    "zoomTo": _("Enlarge NUMA node {id}"),
    "memoryOnly": _("memory only"),
    "memoryOf": _("Memory {used} of {total}"),
    "pinnedOf": _("pinned {pinned}/{pinnable}"),
    "busyOf": _("busy {share}"),
    "more": _("and {count} more"),
    "own.exclusive": _("exclusive"),
    "own.shared": _("shared"),
    "own.reserved": _("reserved"),
    "own.offline": _("offline"),
    "own.unknown": _("ownership unknown"),
    "device.network": _("network"),
    "device.storage": _("storage"),
    "device.accelerator": _("accelerator"),
    "device.other": _("device"),
    "links": _("Distances between NUMA nodes"),
    "linksOf": _("Distances of NUMA node {id}"),
    "kind.exclusive": _("exclusive"),
    "kind.narrowed": _("narrowed"),
    "kind.floating": _("floating"),
    "cross.cpu": _("CPU"),
    "cross.memory": _("memory"),
    "cross.device": _("device"),
    "card.cpus": _("CPUs"),
    "card.cpuNodes": _("NUMA nodes of its CPUs"),
    "card.memory": _("Memory by NUMA node"),
    "card.devices": _("Devices"),
    "card.locality": _("Locality"),
    "card.cost": _("Cost"),
    "card.cross": _("Cross-NUMA"),
    "card.no": _("no"),
    "card.none": _("none"),
    "card.deviceOn": _("{resource} on NUMA {numa}"),
    "card.share": _("{numa}: {share}"),
    "live": _("live"),
    "old": _("{seconds} s old"),
    "oldMinutes": _("{minutes} min old"),
    "reconnecting": _("reconnecting"),
    "restarting": _("server restarting"),
    "signedOut": _("signed out"),
    "paused": _("paused"),
    "refused": _("no permission"),
    "noData": _("no data"),
    "stale": _("old data"),
    "nodes": _("nodes: {count}"),
    "tile": _("{name}: {numa} NUMA nodes, pinned {pinned}, busy {busy}"),
    "tileCrossing": _("{count} cross-NUMA"),
    "tileNumaLine": _("NUMA {id}: pinned {pinned}, busy {busy}"),
    "copied": _("Copied"),
    "copyFailed": _("The browser did not allow copying"),
    "loadFailed": _("This part could not be loaded. It is tried again with the next change."),
}


def catalogue() -> dict[str, str]:
    """The strings in the language of this request."""
    return {key: str(text) for key, text in WORDS.items()}
