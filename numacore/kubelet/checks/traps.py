"""What a configuration does that its writer hardly means, though no kubelet refuses it.

Rules: kubelet 1.37, cmd/kubelet/app/server.go, cm/topologymanager, cm/memorymanager; eviction/defaults_linux.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from numacore.cpuset import CpuSet
from numacore.diagnosis import Reason
from numacore.kubelet.checks import gates, quantities
from numacore.kubelet.checks.assembly import DEFAULT_EVICTION_HARD
from numacore.kubelet.checks.findings import PROVEN, Finding, Severity, Stage
from numacore.kubelet.machine import Machine
from numacore.kubelet.options import FULL_PCPUS_ONLY, MAX_ALLOWABLE_NODES

WARNING_SINCE = 36
"""Minor version since which the kubelet's words about gates that end begin with "Warning"."""
_EMPTY: Mapping[str, Any] = {}


def traps(
    fields: Mapping[str, Any], origin: Mapping[str, str], minor: int, machine: Machine | None
) -> Iterator[Finding]:
    """Of a configuration that the kubelet takes. `origin`: which file or flag set a field."""
    for severity, field, words, reason, remedy in (
        *_eviction(fields, origin),
        *_without_policy(fields),
        *_without_node(fields),
        *_reserved_cpus(fields, machine),
        *_alignment(fields),
        *_options(fields),
        *_gates(fields, minor),
    ):
        stage: Stage = "gates" if field.startswith("featureGates") else "managers"
        yield Finding(
            severity=severity,
            stage=stage,
            field=field,
            where=origin.get(field.partition(".")[0].partition("[")[0], ""),
            words=words,
            reason=reason,
            remedy=remedy,
            proven=minor in PROVEN,
        )


_Trap = tuple[Severity, str, str, Reason, Reason]


def _eviction(fields: Mapping[str, Any], origin: Mapping[str, str]) -> Iterator[_Trap]:
    """A map of one's own takes the place of the defaults: their other signals are gone."""
    given = fields.get("evictionHard") or _EMPTY
    lost = [signal for signal in DEFAULT_EVICTION_HARD if signal not in given]
    if not lost:
        return
    listed: dict[str, str | int | float] = {"signals": ", ".join(lost)}
    if not origin.get("evictionHard") and not given:
        yield "warning", "evictionHard", "", Reason("no-eviction", listed), Reason("give-evictions", listed)
    else:
        yield (
            "silent",
            "evictionHard",
            "",
            Reason("eviction-defaults-lost", listed),
            Reason("give-evictions", listed),
        )


def _without_policy(fields: Mapping[str, Any]) -> Iterator[_Trap]:
    if fields["topologyManagerPolicy"] == "none":
        if fields.get("topologyManagerPolicyOptions"):
            yield _idle("topologyManagerPolicyOptions", "topologyManagerPolicy")
        if fields["topologyManagerScope"] != "container":
            yield _idle("topologyManagerScope", "topologyManagerPolicy")
    if fields["memoryManagerPolicy"] == "None" and fields.get("reservedMemory"):
        yield _idle("reservedMemory", "memoryManagerPolicy")


def _without_node(fields: Mapping[str, Any]) -> Iterator[_Trap]:
    """A number that is not there is 0 to Go."""
    for at, entry in enumerate(fields.get("reservedMemory") or ()):
        if "numaNode" not in entry:
            yield "silent", f"reservedMemory[{at}].numaNode", "", Reason("numa-missing"), Reason("give-numa")


def _idle(field: str, policy: str) -> _Trap:
    return (
        "silent",
        field,
        "",
        Reason("without-policy", {"policy": policy}),
        Reason("set-policy", {"policy": policy}),
    )


def _reserved_cpus(fields: Mapping[str, Any], machine: Machine | None) -> Iterator[_Trap]:
    reserved = quantities.cpus(fields.get("reservedSystemCPUs") or "")
    if not reserved:
        return
    amounts = [name for name in ("kubeReserved", "systemReserved") if "cpu" in (fields.get(name) or _EMPTY)]
    for name in amounts:
        yield (
            "silent",
            f"{name}.cpu",
            "",
            Reason("cpus-beat-amount", {"cpus": str(reserved), "number": len(reserved)}),
            Reason("remove-field"),
        )
    if fields["cpuManagerPolicy"] == "none":
        yield (
            "warning",
            "reservedSystemCPUs",
            "",
            Reason("cpus-only-counted", {"cpus": str(reserved)}),
            Reason("set-static"),
        )
    if machine is not None and _on(fields, FULL_PCPUS_ONLY):
        split = [
            cpus
            for cpus in machine.topology.in_core.values()
            if cpus & reserved.bits and cpus & ~reserved.bits
        ]
        if split:
            rest = str(CpuSet.of_bits(sum(split) & ~reserved.bits))
            yield (
                "warning",
                "reservedSystemCPUs",
                "",
                Reason("half-cores", {"cpus": rest}),
                Reason("reserve-whole-cores", {"cpus": rest}),
            )


def _on(fields: Mapping[str, Any], option: str) -> bool:
    return (fields.get("cpuManagerPolicyOptions") or _EMPTY).get(option) in (
        "1",
        "t",
        "T",
        "TRUE",
        "true",
        "True",
    )


def _alignment(fields: Mapping[str, Any]) -> Iterator[_Trap]:
    """A topology policy aligns what the managers hint at: with both off only devices are left."""
    policy = fields["topologyManagerPolicy"]
    if policy != "none" and fields["cpuManagerPolicy"] == "none" and fields["memoryManagerPolicy"] == "None":
        yield (
            "warning",
            "topologyManagerPolicy",
            "",
            Reason("only-devices", {"policy": policy}),
            Reason("set-static"),
        )


def _options(fields: Mapping[str, Any]) -> Iterator[_Trap]:
    most = (fields.get("topologyManagerPolicyOptions") or _EMPTY).get(MAX_ALLOWABLE_NODES, "")
    if fields["topologyManagerPolicy"] != "none" and most.isdigit() and int(most) > 8:
        yield (
            "warning",
            "topologyManagerPolicyOptions",
            "",
            Reason("many-nodes", {"most": int(most)}),
            Reason("watch-admission"),
        )


def _gates(fields: Mapping[str, Any], minor: int) -> Iterator[_Trap]:
    """Gates that say nothing any more: the kubelet logs a warning, and refuses them in a later version."""
    for name in sorted(fields.get("featureGates") or _EMPTY):
        gate = gates.find(name, minor)
        if gate and gate.stage in ("GA", "DEPRECATED"):
            stage = "GA" if gate.stage == "GA" else "deprecated"
            value = "true" if fields["featureGates"][name] else "false"
            yield (
                "warning",
                f"featureGates.{name}",
                f"Warning: setting {stage} feature gate. It will be removed in a future release."
                if minor >= WARNING_SINCE
                else f"Setting {stage} feature gate {name}={value}. It will be removed in a future release.",
                Reason("gate-ending", {"gate": name}),
                Reason("remove-gate", {"gate": name}),
            )
        elif gate is None and name not in gates.ALL:
            yield (
                "warning",
                f"featureGates.{name}",
                "",
                Reason("gate-not-documented", {"gate": name}),
                Reason("ask-kubelet"),
            )
