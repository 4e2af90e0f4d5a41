"""A wish for one node: which fields of its kubelet's settings become what, so that the kubelet starts and reserves no less than before.

Rules: kubelet 1.37, cm/cpumanager, cm/memorymanager and cm/topologymanager as `numacore.kubelet` has them; what is asked for is handed to
`numacore.kubelet.checks` before it is given away. The codes of reasons have sentences in `policies.words.changing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from numacore.change import spreading
from numacore.change.editing import REMOVE, same
from numacore.change.spreading import SpreadError
from numacore.change.wish import CPU_OPTIONS, Wish, check, milli
from numacore.cpuset import CpuSet
from numacore.diagnosis import Reason
from numacore.kubelet import cpu_manager, memory_manager, options, resource, topology_manager
from numacore.kubelet.checks import check as checks
from numacore.kubelet.checks import gates, quantities, running
from numacore.kubelet.checks.assembly import API_VERSION, KIND, Document, File, Sources
from numacore.kubelet.checks.check import Checked
from numacore.kubelet.machine import Machine

CPU_POLICY, CPU_POLICY_OPTIONS = "cpuManagerPolicy", "cpuManagerPolicyOptions"
TOPOLOGY_POLICY, TOPOLOGY_SCOPE = "topologyManagerPolicy", "topologyManagerScope"
TOPOLOGY_OPTIONS = "topologyManagerPolicyOptions"
RESERVED_CPUS, SYSTEM_RESERVED, KUBE_RESERVED = "reservedSystemCPUs", "systemReserved", "kubeReserved"
MEMORY_POLICY, RESERVED_MEMORY = "memoryManagerPolicy", "reservedMemory"
_DEFAULTS: dict[str, str] = {
    CPU_POLICY: cpu_manager.NONE,
    TOPOLOGY_POLICY: topology_manager.NONE,
    TOPOLOGY_SCOPE: topology_manager.CONTAINER,
    MEMORY_POLICY: memory_manager.NONE,
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """`keys`: top-level fields that change, each with its whole new value, or `editing.REMOVE`. `notes`: what else comes with it.
    `refusals`: why it cannot be done on this node; then `keys` is empty."""

    keys: dict[str, Any] = {}
    notes: tuple[Reason, ...] = ()
    refusals: tuple[Reason, ...] = ()


def asked(wish: Wish, before: Mapping[str, Any], machine: Machine, minor: int) -> Asked:
    """`before`: the fields in force, by their names in KubeletConfiguration, with or without defaults. What is so already is not asked
    for again."""
    if faults := check(wish):
        return Asked(refusals=tuple(fault.reason for fault in faults))
    stands = tried(before, None, minor)
    if stands.fields is None:
        return Asked(refusals=tuple(_would_not_start(stands)))
    return _Asking(wish, stands.fields, machine, minor).asked()


def tried(fields: Mapping[str, Any], machine: Machine | None, minor: int) -> Checked:
    """What a kubelet would say to these fields, all of them in its file. Remembered: in a pool most nodes are alike."""
    return _tried(msgspec.json.encode(dict(fields), order="sorted"), msgspec.json.encode(machine), minor)


@lru_cache(maxsize=512)
def _tried(fields: bytes, machine: bytes, minor: int) -> Checked:
    value = {"apiVersion": API_VERSION, "kind": KIND, **msgspec.json.decode(fields)}
    sources = Sources(minor=minor, file=File("", Document("{}", value)))
    return checks.check(sources, msgspec.json.decode(machine, type=Machine | None))


def applied(before: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """The fields after a change."""
    joined = {**before, **keys}
    return {name: value for name, value in joined.items() if value is not REMOVE}


class _Asking:
    def __init__(self, wish: Wish, before: Mapping[str, Any], machine: Machine, minor: int) -> None:
        self.wish, self.before, self.machine, self.minor = wish, before, machine, minor
        self.after: dict[str, Any] = dict(before)
        self.notes: list[Reason] = []
        self.refusals: list[Reason] = []
        self.version = f"1.{minor}"

    def asked(self) -> Asked:
        for step in (self._topology, self._cpu, self._reserve, self._memory):
            step()
        if not self.refusals:
            self._try()
        if self.refusals:
            return Asked(refusals=tuple(self.refusals))
        return Asked(keys=self._keys(), notes=tuple(self.notes))

    def _keys(self) -> dict[str, Any]:
        names = sorted({*self.before, *self.after})
        return {
            name: self.after.get(name, REMOVE)
            for name in names
            if not same(self.before.get(name), self.after.get(name))
        }

    def _get(self, field: str) -> str:
        return self.after.get(field) or _DEFAULTS[field]

    def _set(self, field: str, value: str | None) -> None:
        """A policy: what is in force already, by itself or by default, stays as it is written."""
        if value is not None and value != self._get(field):
            self.after[field] = value

    def _refuse(self, code: str, **values: str | int | float) -> None:
        reason = Reason(code, values)
        if reason not in self.refusals:
            self.refusals.append(reason)

    # Topology manager

    def _topology(self) -> None:
        wish = self.wish
        self._set(TOPOLOGY_POLICY, wish.topology_policy)
        self._set(TOPOLOGY_SCOPE, wish.scope)
        if self._get(TOPOLOGY_POLICY) != topology_manager.NONE:
            self._gate_needed("TopologyManager")
        given = self._options(TOPOLOGY_OPTIONS)
        if wish.prefer_closest is not None:
            self._switch(given, options.PREFER_CLOSEST, wish.prefer_closest)
        if wish.prefer_closest:
            self._known(options.PREFER_CLOSEST, "Topology")
            if self._get(TOPOLOGY_POLICY) == topology_manager.NONE:
                self._refuse("wish-closest-without-policy")
        if wish.max_allowable_numa_nodes is not None and self._known(options.MAX_ALLOWABLE_NODES, "Topology"):
            given[options.MAX_ALLOWABLE_NODES] = str(wish.max_allowable_numa_nodes)
        self._put(TOPOLOGY_OPTIONS, given)

    # CPU manager

    def _cpu(self) -> None:
        wish = self.wish
        policy: str | None = wish.cpu_policy
        if policy is None and wish.topology_policy not in (None, topology_manager.NONE):
            policy = cpu_manager.STATIC
            if self._get(CPU_POLICY) != policy:
                self.notes.append(Reason("ask-static-implied", {"policy": self._get(TOPOLOGY_POLICY)}))
        self._set(CPU_POLICY, policy)
        given = self._options(CPU_POLICY_OPTIONS)
        if self._get(CPU_POLICY) != cpu_manager.STATIC:
            self._without_static(given)
            return
        self._gate_needed("CPUManager")
        for name in CPU_OPTIONS:
            if name in wish.cpu_options:
                wanted = wish.cpu_options[name]
                if not wanted or self._known(name, "CPU"):
                    self._switch(given, name, wanted)
        self._exclusive(given)
        self._put(CPU_POLICY_OPTIONS, given)

    def _without_static(self, given: dict[str, Any]) -> None:
        """The kubelet takes no options without the static policy."""
        if on := sorted(name for name, wanted in self.wish.cpu_options.items() if wanted):
            self._refuse("wish-options-without-static", options=", ".join(on))
        if given:
            self.notes.append(Reason("ask-options-go", {"options": ", ".join(sorted(given))}))
            self._put(CPU_POLICY_OPTIONS, {})

    def _exclusive(self, given: Mapping[str, Any]) -> None:
        on = {name for name, text in given.items() if _on(text)}
        for first, second in options.EXCLUSIVE:
            if {first, second} <= on:
                self._refuse("wish-options-exclude", first=first, second=second)
        if options.ALIGN_BY_SOCKET in on and self._get(TOPOLOGY_POLICY) == topology_manager.SINGLE_NUMA_NODE:
            self._refuse("wish-socket-single-numa")

    # Options and gates

    def _options(self, field: str) -> dict[str, Any]:
        return dict(self.before.get(field) or {})

    def _put(self, field: str, given: dict[str, Any]) -> None:
        if given:
            self.after[field] = given
        elif self.before.get(field):
            del self.after[field]

    def _switch(self, given: dict[str, Any], name: str, on: bool) -> None:
        """An option that is off is taken out: a kubelet refuses one that it does not know, whatever its value."""
        if not on:
            given.pop(name, None)
        elif not _on(given.get(name)):
            given[name] = "true"

    def _known(self, name: str, manager: str) -> bool:
        """Whether this version takes an option, with the gates as they are set."""
        maturity = (options.cpu_maturity if manager == "CPU" else options.topology_maturity)(name, self.minor)
        if maturity is None:
            self._refuse("ask-option-version", option=name, version=self.version, since=f"1.{_since(name)}")
            return False
        needed = [f"{manager}ManagerPolicyOptions"]
        if maturity != "stable":
            needed.append(f"{manager}ManagerPolicy{maturity.title()}Options")
        off = [gate for gate in needed if not self._enabled(gate)]
        if off:
            self._refuse(
                "ask-option-gate", option=name, version=self.version, stage=maturity, gates=", ".join(off)
            )
        return not off

    def _enabled(self, gate: str) -> bool:
        """One that the version does not know any more is on for good."""
        known = gates.find(gate, self.minor)
        return known is None or gates.enabled(gate, self.before.get("featureGates") or {}, self.minor)

    def _gate_needed(self, gate: str) -> None:
        if not self._enabled(gate):
            self._refuse("ask-gate-off", gate=gate, version=self.version)

    # Reservations

    def _reserve(self) -> None:
        listed = quantities.cpus(self.before.get(RESERVED_CPUS) or "")
        if self.wish.reserved_cpus:
            self._reserve_list(listed, quantities.cpus(self.wish.reserved_cpus))
        elif self._get(CPU_POLICY) == cpu_manager.STATIC and not listed:
            self._reserve_amounts()

    def _reserve_list(self, listed: CpuSet, wanted: CpuSet) -> None:
        online = CpuSet.of_bits(self.machine.topology.all)
        if not wanted <= online:
            self._refuse("ask-cpus-offline", cpus=str(wanted - online), online=str(online))
            return
        if missing := listed - wanted:
            self.notes.append(Reason("ask-cpus-kept", {"cpus": str(missing)}))
        together = listed | wanted
        amount = 0 if listed else self._milli(SYSTEM_RESERVED) + self._milli(KUBE_RESERVED)
        least = -(-amount // 1000)
        if len(together) < least:
            self._refuse("ask-cpus-fewer", cpus=str(together), number=len(together), least=least)
        elif together != listed:
            self.after[RESERVED_CPUS] = str(together)

    def _reserve_amounts(self) -> None:
        wanted = {
            SYSTEM_RESERVED: self.wish.system_reserved_cpu,
            KUBE_RESERVED: self.wish.kube_reserved_cpu,
        }
        have = {field: self._milli(field) for field in wanted}
        need = {field: milli(text) for field, text in wanted.items()}
        if sum(have.values()) >= sum(need.values()) > 0:
            return
        if not sum(need.values()) and not sum(have.values()):
            self._refuse("ask-nothing-reserved")
        for field, text in wanted.items():
            if need[field] > have[field]:
                amounts = dict(self.before.get(field) or {})
                before = str(amounts.get(resource.CPU, "0"))
                self.after[field] = amounts | {resource.CPU: text}
                values: dict[str, str | int | float] = {"field": field, "before": before, "after": text}
                self.notes.append(Reason("ask-reserved-more", values))

    def _milli(self, field: str) -> int:
        return milli((self.before.get(field) or {}).get(resource.CPU, "0"))

    # Memory manager

    def _memory(self) -> None:
        self._set(MEMORY_POLICY, self.wish.memory_policy)
        if self._get(MEMORY_POLICY) != memory_manager.STATIC:
            if self.wish.reserved_memory is not None:
                self._refuse("wish-memory-without-static")
            return
        self._gate_needed("MemoryManager")
        reservation = running.settings(self.after, self.minor, self.machine).reservation
        need = resource.parse(reservation.get(resource.MEMORY, "0"))
        if not need.amount:
            self._refuse("ask-no-memory-reserved")
            return
        if need.amount.denominator != 1:
            self._refuse("ask-memory-fraction", amount=str(need))
            return
        stands = self.before.get(RESERVED_MEMORY) or []
        if self.wish.reserved_memory is None and spreading.holds(stands, int(need.amount), self.machine):
            return
        try:
            spread = spreading.spread(self.wish.reserved_memory or "even", int(need.amount), self.machine)
        except SpreadError as error:
            self.refusals.append(error.reason)
            return
        if spreading.amounts(stands) != spread:
            self.after[RESERVED_MEMORY] = spreading.entries(spread)
            self.notes.append(
                Reason("ask-memory-spread", {"bytes": int(need.amount), "nodes": ", ".join(map(str, spread))})
            )

    # The kubelet's own word

    def _try(self) -> None:
        self.refusals += _would_not_start(tried(self.after, self.machine, self.minor))


def _would_not_start(found: Checked) -> Iterator[Reason]:
    for finding in found.told:
        if own := _OWN_CODES.get(finding.reason.code):
            yield Reason(own, finding.reason.values)
        else:
            code = "ask-would-crash" if finding.severity == "crash" else "ask-would-not-start"
            yield Reason(code, {"field": finding.field, "words": finding.words, "cause": finding.reason.code})


_OWN_CODES = {"no-distances": "ask-no-distances", "too-many-nodes": "ask-too-many-nodes"}
"""Of the checks' causes, those that an operator can do something about here."""


def _on(text: Any) -> bool:
    return text in ("1", "t", "T", "TRUE", "true", "True")


def _since(name: str) -> int:
    """The first minor version that knows an option."""
    known = {
        minor
        for minor in range(21, 38)
        if options.cpu_maturity(name, minor) or options.topology_maturity(name, minor)
    }
    return min(known)
