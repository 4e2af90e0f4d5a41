"""What the kubelet was asked to do: its configuration file, drop-ins and flags, each setting with where it was asked.

Flags beat drop-ins, drop-ins beat the file (KEP-3983). Lists are replaced whole, tables merge by key; a flag replaces a
whole table except feature gates, which merge (kubelet cmd/kubelet/app/server.go, kubeletConfigFlagPrecedence).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from numaagent.config import Roots
from numaagent.readers import kubelettexts, yamlfile
from numaagent.readers.files import Files, Source
from numacore.kubeletstate import KubeletFile, Setting

NOT_SETTINGS = ("apiVersion", "kind", "staticPodURLHeader")
"""Left out: what the document is, and headers that may hold a password."""


class Asked(NamedTuple):
    """Every setting that somebody asked for, by its field, and the places that may ask for more and cannot be read."""

    settings: dict[str, Setting]
    unread: tuple[str, ...]
    files: tuple[KubeletFile, ...] | None = None
    """What the kubelet was told to read; None = its command line is not to be seen."""


def read(
    files: Files,
    roots: Roots,
    path: str,
    drop_ins: str | None,
    flags: dict[str, str] | None,
    *,
    required: bool,
) -> Asked:
    """What is asked for by file, drop-ins and flags. `flags` None = the kubelet's command line is not to be seen."""
    source = files.reader("kubelet-config")
    found: dict[str, Setting] = {}
    unread: list[str] = []
    names: list[str] = []
    # A kubelet without --config reads no file at all; where its flags are unknown it may read this one.
    _file(found, unread, source, roots, path, "file", required=required, matters=required or flags is None)
    if drop_ins is not None:
        names = sorted(name for name in source.names(drop_ins, required=True) if name.endswith(".conf"))
        for name in names:
            _file(found, unread, source, roots, f"{drop_ins}/{name}", "drop-in", required=True, matters=True)
    for name, text in (flags or {}).items():
        if name in FLAGS:
            _flag(found, source, name, text)
    return Asked(found, tuple(unread), _texts(files, path, [f"{drop_ins}/{name}" for name in names], flags))


def _texts(
    files: Files, path: str, drop_ins: list[str], flags: dict[str, str] | None
) -> tuple[KubeletFile, ...] | None:
    if flags is None:
        return None
    places: list[tuple[str, Literal["file", "drop-in"]]] = [(path, "file")] if "config" in flags else []
    places += [(each, "drop-in") for each in drop_ins]
    return kubelettexts.read(files, places)


def _file(
    found: dict[str, Setting],
    unread: list[str],
    source: Source,
    roots: Roots,
    path: str,
    kind: Literal["file", "drop-in"],
    *,
    required: bool,
    matters: bool,
) -> None:
    table = _table(source, path, required)
    if table is not None:
        _merge(found, table, kind, roots.shown(path))
    elif matters:
        unread.append(roots.shown(path))


def _table(source: Source, path: str, required: bool) -> dict[str, object] | None:
    table = yamlfile.table(source, path, required=required)
    if table is None:
        return None
    return {
        _printable(name): _plain(value)
        for name, value in table.items()
        if name not in NOT_SETTINGS and value is not None
    }


def _plain(value: object) -> object:
    """YAML knows dates, sets and endless numbers, JSON does not; Kubernetes reads its files as JSON."""
    if isinstance(value, dict):
        return {_printable(str(name)): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return _printable(value)
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    return str(value)


def _printable(text: str) -> str:
    """YAML can write half a surrogate pair, which no JSON can hold, and NUL, which no database can."""
    return text.replace("\0", "").encode(errors="replace").decode()


def _merge(
    found: dict[str, Setting], table: dict[str, object], source: Literal["file", "drop-in"], where: str
) -> None:
    for name, value in table.items():
        before = found.get(name)
        if before is not None and isinstance(before.value, dict) and isinstance(value, dict):
            value = {**before.value, **value}
        found[name] = Setting(value, source, where)


def _flag(found: dict[str, Setting], source: Source, name: str, text: str) -> None:
    field, parse = FLAGS[name]
    try:
        value = parse(text)
    except ValueError:
        source.fail(f"--{name}", f"{text[:60]!r} is not a value of this flag")
        return
    before = found.get(field)
    if (
        field == "featureGates"
        and before is not None
        and isinstance(before.value, dict)
        and isinstance(value, dict)
    ):
        value = {**before.value, **value}
    found[field] = Setting(value, "flag", f"--{name}")


def _pairs(text: str) -> dict[str, object]:
    """`a=1,b=2`"""
    found: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(part)
        found[name.strip()] = value.strip()
    return found


def _gates(text: str) -> dict[str, object]:
    return {name: str(value).lower() in ("true", "1", "t") for name, value in _pairs(text).items()}


def _thresholds(text: str) -> dict[str, object]:
    """`memory.available<100Mi,nodefs.available<10%`"""
    parts = (part.partition("<") for part in filter(None, text.split(",")))
    return {name.strip(): value.strip() for name, _, value in parts}


def _reserved_memory(text: str) -> list[object]:
    """`0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=2Gi`"""
    found: list[object] = []
    for part in filter(None, text.split(";")):
        node, colon, limits = part.partition(":")
        if not colon:
            raise ValueError(part)
        found.append({"numaNode": int(node), "limits": _pairs(limits)})
    return found


def _switch(text: str) -> bool:
    return text.lower() in ("true", "1", "t")


FLAGS: dict[str, tuple[str, Callable[[str], object]]] = {
    "cpu-manager-policy": ("cpuManagerPolicy", str),
    "cpu-manager-policy-options": ("cpuManagerPolicyOptions", _pairs),
    "cpu-manager-reconcile-period": ("cpuManagerReconcilePeriod", str),
    "memory-manager-policy": ("memoryManagerPolicy", str),
    "reserved-memory": ("reservedMemory", _reserved_memory),
    "topology-manager-policy": ("topologyManagerPolicy", str),
    "topology-manager-policy-options": ("topologyManagerPolicyOptions", _pairs),
    "topology-manager-scope": ("topologyManagerScope", str),
    "reserved-cpus": ("reservedSystemCPUs", str),
    "system-reserved": ("systemReserved", _pairs),
    "kube-reserved": ("kubeReserved", _pairs),
    "system-reserved-cgroup": ("systemReservedCgroup", str),
    "kube-reserved-cgroup": ("kubeReservedCgroup", str),
    "eviction-hard": ("evictionHard", _thresholds),
    "enforce-node-allocatable": ("enforceNodeAllocatable", lambda text: text.split(",")),
    "feature-gates": ("featureGates", _gates),
    "cgroup-driver": ("cgroupDriver", str),
    "cgroup-root": ("cgroupRoot", str),
    "cpu-cfs-quota": ("cpuCFSQuota", _switch),
    "max-pods": ("maxPods", int),
}
"""Flags that place containers or reserve resources, with their fields (kubelet cmd/kubelet/app/options)."""
