"""Who the machine is: names and ids that the kernel, the firmware and the distribution give it."""

from __future__ import annotations

import os

import msgspec

from numaagent.config import Roots, join
from numaagent.readers import cpuinfo, kerneltext
from numaagent.readers.files import Files, Source

_PLACEHOLDERS = {
    "",
    "none",
    "default string",
    "system product name",
    "to be filled by o.e.m.",
    "not specified",
}
"""What vendors leave in the firmware instead of a model."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Names and ids of a machine; None = it does not say."""

    hostname: str | None = None
    machine_id: str | None = None
    boot_id: str | None = None
    arch: str | None = None
    kernel: str | None = None
    os: str | None = None
    model: str | None = None


def read(files: Files, roots: Roots) -> Identity:
    """The machine's identity."""
    source = files.reader("identity")
    system = f"{roots.proc}/sys/kernel"
    recorded = _colons(source.text(f"{roots.proc}/hwloc-nofile-info") or "")
    # In a container the kernel tells the container's name, so the host's file comes first.
    hostname = source.text(join(roots.root, "/etc/hostname")) or source.text(f"{system}/hostname")
    kernel = source.text(f"{system}/osrelease") or _version(source, roots) or recorded.get("OSRelease")
    return Identity(
        hostname=_meant(hostname or recorded.get("HostName")),
        machine_id=source.text(join(roots.root, "/etc/machine-id")) or None,
        boot_id=source.text(f"{system}/random/boot_id") or None,
        arch=source.text(f"{system}/arch") or recorded.get("Architecture") or _arch(source, roots, kernel),
        kernel=_meant(kernel),
        os=_os(source, roots),
        model=_model(source, roots),
    )


def _meant(text: str | None) -> str | None:
    """Recorded trees carry `dummy` where their recorder hid a name."""
    return None if text in (None, "", "dummy", "(none)") else text


def _version(source: Source, roots: Roots) -> str | None:
    words = (source.text(f"{roots.proc}/version") or "").split()
    return words[2] if len(words) > 2 else None


def _os(source: Source, roots: Roots) -> str | None:
    text = source.text(join(roots.root, "/etc/os-release"))
    text = text or source.text(join(roots.root, "/usr/lib/os-release")) or ""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value.strip("\"'") for name, _, value in pairs}.get("PRETTY_NAME") or None


def _model(source: Source, roots: Roots) -> str | None:
    firmware = f"{roots.sysfs}/class/dmi/id"
    product = source.text(f"{firmware}/product_name") or source.text(f"{roots.proc}/device-tree/model") or ""
    if product.lower() not in _PLACEHOLDERS:
        vendor = source.text(f"{firmware}/sys_vendor") or ""
        return product if vendor.lower() in _PLACEHOLDERS or vendor in product else f"{vendor} {product}"
    tables = cpuinfo.tables(source, roots)
    first = next(iter(tables.values()), {})
    return first.get("model name") or first.get("cpu") or None


def _arch(source: Source, roots: Roots, kernel: str | None) -> str | None:
    """Kernels before 6.1 do not name their architecture in a file; `uname` does where they run us too."""
    here = os.uname()
    if kernel is not None and kernel == here.release:
        return here.machine
    text = source.text(f"{roots.proc}/cpuinfo", limit=cpuinfo.LIMIT) or ""
    first = next(kerneltext.cpuinfo(text), {})
    if first.get("arch") == "IA-64":
        return "ia64"
    if first.get("vendor_id") == "IBM/S390":
        return "s390x"
    if "CPU implementer" in first:
        return "aarch64"
    if "fdiv_bug" in first:  # only 32-bit kernels print it, on 64-bit CPUs too
        return "i686"
    if "flags" in first:
        return "x86_64"
    return None


def _colons(text: str) -> dict[str, str]:
    pairs = (line.partition(": ") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}
