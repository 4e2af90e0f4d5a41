"""Which file of a node's kubelet takes a change, or why none may.

A drop-in of our own where the kubelet reads a folder of drop-ins, else its own file. Flags beat both (KEP-3983), and a later drop-in beats
ours. The codes of refusals have sentences in `policies.words.changing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from numacore.change import editing
from numacore.change.managed import NodeInfo, managed
from numacore.diagnosis import Reason
from numacore.kubeletstate import Kubelet, KubeletFile

OWN_DROP_IN = "90-numa.conf"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """`path`: the file to write, as on the host; `drop_in`: it is ours alone. `refusals`: why nothing is written."""

    path: str = ""
    drop_in: bool = False
    refusals: tuple[Reason, ...] = ()


def route(told: Kubelet | None, keys: Iterable[str], info: NodeInfo) -> Route:
    """Where a change of these fields goes."""
    if told is None or not told.present:
        return Route(refusals=(Reason("route-no-kubelet"),))
    paths = tuple(each.path for each in told.files or ()) or (told.config_path or "",)
    if found := managed(info, paths):
        return Route(refusals=(found,))
    if told.files is None:
        return Route(refusals=(Reason("route-not-told"),))
    path, drop_in = _target(told, told.files)
    refusals = (*_unusable(told.files, path, drop_in), *_overruled(told, sorted(keys), drop_in))
    return Route(refusals=refusals) if refusals else Route(path=path, drop_in=drop_in)


def _target(told: Kubelet, files: tuple[KubeletFile, ...]) -> tuple[str, bool]:
    if told.drop_in_dir:
        return f"{told.drop_in_dir.rstrip('/')}/{OWN_DROP_IN}", True
    return next((each.path for each in files if each.kind == "file"), ""), False


def _unusable(files: tuple[KubeletFile, ...], path: str, drop_in: bool) -> Iterator[Reason]:
    """Every file counts: what one says that nobody can read may be what another would change."""
    if not path:
        yield Reason("route-no-file")
    for each in files:
        if (
            drop_in
            and each.path == path
            and each.text is not None
            and not each.text.startswith(editing.OWNER)
        ):
            yield Reason("route-foreign-drop-in", {"file": path})
        hides_nothing = each.withheld == "secret" and (drop_in or each.path != path)
        if each.text is None and not hides_nothing:
            yield Reason(f"route-{each.withheld or 'unreadable'}", {"file": each.path})


def _overruled(told: Kubelet, keys: list[str], drop_in: bool) -> Iterator[Reason]:
    for field in keys:
        setting = told.settings.get(field)
        if setting is None:
            continue
        where = setting.where or ""
        if setting.source == "flag":
            yield Reason("route-flag", {"field": field, "flag": where})
        elif setting.source == "drop-in" and drop_in and where.rpartition("/")[2] > OWN_DROP_IN:
            yield Reason("route-later-drop-in", {"field": field, "file": where})
