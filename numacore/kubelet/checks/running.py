"""What `run` does with a valid configuration before the managers are made, and the managers themselves.

Kubelet 1.37, cmd/kubelet/app/server.go `run`, `getReservedCPUs`, `parseResourceList`; eviction/helpers.go; cm/qos_container_manager
`ParseQOSReserved`. The managers' own rules are those of `numacore.kubelet.node`, which is started here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from numacore import quantity
from numacore.cpuset import CpuSet
from numacore.diagnosis import Reason
from numacore.kubelet import node, resource
from numacore.kubelet import settings as managers
from numacore.kubelet.checks import gates, quantities
from numacore.kubelet.checks.assembly import DEFAULT_EVICTION_HARD
from numacore.kubelet.checks.findings import PROVEN, Finding, Severity
from numacore.kubelet.checks.validation import Broken, one_of
from numacore.kubelet.errors import HangError, PanicError, StartError, UnsupportedError
from numacore.kubelet.machine import Machine
from numacore.kubelet.options import quoted
from numacore.kubelet.settings import Settings

RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
SIGNALS = (
    *DEFAULT_EVICTION_HARD,
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
)
ROUNDED_SINCE = 37
"""Minor version since which a reserved amount of CPU is rounded to the nearest thousandth."""
_PERCENT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


def refusals(fields: Mapping[str, Any], minor: int, machine: Machine | None) -> Iterator[Broken]:
    """In the order of the kubelet, which stops at the first. Without a machine its CPUs are not asked for."""
    cpus = fields.get("reservedSystemCPUs") or ""
    reserved = quantities.cpus(cpus)
    if machine is not None and reserved:
        yield from _offline(cpus, reserved, CpuSet.of_bits(machine.topology.all))
    for field, flag in (("kubeReserved", "--kube-reserved"), ("systemReserved", "--system-reserved")):
        amounts = {
            kind: size for kind, size in (fields.get(field) or {}).items() if not (reserved and kind == "cpu")
        }
        yield from _reserved(field, flag, amounts)
    yield from _thresholds(fields.get("evictionHard") or {})
    yield from _qos(fields.get("qosReserved") or {})
    yield from _option_gates(fields, minor)


def _offline(cpus: str, reserved: CpuSet, online: CpuSet) -> Iterator[Broken]:
    if not reserved <= online:
        yield Broken(
            "reservedSystemCPUs",
            f"reserved-cpus: {cpus} is not a subset of online-cpus: {online}",
            Reason("cpus-not-online", {"cpus": str(reserved - online), "online": str(online)}),
            Reason("only-online", {"cpus": str(reserved & online)}),
        )


def _reserved(field: str, flag: str, amounts: Mapping[str, str]) -> Iterator[Broken]:
    """`parseResourceList`."""
    before = f"{flag} value failed to parse: "
    for kind, size in sorted(amounts.items()):
        path = f"{field}.{kind}"
        if kind not in RESERVABLE:
            yield Broken(
                path,
                f"{before}cannot reserve {quoted(kind)} resource",
                Reason("not-reservable", {"kind": kind}),
                Reason("reservable", {"kinds": ", ".join(RESERVABLE)}),
            )
        elif fault := quantities.quantity_fault(size):
            yield Broken(
                path,
                f"{before}failed to parse quantity {quoted(size)} for {quoted(kind)} resource: {fault}",
                Reason("bad-quantity", {"value": size}),
                Reason("give-quantity"),
            )
        elif resource.parse(size).amount < 0:
            yield Broken(
                path,
                f"{before}resource quantity for {quoted(kind)} cannot be negative: {size}",
                Reason("number", {"value": size}),
                Reason("give-quantity"),
            )


def _thresholds(thresholds: Mapping[str, str]) -> Iterator[Broken]:
    """`parseThresholdStatement`."""
    for signal, text in sorted(thresholds.items()):
        words = (
            f"unsupported eviction signal {signal}"
            if signal not in SIGNALS
            else _threshold_fault(signal, text)
        )
        if words:
            known = signal in SIGNALS
            yield Broken(
                f"evictionHard.{signal}",
                words,
                Reason("bad-threshold", {"value": text})
                if known
                else Reason("unknown-signal", {"signal": signal}),
                Reason("give-threshold") if known else Reason("choose", {"values": ", ".join(SIGNALS)}),
            )


def _threshold_fault(signal: str, text: str) -> str | None:
    if text.endswith("%"):
        number = text.rstrip("%")
        if not _PERCENT.fullmatch(number):
            return f"strconv.ParseFloat: parsing {quoted(number)}: invalid syntax"
        if float(number) < 0:
            return f"eviction percentage threshold {signal} must be >= 0%: {text}"
        if float(number) > 100:
            return f"eviction percentage threshold {signal} must be <= 100%: {text}"
        return None
    if fault := quantities.quantity_fault(text):
        return fault
    amount = resource.parse(text)
    return f"eviction threshold {signal} must be positive: {amount}" if amount.amount <= 0 else None


def _qos(reserved: Mapping[str, str]) -> Iterator[Broken]:
    before = "--qos-reserved value failed to parse: "
    for kind, text in sorted(reserved.items()):
        if kind != "memory":
            words = f"cannot reserve {quoted(kind)} resource"
        elif not text.endswith("%"):
            words = f"failed to parse percentage {quoted(text)} for {quoted(kind)} resource: percentage expected, got '{text}'"
        elif not re.fullmatch(r"[+-]?[0-9]+", text.rstrip("%"), re.ASCII):
            words = f"failed to parse percentage {quoted(text)} for {quoted(kind)} resource: invalid number in percentage '{text}'"
        elif not 0 <= int(text.rstrip("%")) <= 100:
            words = f"failed to parse percentage {quoted(text)} for {quoted(kind)} resource: percentage must be between 0 and 100"
        else:
            continue
        yield Broken(
            f"qosReserved.{kind}",
            before + words,
            Reason("bad-percentage", {"value": text}),
            Reason("give-percentage"),
        )


def _option_gates(fields: Mapping[str, Any], minor: int) -> Iterator[Broken]:
    """Options need a gate of their own as long as it is not locked (before 1.33 and 1.32)."""
    asked = fields.get("featureGates", {})
    for field, gate, what in (
        ("topologyManagerPolicyOptions", "TopologyManagerPolicyOptions", "topology manager policy options"),
        ("cpuManagerPolicyOptions", "CPUManagerPolicyOptions", "CPU Manager policy options"),
    ):
        options = fields.get(field)
        known = gates.find(gate, minor)
        if options and known and not gates.enabled(gate, asked, minor):
            listed = " ".join(f"{name}:{value}" for name, value in sorted(options.items()))
            yield Broken(
                field,
                f"{what} map[{listed}] require feature gates {quoted(gate)} enabled",
                Reason("needs-gate", {"gate": gate}),
                Reason("set-gate", {"gate": gate}),
            )


def settings(fields: Mapping[str, Any], minor: int, machine: Machine | None) -> Settings:
    """The managers' settings of a configuration that nothing above refused. A percentage of unknown memory counts as none."""
    asked = dict(fields)
    asked["evictionHard"] = {
        signal: text.rstrip("%") + "%" if text.endswith("%") else text
        for signal, text in (fields.get("evictionHard") or {}).items()
    }
    asked["reservedMemory"] = [
        {"numaNode": each.get("numaNode", 0), "limits": each.get("limits") or {}}
        for each in fields.get("reservedMemory") or ()
    ]
    asked["reservedSystemCPUs"] = str(quantities.cpus(fields.get("reservedSystemCPUs") or ""))
    asked["featureGates"] = gates.in_force(fields.get("featureGates", {}), minor)
    for name in ("kubeReserved", "systemReserved"):
        asked[name] = dict(
            _amounts(fields.get(name) or {}, minor, listed=bool(fields.get("reservedSystemCPUs")))
        )
    return managers.of_configuration(asked, minor, machine.memory if machine else 0)


