"""What the exporters of named nodes said last of their kubelets and machines, and when: what plans are made of and gates look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from monitoring import hot
from monitoring.hot import HotNode
from monitoring.models import Cluster, Node
from monitoring.selectors import inventory
from numacore import wire
from numacore.kubeletstate import Kubelet

BATCH = 200
"""Nodes whose state is taken from the store at a time."""
HEALTHZ = 10248
"""Its default."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """One node's newest word. `kubelet` None: nobody tells. `at`: when the exporter last confirmed it, seconds since 1970 by our clock."""

    name: str
    row: Node
    kubelet: Kubelet | None = None
    at: float = 0.0
    topology: str = ""

    def sha256(self, path: str) -> str | None:
        """The hash of a file that the kubelet reads; "" = there is none; None = unknown."""
        if self.kubelet is None or self.kubelet.files is None:
            return None
        found = next((each for each in self.kubelet.files if each.path == path), None)
        if found is None:
            return ""
        return found.sha256 or None

    @property
    def healthz_port(self) -> int:
        """Where the kubelet says that it is well; 0 = nowhere (KubeletConfiguration v1beta1, healthzPort)."""
        setting = self.kubelet.settings.get("healthzPort") if self.kubelet else None
        value = setting.value if setting else None
        return value if isinstance(value, int) and 0 <= value < 65536 else HEALTHZ

    def text(self, path: str) -> str | None:
        """None = there is none, or nobody could read it."""
        files = (self.kubelet.files if self.kubelet else None) or ()
        return next((each.text for each in files if each.path == path), None)


def exported(cluster: Cluster, names: Sequence[str]) -> dict[str, Exported]:
    """By name; a node that is not there is left out. Raises hot.StoreError."""
    found: dict[str, Exported] = {}
    for part in _parts(names):
        rows = list(inventory.nodes(cluster).filter(name__in=part))
        states = hot.store().get_many([row.pk for row in rows])
        found |= {row.name: _exported(row, states.get(row.pk)) for row in rows}
    return found


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + BATCH] for start in range(0, len(names), BATCH))


def _exported(row: Node, state: HotNode | None) -> Exported:
    if state is None:
        return Exported(name=row.name, row=row)
    section = state.sections.get(wire.KUBELET)
    return Exported(
        name=row.name,
        row=row,
        kubelet=wire.decode_section(Kubelet, section) if section else None,
        at=state.confirmed.get(wire.KUBELET, 0.0),
        topology=row.topology_id or "",
    )


def moved(cluster: Cluster, planned: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """Names of those (name, uid, path, hash) that are not as they were: another node, another file. Unknown does not count as moved."""
    wanted = {name: (uid, path, sha256) for name, uid, path, sha256 in planned}
    now = exported(cluster, list(wanted))
    return [name for name, expected in wanted.items() if _differs(now.get(name), *expected)]


def _differs(now: Exported | None, uid: str, path: str, sha256: str) -> bool:
    if now is None or (uid and now.row.uid and now.row.uid != uid):
        return True
    known = now.sha256(path)
    return known is not None and known != sha256
