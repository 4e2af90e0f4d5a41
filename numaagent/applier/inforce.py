"""What the kubelet says that is in force, beside what was asked: a misspelt name is not an error for a kubelet, it just has no effect.

`/configz` at the node's own address, with this program's own short-lived token, and only to a server that proves that it holds the
kubelet's certificate: whoever listens at that port while the kubelet is away gets no token. Without a token the policies in the
kubelet's state files tell.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import ssl
from collections.abc import Mapping
from typing import Any

import msgspec

from numaagent.applier import health, places, writing
from numaagent.applier.places import Host
from numacore import quantity
from numacore.change.order import Order
from numacore.quantity import QuantityError

PORT = 10250
PATIENCE = 20.0
"""Seconds for one answer: the kubelet asks the API server whose token it is and what he may."""
TRIES = 3
LIMIT = 1 << 20
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_DEFAULTS = {
    "cpuManagerPolicy": "none",
    "memoryManagerPolicy": "None",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}
"""kubelet 1.37, apis/config/v1beta1/defaults.go; every other field that an order may touch is empty then, and not shown."""
_POLICIES = {"cpuManagerPolicy": "cpu_manager_state", "memoryManagerPolicy": "memory_manager_state"}


class InForce(msgspec.Struct, frozen=True):
    """What is known. `shown` None = nobody could tell; `why` says why the kubelet itself did not, "" = nobody asked it or it did."""

    shown: dict[str, Any] | None
    source: str = ""
    why: str = ""


def asked(order: Order) -> dict[str, Any]:
    """Every field that an order touches; None = it goes."""
    return {**order.keys, **dict.fromkeys(order.removed)}


def read(host: Host, order: Order, port: int, token: str | None) -> InForce:
    """What the kubelet says of the fields that an order touches."""
    why = ""
    if token:
        try:
            shown = _asked_patiently(host, port, token)
            return InForce({name: shown.get(name) for name in asked(order)} | _reserved(shown), "configz")
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = f"https://{health.ADDRESS}:{port}/configz: {error}"
    shown = {}
    for field, name in _POLICIES.items():
        policy = _policy(host, f"{order.root}/{name}")
        if policy is not None and field in asked(order):
            shown[field] = policy
    return InForce(shown, "state-files", why) if shown else InForce(None, "", why)


def _asked_patiently(host: Host, port: int, token: str) -> dict[str, Any]:
    """A kubelet that has just started is busy, and so is its node: silence is no answer. Raises as `_configz`."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(TimeoutError, ConnectionError, http.client.HTTPException):
            return _configz(host, port, token)
    return _configz(host, port, token)


def differences(wanted: Mapping[str, Any], found: InForce, *, drop_in: bool) -> dict[str, Any]:
    """Fields that are in force with another value than asked for, with that value."""
    if found.shown is None:
        return {}
    told = wanted if found.source == "configz" else {name: wanted[name] for name in found.shown}
    derived = bool(found.shown.get("reservedSystemCPUs"))
    return {
        name: found.shown.get(name)
        for name, value in told.items()
        if not _agrees(name, value, found.shown.get(name), drop_in=drop_in, derived=derived)
    }


def _agrees(name: str, wanted: Any, shown: Any, *, drop_in: bool, derived: bool) -> bool:
    if name in ("systemReserved", "kubeReserved"):
        # With a list of reserved CPUs the kubelet itself sets the amount (kubelet 1.37, cmd/kubelet/app/server.go `run`).
        return _same_maps(wanted or {}, shown or {}, drop_in=drop_in, leave={"cpu"} if derived else set())
    if name.endswith("Options"):
        return _same_maps(wanted or {}, shown or {}, drop_in=drop_in, leave=set())
    if name == "reservedMemory":
        return _memory(wanted) == _memory(shown)
    default = _DEFAULTS.get(name, "")
    return (wanted or default) == (shown or default)


def _same_maps(
    wanted: Mapping[str, Any], shown: Mapping[str, Any], *, drop_in: bool, leave: set[str]
) -> bool:
    """A drop-in's map is merged into what stands before it, so there more may be shown; null there = not shown."""
    names = set(wanted) if drop_in else set(wanted) | set(shown)
    return all(_amount(wanted.get(each)) == _amount(shown.get(each)) for each in names - leave)


def _memory(value: Any) -> list[tuple[int, list[tuple[str, Any]]]]:
    return sorted(
        (each["numaNode"], sorted((name, _amount(size)) for name, size in each["limits"].items()))
        for each in value or ()
    )


def _amount(value: Any) -> Any:
    try:
        return value if value is None else quantity.parse(value)
    except QuantityError:
        return str(value)


def _reserved(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Decides how reserved amounts are compared, also where the order leaves it as it is."""
    return {"reservedSystemCPUs": shown["reservedSystemCPUs"]} if shown.get("reservedSystemCPUs") else {}


def _policy(host: Host, path: str) -> str | None:
    try:
        content = writing.read(host.at(path))
        table = None if content is None else json.loads(content.data)
        if isinstance(table, dict) and isinstance(table.get("data"), str):
            table = json.loads(table["data"])
        policy = table.get("policyName") if isinstance(table, dict) else None
    except (OSError, ValueError):
        return None
    return policy if isinstance(policy, str) else None


def _configz(host: Host, port: int, token: str) -> dict[str, Any]:
    """Raises OSError, ValueError, HTTPException."""
    # Not by a certificate authority: kubelets sign their own. The certificate itself is compared, before anything is said.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(health.ADDRESS, port, timeout=PATIENCE, context=context)
    try:
        connection.connect()
        presented = connection.sock.getpeercert(binary_form=True)
        if presented not in _certificates(host):
            raise ValueError(f"who answers there holds none of the kubelet's certificates in {places.PKI}")
        connection.request(
            "GET", "/configz", headers={"Authorization": f"Bearer {token}", "Connection": "close"}
        )
        answer = connection.getresponse()
        data = answer.read(LIMIT + 1)
    finally:
        connection.close()
    if answer.status != 200 or len(data) > LIMIT:
        raise ValueError(f"{answer.status} {data[:200].decode('utf-8', 'replace').strip()}")
    table = json.loads(data)
    shown = table.get("kubeletconfig") if isinstance(table, dict) else None
    if isinstance(shown, dict):
        return shown
    raise ValueError("it shows no kubeletconfig")


def _certificates(host: Host) -> list[bytes]:
    folder = host.at(places.PKI)
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith((".crt", ".pem")):
            content = None
            try:
                content = writing.read(f"{folder}/{name}")
            except OSError:
                continue  # kubelet-server-current.pem is a link to one of the others
            text = content.data.decode("ascii", "replace") if content else ""
            found += [ssl.PEM_cert_to_DER_cert(each) for each in _PEM.findall(text)]
    return found