def _amounts(amounts: Mapping[str, str], minor: int, *, listed: bool) -> Iterator[tuple[str, str]]:
    """CPUs by list take the place of amounts, which then are not even read."""
    for kind, size in amounts.items():
        if kind != resource.CPU:
            yield kind, size
        elif not listed:
            yield kind, _rounded(size) if minor >= ROUNDED_SINCE else size


def _rounded(size: str) -> str:
    micro = quantity.parse(size) * 1_000_000
    return f"{(-(-micro.numerator // micro.denominator) + 500) // 1000}m"


def start(asked: Settings, machine: Machine, fields: Mapping[str, Any]) -> Iterator[Finding]:
    """What the managers say when they are made."""
    severity: Severity = "fatal"
    alternatives: tuple[str, ...] = ()
    try:
        node.start(asked, machine)
        return
    except StartError as error:
        words, alternatives = str(error), error.alternatives
    except (PanicError, HangError) as error:
        severity, words = "crash", str(error)
    except UnsupportedError as error:
        yield Finding(
            severity="warning",
            stage="managers",
            field="topologyManagerPolicy",
            reason=Reason("too-many-nodes", {"nodes": len(machine.nodes), "told": str(error)}),
            remedy=Reason("fewer-nodes"),
        )
        return
    field, reason, remedy = explained(words, asked, machine, fields)
    yield Finding(
        severity=severity,
        stage="managers",
        field=field,
        words=words,
        alternatives=alternatives,
        reason=reason,
        remedy=remedy,
        proven=asked.minor in PROVEN,
    )


