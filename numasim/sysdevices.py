"""Writes PCI devices into `/sys`: each behind a port, with its class, NUMA node, driver and kernel names."""

from __future__ import annotations

import re

from numacore.cpuset import CpuSet, union
from numacore.topology import Device, Topology
from numasim import pci
from numasim.files import Tree


def write(tree: Tree, device: Device, topology: Topology) -> None:
    """Writes one device and the port that it sits behind."""
    bus = device.address[5:7]
    port = f"0000:00:{int(bus, 16) // 8:02x}.0"
    bridge = f"sys/devices/pci0000:00/{port}"
    folder = f"{bridge}/{device.address}"
    near = topology.online if device.numa is None else _cpus_of(topology, device.numa)
    numa = {"numa_node": -1 if device.numa is None else device.numa, "local_cpulist": near}
    vendor, _, product = (device.vendor or ":").partition(":")
    tree.put_all(bridge, {"class": "0x060400", "vendor": "0x8086", "device": "0x352a", **numa})
    tree.put_all(
        folder,
        {"class": pci.pci_class(device), "vendor": f"0x{vendor}", "device": f"0x{product}", **numa},
    )
    tree.link(f"sys/bus/pci/devices/{port}", f"../../../devices/pci0000:00/{port}")
    tree.link(f"sys/bus/pci/devices/{device.address}", f"../../../devices/pci0000:00/{port}/{device.address}")
    tree.folder(f"sys/bus/pci/drivers/{device.driver}")
    tree.link(f"{folder}/driver", f"../../../../bus/pci/drivers/{device.driver}")
    for name in device.names:
        _write_name(tree, folder, name)


def _write_name(tree: Tree, folder: str, name: str) -> None:
    """A kernel object of a device, in the class directory of its kind."""
    kind, inside = next((kind, inside) for start, kind, inside in _OBJECTS if re.match(start, name))
    place = f"{folder}/{inside.format(name.removesuffix('n1'))}{name}"
    tree.folder(place)
    tree.link(f"sys/class/{kind}/{name}", "../../../" + place.removeprefix("sys/"))


_OBJECTS = (
    (r"mlx5_", "infiniband", "infiniband/"),
    (r"renderD", "drm", "drm/"),
    (r"nvme\d+n1$", "block", "nvme/{}/"),
    (r"e", "net", "net/"),
)
"""How names start, their class, and where the kernel hangs them below the device."""


def _cpus_of(topology: Topology, numa: int) -> CpuSet:
    return union(node.cpus for node in topology.nodes if node.id == numa)
