"""What has to hold before a changed node counts as changed, and before a node that went back counts as it was.

A node is well while it is Ready, its exporter tells of the file and settings that were asked for, and of the machine that was planned for.
That has to hold for some time without a break, counted by looks. Pods that its kubelet refuses end it at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from django.conf import settings

from monitoring.selectors import sources
from monitoring.services.watching.failures import refused
from numacore.change.editing import same
from numacore.diagnosis import Reason
from policies.gateway.nodes import LiveNode
from policies.models import RolloutNode
from policies.plan import CANARY, PlannedNode
from policies.selectors.exported import Exported
from policies.services.rollout.desk import Desk

AS_BEFORE = "as before"
NAMED = 5
_DEFAULTS = {
    "cpuManagerPolicy": "none",
    "memoryManagerPolicy": "None",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}
"""kubelet 1.37, apis/config/v1beta1/defaults.go."""


class Gate(NamedTuple):
    """held, or not yet (`waits`), or never (`broken`)."""

    held: bool = False
    waits: Reason | None = None
    broken: Reason | None = None


class Wanted(NamedTuple):
    """What a node is to be like: its file's hash and the fields in force, None = the default."""

    path: str
    sha256: str
    fields: dict[str, Any]
    topology: str


def changed(planned: PlannedNode) -> Wanted:
    return Wanted(planned.path, planned.after, planned.intended, planned.topology)


def went_back(planned: PlannedNode, sha256: str) -> Wanted:
    return Wanted(planned.path, sha256, planned.present, planned.topology)


def look(desk: Desk, node: RolloutNode, live: LiveNode, wanted: Wanted, passed: float) -> Gate:
    """One look. The seconds for which it held stand in `node.steady`, those that it took in `node.spent`."""
    waits = unwell(desk, node, live, wanted)
    node.steady = 0.0 if waits else node.steady + passed
    if waits is None and node.steady >= settings.NUMAWEB_ROLLOUT_READY:
        return Gate(held=True)
    if waits is not None and node.spent > settings.NUMAWEB_ROLLOUT_GATE:
        return Gate(broken=waits)
    return Gate(waits=waits or Reason("gate-waits", {"gate": "steady"}))


def unwell(desk: Desk, node: RolloutNode, live: LiveNode, wanted: Wanted) -> Reason | None:
    """Why a node is not as it is to be, or nobody can tell yet."""
    if not live.ready:
        return Reason("gate-not-ready")
    told = desk.told(node)
    since = _since(desk, node)
    if told is None or told.kubelet is None or told.at <= since:
        return Reason("gate-no-data")
    if wanted.topology and told.topology != wanted.topology:
        return Reason("gate-topology")
    field = differing(told, wanted) or _running_otherwise(desk, told, wanted, since)
    return Reason("gate-not-in-force", {"field": field}) if field else None


def _since(desk: Desk, node: RolloutNode) -> float:
    """When the change was made, seconds since 1970; by the looks where the clock was set back meanwhile."""
    if node.applied_at is None:
        return 0.0
    return min(node.applied_at.timestamp(), desk.now.timestamp() - node.spent)


def differing(told: Exported, wanted: Wanted) -> str:
    """The first field (or the file) that an exporter tells otherwise; "" = all is as wanted."""
    if told.sha256(wanted.path) != wanted.sha256:
        return wanted.path
    kubelet = told.kubelet
    assert kubelet is not None, "who tells of a file tells of a kubelet"
    for name, value in wanted.fields.items():
        asked = kubelet.settings[name].value if name in kubelet.settings else None
        if not _as_wanted(name, asked, value):
            return name
    for name, state in (
        ("cpuManagerPolicy", kubelet.cpu_state),
        ("memoryManagerPolicy", kubelet.memory_state),
    ):
        if (
            state is not None
            and name in wanted.fields
            and not _as_wanted(name, state.policy, wanted.fields[name])
        ):
            return name
    return ""


def _running_otherwise(desk: Desk, told: Exported, wanted: Wanted, since: float) -> str:
    """The first field that the kubelet itself says otherwise, where it was asked after the change."""
    running = sources.running(told.row, desk.now)
    if running is None or running.settings is None or desk.now.timestamp() - running.age <= since:
        return ""
    for name, value in wanted.fields.items():
        if name.startswith(("cpuManagerPolicy", "memoryManagerPolicy", "topologyManager")) and not _as_wanted(
            name, running.settings.get(name), value
        ):
            return name
    return ""


def _as_wanted(name: str, shown: Any, wanted: Any) -> bool:
    empty = _DEFAULTS.get(name)
    return same(empty if shown in (None, {}, "") else shown, empty if wanted in (None, {}, "") else wanted)


# ---------------------------------------------------------------- what is compared with how it was before


def remember(desk: Desk, node: RolloutNode) -> None:
    """How the node is before its change: pods that were refused, containers that cross NUMA nodes."""
    told = desk.told(node)
    crossing = told.row.crossing if told else None
    values: dict[str, str | int | float] = {"refused": " ".join(_refused(desk, node))}
    if crossing is not None:
        values["crossing"] = crossing
    desk.note(node, Reason("as-before", values), AS_BEFORE)


def _before(node: RolloutNode) -> dict[str, Any]:
    noted = node.acts.filter(kind="note", subject=AS_BEFORE).order_by("pk").last()
    return msgspec.convert(noted.said, Reason).values if noted else {}


def _refused(desk: Desk, node: RolloutNode) -> dict[str, str]:
    """Names of the pods that the node's kubelet refused, by uid."""
    pods = desk.hands.drains.pods_on(node.name)
    return {each.uid: each.key for each in pods if refused({"phase": each.phase, "reason": each.reason})}


def new_refusals(desk: Desk, node: RolloutNode) -> Reason | None:
    """Pods that it refuses since the change, those aside of which the plan said so."""
    known = set(str(_before(node).get("refused", "")).split())
    foreseen = set(desk.planned[node.name].lost)
    found = [key for uid, key in _refused(desk, node).items() if uid not in known and key not in foreseen]
    return Reason("gate-refused-pods", {"pods": ", ".join(sorted(found)[:NAMED])}) if found else None


def worse(desk: Desk, node: RolloutNode) -> Reason | None:
    """Whether more containers cross NUMA nodes than before, as far as both are known."""
    before, told = _before(node).get("crossing"), desk.told(node)
    after = told.row.crossing if told else None
    if before is None or after is None or after <= before:
        return None
    return Reason("gate-locality", {"before": before, "after": after})


def is_canary(node: RolloutNode) -> bool:
    return node.batch == CANARY