class _Rule(msgspec.Struct, frozen=True):
    form: str
    field: str
    reason: str
    remedy: str


_EXPLAINED = (
    _Rule(r'unknown CPU Manager Policy option: "(?P<option>.*)"', "cpuManagerPolicyOptions", "option-unknown", "remove-option"),
    _Rule(r'unknown Topology Manager Policy option: "(?P<option>.*)"', "topologyManagerPolicyOptions", "option-unknown", "remove-option"),
    _Rule(r'CPU Manager Policy (?P<stage>\w+)-level Options not enabled, but option "(?P<option>.*)" provided', "cpuManagerPolicyOptions", "option-gate", "option-gate-cpu"),
    _Rule(r'topology manager policy (?P<stage>\w+)-level options not enabled, but option "(?P<option>.*)" provided', "topologyManagerPolicyOptions", "option-gate", "option-gate-topology"),
    _Rule(r'bad value for option "(?P<option>.*?)": .*', "", "option-value", "option-bool"),
    _Rule(r"unable to convert policy option to integer .*", "topologyManagerPolicyOptions", "option-number", "option-at-least-8"),
    _Rule(r'the minimum value of "(?P<option>.*)" should not be less than 8', "topologyManagerPolicyOptions", "option-number", "option-at-least-8"),
    _Rule(r"static policy options (?P<first>\S+) and (?P<second>\S+) can not be used at the same time", "cpuManagerPolicyOptions", "options-exclude", "remove-one-option"),
    _Rule(r"Topolgy manager single-numa-node .*", "cpuManagerPolicyOptions", "socket-single-numa", "remove-align-by-socket"),
    _Rule(r"Align by socket is not compatible .*", "cpuManagerPolicyOptions", "socket-hardware", "remove-align-by-socket"),
    _Rule(r"new none policy error: .*", "cpuManagerPolicyOptions", "options-without-policy", "set-static"),
    _Rule(r"\[cpumanager\] unable to determine reserved CPU .*", "reservedSystemCPUs", "no-reserved-cpus", "reserve-cpus"),
    _Rule(r"\[cpumanager\] the static policy requires .*", "reservedSystemCPUs", "no-reserved-cpus", "reserve-cpus"),
    _Rule(r"\[cpumanager\] unable to reserve the required .*", "reservedSystemCPUs", "cpus-not-reserved", "reserve-fewer"),
    _Rule(r"\[cpumanager\] unable to build the reserved .*", "reservedSystemCPUs", "cpus-not-reserved", "reserve-fewer"),
    _Rule(r"cannot discover NUMA topology: .*", "topologyManagerPolicyOptions", "no-distances", "remove-prefer-closest"),
    _Rule(r"unsupported on machines with more than (?P<most>\d+) NUMA Nodes", "topologyManagerPolicy", "too-many-nodes", "allow-nodes"),
    _Rule(r"the reserved memory configuration references a NUMA node (?P<numa>\d+) .*", "reservedMemory", "memory-no-node", "memory-nodes"),
    _Rule(r"could not covert a variable .*", "reservedMemory", "memory-not-whole", "memory-bytes"),
    _Rule(r"\[memorymanager\] you should specify the system reserved memory", "reservedMemory", "memory-none", "memory-reserve"),
    _Rule(r'policy "BestEffort" is not available .*', "memoryManagerPolicy", "memory-windows", "set-memory-static"),
)  # fmt: skip
_SUM = re.compile(
    r'the total amount "(.*)" of type "(.*)" is not equal to the value "(.*)" determined by Node Allocatable feature'
)


