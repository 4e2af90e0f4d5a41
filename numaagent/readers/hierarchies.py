"""Where the cgroup trees are and which controller each one carries: version 2, version 1, or both side by side.

Kernel: Documentation/admin-guide/cgroup-v2.rst, Documentation/admin-guide/cgroup-v1/cgroups.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from numaagent.config import Roots
from numaagent.readers.files import Files, Source

CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory")
"""Controllers that are read."""


class Hierarchy(msgspec.Struct, frozen=True):
    """One mounted tree. `prefix` of the cpuset files is empty where it was mounted with `noprefix`."""

    path: str
    version: int
    controllers: frozenset[str]
    prefix: str = "cpuset."


class Hierarchies(msgspec.Struct, frozen=True):
    """The trees in which groups are looked for, and the tree of each controller."""

    walked: tuple[Hierarchy, ...]
    by_controller: dict[str, Hierarchy]


class _Mount(msgspec.Struct, frozen=True):
    place: str
    kind: str
    options: frozenset[str]


def find(files: Files, roots: Roots) -> Hierarchies:
    """The machine's cgroup trees."""
    source = files.reader("cgroups")
    found = [each for each in _mounted(source, roots) if source.exists(each.path)]
    if not found and not roots.cgroup:
        found = list(_probed(source, f"{roots.sysfs}/fs/cgroup"))
    if not found:
        source.fail(
            roots.cgroup or f"{roots.sysfs}/fs/cgroup",
            "no cgroup file system is here: mount the host's /sys, or name the folder in NUMAAGENT_CGROUP",
        )
    return _assigned(found)


def _mounted(source: Source, roots: Roots) -> Iterator[Hierarchy]:
    if roots.cgroup:
        yield from _probed(source, roots.cgroup)
        return
    for mount in _mounts(source, roots):
        path = roots.at(mount.place)
        if mount.kind == "cgroup2":
            yield _version2(source, path)
        elif mount.kind == "cgroup":
            prefix = "" if "noprefix" in mount.options else "cpuset."
            yield Hierarchy(path, 1, _first_version(mount.options), prefix)
        elif mount.kind == "cpuset":  # kernels before 2.6.24
            yield Hierarchy(path, 1, frozenset({"cpuset"}), "")


def _mounts(source: Source, roots: Roots) -> Iterator[_Mount]:
    """Mounts as the first process sees them; from inside a container `/proc/mounts` would show the container's own."""
    text = source.text(f"{roots.proc}/1/mounts") or source.text(f"{roots.proc}/mounts")
    text = text or source.text(f"{roots.proc}/self/mounts") or ""
    lines = text.splitlines() or _from_mountinfo(source, roots)
    for fields in (line.split(" ") for line in lines):
        if len(fields) >= 4 and fields[2] in ("cgroup", "cgroup2", "cpuset"):
            yield _Mount(_unescaped(fields[1]), fields[2], frozenset(fields[3].split(",")))


def _from_mountinfo(source: Source, roots: Roots) -> list[str]:
    """`mountinfo` (proc_pid_mountinfo(5)) in the form of `mounts`."""
    text = source.text(f"{roots.proc}/1/mountinfo") or source.text(f"{roots.proc}/self/mountinfo") or ""
    halves = (line.partition(" - ") for line in text.splitlines())
    fields = ((left.split(" "), right.split(" ")) for left, _, right in halves)
    return [
        f"{right[1]} {left[4]} {right[0]} {left[5]},{right[2]}"
        for left, right in fields
        if len(left) > 5 and len(right) > 2
    ]


def _unescaped(place: str) -> str:
    """fstab(5): blanks and the like are octal."""
    return place.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def _probed(source: Source, folder: str) -> Iterator[Hierarchy]:
    """Trees that no mount table names, by their files and the usual names of their folders."""
    if source.exists(f"{folder}/cgroup.controllers"):
        yield _version2(source, folder)
        return
    if source.exists(f"{folder}/cpuset.cpus") or source.exists(f"{folder}/cpus"):
        yield Hierarchy(
            folder, 1, frozenset({"cpuset"}), "cpuset." if source.exists(f"{folder}/cpuset.cpus") else ""
        )
        return
    for name in sorted(source.names(folder)):
        if name == "unified":
            yield _version2(source, f"{folder}/{name}")
        elif controllers := _first_version(frozenset(name.split(","))):
            yield Hierarchy(f"{folder}/{name}", 1, controllers)


def _version2(source: Source, path: str) -> Hierarchy:
    text = source.text(f"{path}/cgroup.controllers")
    names = frozenset(CONTROLLERS if text is None else text.split())
    # CPU time is counted in every group of version 2, whether or not the controller is on.
    return Hierarchy(path, 2, names & set(CONTROLLERS) | {"cpuacct"})


def _first_version(names: frozenset[str]) -> frozenset[str]:
    found = names & set(CONTROLLERS)
    return found | {"name=systemd"} if names & {"name=systemd", "systemd"} else found


def _assigned(found: list[Hierarchy]) -> Hierarchies:
    """Controllers of version 1 are not in version 2, so a tree of version 1 that names one has it."""
    by_controller: dict[str, Hierarchy] = {}
    for each in sorted(found, key=lambda each: each.version):
        for name in each.controllers & set(CONTROLLERS):
            by_controller.setdefault(name, each)
    useful = [each for each in found if each.controllers]
    return Hierarchies(tuple(dict.fromkeys(useful)), by_controller)
