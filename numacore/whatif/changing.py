"""What would come of a wish on a node as it stands: the file's new text, the state files that go, the pods that would not come back.

Nothing here changes anything; an order is made of a `Change`, and a node that has changed since makes it stale (`before` is its file's
hash). The codes of reasons have sentences in `policies.words.changing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from functools import lru_cache
from typing import Any

import msgspec

from numacore.change import asking, editing, leaving, order
from numacore.change import route as routes
from numacore.change.asking import Asked
from numacore.change.editing import REMOVE, EditError, same
from numacore.change.leaving import Leaving
from numacore.change.managed import NodeInfo
from numacore.change.route import Route
from numacore.change.wish import Wish
from numacore.diagnosis import Reason
from numacore.facts import Facts
from numacore.kubelet import cpu_manager, machine, restart
from numacore.kubelet.checks import documents
from numacore.kubelet.checks.assembly import Document, File, Sources, assemble
from numacore.kubelet.checks.check import Checked
from numacore.kubelet.checks.findings import Finding
from numacore.kubelet.errors import UnsupportedError
from numacore.kubelet.machine import Machine
from numacore.kubelet.node import StateFiles
from numacore.kubelet.restart import Survival
from numacore.kubelet.settings import Settings
from numacore.kubeletstate import Kubelet, KubeletFile
from numacore.whatif import candidate, surviving
from numacore.whatif.surviving import NO_AGES, Ages, Outlook

VOLCANO_READS = (
    "cpuManagerPolicy",
    "topologyManagerPolicy",
    "reservedSystemCPUs",
    "systemReserved",
    "kubeReserved",
)
"""What Volcano's resource-exporter tells of a kubelet, from the one file that it is given."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """`refusals`: why nothing may be done; then what could not be made is empty. Without them and without a difference between `text` and
    `new_text` the node is already as it is wanted."""

    refusals: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    assumed: tuple[Reason, ...] = ()
    path: str = ""
    drop_in: bool = False
    text: str | None = None
    """Of the file as it stands; None = there is none yet, or it was not come to."""
    new_text: str = ""
    diff: tuple[str, ...] = ()
    """Unified, without line breaks; empty = nothing changes."""
    keys: dict[str, Any] = {}
    removed: tuple[str, ...] = ()
    """As `order.Order` has them."""
    intended: dict[str, Any] = {}
    """Fields that change, as they are to be in force; None = the default."""
    before: str = ""
    after: str = ""
    """Hashes of the two texts."""
    state_files: tuple[Leaving, ...] = ()
    findings: tuple[Finding, ...] = ()
    """What the checks say to the new settings that they do not say to the present ones."""
    unchanged: Outlook = Outlook()
    """What a restart would bring without the change."""
    changed: Survival | None = None
    """What the restart with it would bring to the pods that run now, if none is evicted before; None = it was not come to."""
    keeps: tuple[str, ...] = ()
    """Uids of pods that go on with the CPUs that they have, though nobody keeps them for them any more, until they are started anew."""
    moves: tuple[str, ...] = ()
    """Uids of pods with CPUs of their own that may get others while they run."""
    volcano: Reason | None = None

    @property
    def crashes(self) -> bool:
        """The kubelet would start and die on a pod that runs now."""
        return self.changed is not None and self.changed.panics


def preview(facts: Facts, wish: Wish, info: NodeInfo, ages: Ages = NO_AGES) -> Change:
    """What the wish comes to on this node. `ages` of its pods decide who comes first where not all find a place again."""
    outlook = surviving.outlook(facts, ages)
    told = facts.kubelet
    if problem := candidate.unjudged(facts):
        return Change(refusals=(problem,), unchanged=outlook)
    assert told is not None
    if not told.version:
        return Change(refusals=(Reason("change-version-unknown"),), unchanged=outlook)
    minor, assumed = candidate.minor_of(told.version)
    if any(each.code != "version-documents" for each in assumed):
        return Change(refusals=(Reason("change-version", {"version": told.version}),), unchanged=outlook)
    seen = machine.of_topology(facts.topology, facts.attributes)
    made = _Preview(facts, told, seen, minor, info, ages)
    found = made.change(wish)
    if found.diff and (unknown := surviving.ageless(facts, ages)):
        assumed = (*assumed, Reason("change-ages-unknown", {"pods": unknown}))
    return msgspec.structs.replace(found, unchanged=outlook, assumed=assumed)


class _Preview:
    def __init__(
        self, facts: Facts, told: Kubelet, seen: Machine, minor: int, info: NodeInfo, ages: Ages
    ) -> None:
        self.facts, self.told, self.machine, self.minor, self.info = facts, told, seen, minor, info
        self.ages = ages
        self.fields = _in_force(told, minor)

    def change(self, wish: Wish) -> Change:
        asked = asking.asked(wish, self.fields, self.machine, self.minor)
        route = routes.route(self.told, asked.keys, self.info)
        if asked.refusals or route.refusals:
            return Change(refusals=(*route.refusals, *asked.refusals))
        standing = next((each.text for each in self.told.files or () if each.path == route.path), None)
        try:
            keys, text = self._text(asked, route, standing)
        except EditError as error:
            values: dict[str, str | int | float] = {
                "file": route.path,
                "line": error.line,
                "field": error.field,
            }
            return Change(refusals=(Reason(f"edit-{error.reason}", values),))
        if wrong := self._without_effect(asked, route, text):
            return Change(refusals=(wrong,))
        try:
            return self._consequences(asked, route, standing, keys, text)
        except UnsupportedError as error:
            return Change(refusals=(Reason("change-not-judged", {"words": str(error)}),))

    def _text(self, asked: Asked, route: Route, standing: str | None) -> tuple[dict[str, Any], str]:
        """What an order asks for, and the file's new text."""
        if not route.drop_in:
            assert standing is not None, "a route leads to a file that was read"
            return asked.keys, _edited(standing, msgspec.json.encode(asked.keys))
        own = _read(standing).value if standing else None
        own = {name: own[name] for name in own if name in order.ALLOWED} if isinstance(own, dict) else {}
        if not asked.keys:
            return own, standing or ""
        content = _joined(
            own, {name: _patch(self.fields.get(name), value) for name, value in asked.keys.items()}
        )
        return content, editing.drop_in(content)

    def _without_effect(self, asked: Asked, route: Route, text: str) -> Reason | None:
        """The new text put together with all others as the kubelet does it: what was asked for has to come out."""
        files = _with_text(self.told.files or (), route, text)
        if any(each.text is None for each in files):
            return None
        found = _with_flags(assemble(_sources(files, self.told, self.minor)).fields or {}, self.told)
        wanted = asking.tried(asking.applied(self.fields, asked.keys), None, self.minor).fields or {}
        for name in asked.keys:
            if not same(found.get(name), wanted.get(name)):
                return Reason("change-no-effect", {"field": name, "file": route.path})
        return None

    def _consequences(
        self, asked: Asked, route: Route, standing: str | None, keys: dict[str, Any], text: str
    ) -> Change:
        after = asking.tried(asking.applied(self.fields, asked.keys), self.machine, self.minor)
        settings = after.settings
        assert settings is not None, "what is asked for has been tried"
        present = self._present(settings)
        files = surviving.files_of(self.told, settings)
        gone = self._gone(present, settings, files) if asked.keys else ()
        names = {each.file for each in gone}
        kept = StateFiles(
            None if order.CPU_STATE in names else files.cpu,
            None if order.MEMORY_STATE in names else files.memory,
        )
        keeps, moves = self._owners(settings, order.CPU_STATE in names)
        new = text or None
        return Change(
            notes=asked.notes,
            path=route.path,
            drop_in=route.drop_in,
            text=standing,
            new_text=text,
            diff=_diff(standing or "", text, route.path),
            keys={name: value for name, value in keys.items() if route.drop_in or value is not REMOVE},
            removed=() if route.drop_in else tuple(name for name, value in keys.items() if value is REMOVE),
            intended=asked.keys,
            before=order.sha256(standing),
            after=order.sha256(new),
            state_files=gone,
            findings=self._new_findings(after),
            changed=self._restarted(settings, kept),
            keeps=keeps,
            moves=moves,
            volcano=_volcano(asked, route),
        )

    def _present(self, settings: Settings) -> Settings:
        """The settings that the kubelet runs with: policies as its state files have them."""
        found = asking.tried(self.fields, self.machine, self.minor).settings or settings
        cpu, memory = self.told.cpu_state, self.told.memory_state
        return msgspec.structs.replace(
            found,
            cpu_manager_policy=cpu.policy if cpu else found.cpu_manager_policy,
            memory_manager_policy=memory.policy if memory else found.memory_manager_policy,
        )

    def _gone(self, present: Settings, settings: Settings, files: StateFiles) -> tuple[Leaving, ...]:
        return leaving.leaving(present, settings, self.machine, files)

    def _restarted(self, settings: Settings, files: StateFiles) -> Survival:
        running = surviving.running_pods(self.facts, self.ages)
        return restart.survival(settings, self.machine, files, running)

    def _owners(self, settings: Settings, gone: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Pods with CPUs of their own, when the file goes in which these stand.

        kubelet 1.37, cm/cpumanager/cpu_manager.go `reconcileState`: the none policy leaves cpusets alone, the static one writes those
        of its new state within the reconcile period.
        """
        owners = tuple(sorted(self.told.cpu_state.entries)) if self.told.cpu_state and gone else ()
        return ((), owners) if settings.cpu_manager_policy == cpu_manager.STATIC else (owners, ())

    def _new_findings(self, after: Checked) -> tuple[Finding, ...]:
        before = asking.tried(self.fields, self.machine, self.minor).findings
        return tuple(finding for finding in after.findings if finding not in before)


@lru_cache(maxsize=512)
def _read(text: str) -> Document:
    """In a pool most nodes have the same files."""
    return documents.read(text)


@lru_cache(maxsize=512)
def _edited(text: str, keys: bytes) -> str:
    return editing.edit(text, msgspec.json.decode(keys))


def _in_force(told: Kubelet, minor: int) -> dict[str, Any]:
    """The fields that the kubelet was started with or will be: put together from the texts, else as the exporter read them."""
    files = told.files or ()
    if files and all(each.text is not None for each in files):
        fields = assemble(_sources(files, told, minor)).fields
        if fields is not None:
            return _with_flags(fields, told)
    return {name: setting.value for name, setting in told.settings.items()}


def _with_flags(fields: Mapping[str, Any], told: Kubelet) -> dict[str, Any]:
    given = {name: each.value for name, each in told.settings.items() if each.source == "flag"}
    return {**fields, **given}


def _sources(files: Iterable[KubeletFile], told: Kubelet, minor: int) -> Sources:
    read = [(each, File(each.path.rpartition("/")[2], _read(each.text or ""))) for each in files]
    main = next((file for each, file in read if each.kind == "file"), None)
    drop_ins = tuple(file for each, file in read if each.kind == "drop-in")
    return Sources(minor=minor, file=main, drop_ins=drop_ins if told.drop_in_dir else None)


def _with_text(files: Iterable[KubeletFile], route: Route, text: str) -> tuple[KubeletFile, ...]:
    others = [each for each in files if each.path != route.path]
    own = KubeletFile(path=route.path, kind="drop-in" if route.drop_in else "file", text=text)
    return (*others, own) if text else tuple(others)


def _patch(old: Any, new: Any) -> Any:
    """What a drop-in has to say so that `old` becomes `new`: maps join there, and null takes away (RFC 7396)."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = dict.fromkeys(old.keys() - new.keys())
    return {
        name: _patch(old.get(name), value) for name, value in new.items() if not same(old.get(name), value)
    } | gone


def _joined(own: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(own)
    for name, value in patch.items():
        before = made.get(name)
        made[name] = _joined(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return made


def _diff(before: str, after: str, path: str) -> tuple[str, ...]:
    lines = unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return tuple(lines)


def _volcano(asked: Asked, route: Route) -> Reason | None:
    """Volcano's exporter reads one file, and neither drop-ins nor flags."""
    told = sorted(set(asked.keys) & set(VOLCANO_READS))
    if not told:
        return None
    code = "volcano-blind" if route.drop_in else "volcano-told"
    return Reason(code, {"fields": ", ".join(told), "file": route.path})