def explained(
    words: str, asked: Settings, machine: Machine, fields: Mapping[str, Any]
) -> tuple[str, Reason, Reason]:
    """The field that the managers' words are about, why, and what to write instead."""
    if found := _SUM.search(words):
        return _sum_explained(found[2], asked, fields)
    words = words.removeprefix("new static policy error: ")
    if words.startswith("unknown policy: "):
        return _policy_explained(asked)
    for rule in _EXPLAINED:
        if match := re.fullmatch(rule.form, words, re.DOTALL):
            values: dict[str, str | int | float] = dict(match.groupdict())
            field = rule.field or _field_of_option(str(values.get("option")), asked)
            if rule.reason == "too-many-nodes":
                values["nodes"] = len(machine.nodes)
            return field, Reason(rule.reason, values), Reason(rule.remedy, values)
    return "", Reason("managers-refuse"), Reason("read-words")


def _field_of_option(option: str, asked: Settings) -> str:
    return (
        "cpuManagerPolicyOptions"
        if option in asked.cpu_manager_policy_options
        else "topologyManagerPolicyOptions"
    )


def _policy_explained(asked: Settings) -> tuple[str, Reason, Reason]:
    if asked.cpu_manager_policy not in ("none", "static"):
        return ("cpuManagerPolicy", *one_of(asked.cpu_manager_policy, ("none", "static")))
    return ("memoryManagerPolicy", *one_of(asked.memory_manager_policy, ("None", "Static")))


def _sum_explained(kind: str, asked: Settings, fields: Mapping[str, Any]) -> tuple[str, Reason, Reason]:
    """The commonest mistake has a code of its own: the eviction threshold left out of the sum."""
    have = sum(
        (resource.parse(each.limits[kind]).amount for each in asked.reserved_memory if kind in each.limits),
        Fraction(0),
    )
    need = resource.parse(asked.reservation.get(kind, "0")).amount
    without = sum(
        (
            resource.parse((fields.get(name) or {}).get(kind, "0")).amount
            for name in ("kubeReserved", "systemReserved")
        ),
        Fraction(0),
    )
    values: dict[str, str | int | float] = {
        "kind": kind,
        "have": int(have),
        "need": int(need),
        "eviction": int(need - without),
    }
    forgotten = have == without > 0 and need > without
    return (
        "reservedMemory",
        Reason("memory-sum-eviction" if forgotten else "memory-sum", values),
        Reason("memory-sum", values),
    )
