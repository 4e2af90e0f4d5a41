"""Where things are on a node. Paths of an order are checked here against the few places that the applier may write at."""

from __future__ import annotations

import re

import msgspec

from numaagent import config
from numacore.change.order import Order
from numacore.change.undo import STATE, UNITS

TIMERS = f"{UNITS}/timers.target.wants"
MACHINE_ID = "/etc/machine-id"
BUS = "/run/dbus/system_bus_socket"
KUBELET = "/var/lib/kubelet"
PKI = f"{KUBELET}/pki"
UNIT = "kubelet.service"
"""The only unit that is ever stopped and started."""

LOCK = f"{STATE}/lock"
EPOCH = f"{STATE}/epoch"
ORIGINAL = f"{STATE}/original"
CHANGES = f"{STATE}/changes"
LAST_ANSWER = f"{STATE}/answer.json"

_SETTINGS = re.compile(
    r"/(?:var/lib/kubelet|etc/kubernetes)(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,62}){0,2}/[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.(?:ya?ml|json|conf)",
    re.ASCII,
)
"""No space, no quote, no per cent sign, no dollar sign: nothing that a systemd unit would read as more than a path."""
_NEVER = re.compile(
    r"/var/lib/kubelet/(?:pods|pki|plugins|plugins_registry|device-plugins|pod-resources|checkpoints|seccomp)/"
    r"|/etc/kubernetes/(?:manifests|pki)/|/etc/kubernetes/(?:admin|scheduler|controller-manager|super-admin)\.conf"
)
DROP_IN = "90-numa.conf"


class Host(msgspec.Struct, frozen=True):
    """The host's tree as this program sees it."""

    root: str = "/"

    def at(self, path: str) -> str:
        """A path of the host as a path of this program."""
        return config.join(self.root, path)


def fault(order: Order) -> tuple[str, str] | None:
    """The field of an order that names a place where the applier does not write, and why."""
    if order.root != KUBELET:
        return (
            "root",
            f"the kubelet's folder is {order.root}; the applier knows {KUBELET} only, change this node by hand",
        )
    if order.unit != UNIT:
        return (
            "unit",
            f"the kubelet runs as {order.unit}; the applier knows {UNIT} only, change this node by hand",
        )
    if not _SETTINGS.fullmatch(order.path) or _NEVER.match(order.path):
        return (
            "path",
            f"{order.path} is no .yaml, .yml, .json or .conf file below {KUBELET} or /etc/kubernetes, or in a folder "
            "that holds other things; move the kubelet's settings there or change this node by hand",
        )
    if order.drop_in != (order.path.rpartition("/")[2] == DROP_IN):
        return ("path", f"a drop-in of ours is called {DROP_IN}, and no other file is")
    return None
