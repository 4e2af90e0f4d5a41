"""PCI devices of server models: network cards, disks, GPUs and NPUs, each in its slot near a NUMA node."""

from __future__ import annotations

from typing import Literal

import msgspec

from numacore.topology import Device

Kind = Literal["network", "storage", "accelerator", "other"]


class Card(msgspec.Struct, frozen=True):
    """A product: what stands in its PCI configuration and which kernel names it gets (`{n}` counts them)."""

    kind: Kind
    pci_class: str
    vendor: str
    """`vendor:device`, hexadecimal."""
    driver: str
    names: tuple[str, ...]


CARDS = {
    "nic-25g": Card("network", "0x020000", "15b3:1017", "mlx5_core", ("ens{n}f0np0",)),
    "nic-100g": Card("network", "0x020000", "15b3:101d", "mlx5_core", ("ens{n}np0", "mlx5_{n}")),
    "nic-hns": Card("network", "0x020000", "19e5:a222", "hns3", ("enp{n}s0f0",)),
    "nic-e810": Card("network", "0x020000", "8086:1592", "ice", ("eno{n}",)),
    "nvme": Card("storage", "0x010802", "144d:a80a", "nvme", ("nvme{n}n1",)),
    "a100": Card("accelerator", "0x030200", "10de:20b2", "nvidia", ("renderD{r}",)),
    "gb200": Card("accelerator", "0x030200", "10de:2941", "nvidia", ("renderD{r}",)),
    "ascend": Card("accelerator", "0x120000", "19e5:d802", "davinci", ()),
    "iris": Card("accelerator", "0x030000", "8086:a7a0", "i915", ("renderD{r}",)),
}


def cards(*placed: tuple[str, int | None]) -> tuple[Device, ...]:
    """Devices for (product, NUMA node) pairs, in the order of their addresses."""
    count: dict[Kind, int] = {}
    found = []
    for slot, (product, numa) in enumerate(placed):
        card = CARDS[product]
        n = count[card.kind] = count.get(card.kind, -1) + 1
        names = tuple(name.format(n=n, r=128 + n) for name in card.names)
        bus = 0x10 + slot * 0x08
        address = f"0000:{bus:02x}:00.0"
        found.append(
            Device(
                address=address,
                kind=card.kind,
                numa=numa,
                names=names,
                vendor=card.vendor,
                driver=card.driver,
            )
        )
    return tuple(found)


def pci_class(device: Device) -> str:
    """The class code of a device made by `cards`."""
    return next(card.pci_class for card in CARDS.values() if card.vendor == device.vendor)
