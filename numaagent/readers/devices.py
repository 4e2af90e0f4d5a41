"""PCI devices that people place workloads by: network, storage, accelerators. Bridges and chipset parts are left out."""

from __future__ import annotations

import re
from typing import Literal

from numaagent.config import Roots
from numaagent.readers.files import Files, Source
from numacore.topology import Device, Topology

Kind = Literal["network", "storage", "accelerator", "other"]
MAX_DEVICES = 2048
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CLASSES: dict[str, Kind] = {
    # PCI Code and ID Assignment Specification: base class, or base and sub class, in hexadecimal.
    "01": "storage",
    "02": "network",
    "03": "accelerator",
    "04": "other",
    "0b40": "accelerator",
    "0c04": "storage",  # Fibre Channel
    "0c06": "network",  # InfiniBand
    "0d": "other",
    "10": "other",
    "12": "accelerator",
}
_CONSOLES = {"0x1a03", "0x102b", "0x1234", "0x1b36", "0x15ad", "0x80ee", "0x1013"}
"""Vendors of graphics that only show the console: ASPEED, Matrox, QEMU, Red Hat, VMware, VirtualBox, Cirrus."""
_NAMED_IN = ("net", "infiniband", "block", "drm", "mic", "accel", "infiniband_verbs")
_NVME = re.compile(r"nvme\d+n\d+")


def read(files: Files, roots: Roots, topology: Topology) -> tuple[Device, ...]:
    """The devices in ascending order of their addresses."""
    source = files.reader("devices")
    folder = f"{roots.sysfs}/bus/pci/devices"
    addresses = sorted(name for name in source.names(folder) if _ADDRESS.fullmatch(name))
    disks = _disks(source, roots)
    found = (
        _device(source, f"{folder}/{address}", address, topology, disks.get(address, set()))
        for address in addresses[:MAX_DEVICES]
    )
    return tuple(device for device in found if device)


def kind_of(code: str, vendor: str) -> Kind | None:
    """Kind of a device by its class code (`0x020000`); None = not worth showing."""
    digits = code.removeprefix("0x").rjust(6, "0")
    kind = _CLASSES.get(digits[:4]) or _CLASSES.get(digits[:2])
    return None if digits[:2] == "03" and vendor in _CONSOLES else kind


def _disks(source: Source, roots: Roots) -> dict[str, set[str]]:
    """Whole disks by the address of their controller: their links in `/sys/block` lead through it."""
    folder = f"{roots.sysfs}/block"
    found: dict[str, set[str]] = {}
    for name in source.names(folder):
        addresses = _ADDRESS.findall(source.link(f"{folder}/{name}") or "")
        if addresses:
            found.setdefault(addresses[-1], set()).add(name)
    return found


def _device(source: Source, folder: str, address: str, topology: Topology, disks: set[str]) -> Device | None:
    code, vendor = source.text(f"{folder}/class"), source.text(f"{folder}/vendor") or ""
    kind = kind_of(code, vendor) if code else None
    if kind is None:
        return None
    product = source.text(f"{folder}/device") or ""
    ids = f"{vendor.removeprefix('0x')}:{product.removeprefix('0x')}" if vendor and product else None
    driver = source.link(f"{folder}/driver")
    return Device(
        address=address,
        kind=kind,
        numa=_numa(source, folder, topology),
        names=_names(source, folder, disks),
        vendor=ids,
        driver=driver.rpartition("/")[2] if driver else None,
    )


def _numa(source: Source, folder: str, topology: Topology) -> int | None:
    """`numa_node`; kernels before 2.6.34 tell only the CPUs near the device."""
    numa = source.number(f"{folder}/numa_node")
    if numa is not None:
        return numa if numa in topology.numa_ids else None
    near = source.mask_or_ids(f"{folder}/local_cpus", f"{folder}/local_cpulist")
    if not near or len(topology.nodes) == 1:
        return None
    return next(
        (node.id for node in topology.nodes if node.cpus and node.cpus == near & topology.online), None
    )


def _names(source: Source, folder: str, disks: set[str]) -> tuple[str, ...]:
    inside = source.names(folder)
    places = [f"{folder}/{name}" for name in _NAMED_IN if name in inside]
    virtual = [f"{folder}/{name}" for name in inside if name.startswith("virtio")]
    places += [f"{each}/{name}" for each in virtual for name in ("net", "block")]
    found = {*disks, *(name for place in places for name in source.names(place))}
    for controller in source.names(f"{folder}/nvme") if "nvme" in inside else []:
        found |= set(filter(_NVME.fullmatch, source.names(f"{folder}/nvme/{controller}"))) or {controller}
    return tuple(sorted(name for name in found if not name.startswith(("card", "uverbs", "control"))))
