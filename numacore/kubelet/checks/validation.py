"""`ValidateKubeletConfiguration`: rules on the configuration put together, all told at once.

Kubelet 1.37, apis/config/validation/validation.go and validation_reserved_memory.go; the differences of 1.34 to 1.36 stand where they are.
Left out, since nothing of NUMA depends on them: logging, tracing, taints, image rules, shutdown periods, CFS period, sysctls, crash loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from numacore.diagnosis import Reason
from numacore.kubelet import resource
from numacore.kubelet.checks import gates, quantities
from numacore.kubelet.checks.assembly import CRASH_LOOP_GATE, PULLED_IMAGES_GATE
from numacore.kubelet.options import quoted

_INVALID = "invalid configuration: "
TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
ENFORCEMENTS = (
    "pods",
    "system-reserved",
    "system-reserved-compressible",
    "kube-reserved",
    "kube-reserved-compressible",
    "none",
)
COMPRESSIBLE_SINCE = 32
_FORMER_THROTTLING_FACTOR = 0.9


class Broken(msgspec.Struct, frozen=True):
    """A rule that is not kept."""

    field: str
    words: str
    reason: Reason
    remedy: Reason


class Configuration(msgspec.Struct, frozen=True):
    """What the rules look at."""

    fields: Mapping[str, Any]
    minor: int

    def get(self, name: str) -> Any:
        return self.fields.get(name)

    def enabled(self, gate: str) -> bool:
        return gates.enabled(gate, self.fields.get("featureGates", {}), self.minor)


def validate(fields: Mapping[str, Any], minor: int) -> list[Broken]:
    """Every rule that is broken, in the order of the kubelet's file."""
    configuration = Configuration(fields, minor)
    return [broken for rule in _RULES for broken in rule(configuration)]


def _number(
    field: str, flag: str, demand: str, broken: Callable[[int], bool]
) -> Callable[[Configuration], Iterator[Broken]]:
    shown = f"{field} (--{flag})" if flag else field

    def rule(c: Configuration) -> Iterator[Broken]:
        value = c.get(field)
        if value is not None and broken(value):
            yield Broken(
                field,
                f"{_INVALID}{shown} {value} {demand}",
                Reason("number", {"value": value}),
                Reason("number-within", {"demand": demand}),
            )

    return rule


def _negative(value: int) -> bool:
    return value < 0


def _no_port(value: int) -> bool:
    return not 1 <= value <= 65535


def _no_port_and_not_zero(value: int) -> bool:
    return value != 0 and _no_port(value)


_NOT_NEGATIVE = "must not be a negative number"


def _lease(c: Configuration) -> Iterator[Broken]:
    if (c.get("nodeLeaseDurationSeconds") or 40) <= 0:
        yield Broken(
            "nodeLeaseDurationSeconds",
            f"{_INVALID}nodeLeaseDurationSeconds must be greater than 0",
            Reason("number", {"value": c.get("nodeLeaseDurationSeconds")}),
            Reason("number-within", {"demand": "must be greater than 0"}),
        )


def _system_cgroups(c: Configuration) -> Iterator[Broken]:
    if c.get("systemCgroups") and not c.get("cgroupRoot"):
        yield Broken(
            "systemCgroups",
            f"{_INVALID}systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified",
            Reason("needs-field", {"field": "cgroupRoot"}),
            Reason("set-field", {"field": "cgroupRoot"}),
        )


def _image_gc(c: Configuration) -> Iterator[Broken]:
    high = 85 if c.get("imageGCHighThresholdPercent") is None else c.get("imageGCHighThresholdPercent")
    low = 80 if c.get("imageGCLowThresholdPercent") is None else c.get("imageGCLowThresholdPercent")
    if low >= high:
        yield Broken(
            "imageGCLowThresholdPercent",
            f"{_INVALID}imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than "
            f"imageGCHighThresholdPercent (--image-gc-high-threshold) {high}",
            Reason("number", {"value": low}),
            Reason("number-within", {"demand": f"must be less than {high}"}),
        )


def _parallel_pulls(c: Configuration) -> Iterator[Broken]:
    pulls = c.get("maxParallelImagePulls")
    if pulls is None:
        return
    if pulls < 1:
        yield Broken(
            "maxParallelImagePulls",
            f"{_INVALID}maxParallelImagePulls {pulls} must be a positive number",
            Reason("number", {"value": pulls}),
            Reason("number-within", {"demand": "must be a positive number"}),
        )
    if c.get("serializeImagePulls") and pulls > 1:
        yield Broken(
            "maxParallelImagePulls",
            f"{_INVALID}maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
            "(--serialize-image-pulls) is set to false",
            Reason("serial-pulls"),
            Reason("set-field", {"field": "serializeImagePulls"}),
        )


def _run_once(c: Configuration) -> Iterator[Broken]:
    if c.get("runOnce"):
        yield Broken(
            "runOnce",
            f"{_INVALID}runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set",
            Reason("run-once"),
            Reason("remove-field"),
        )


def _topology_policy(c: Configuration) -> Iterator[Broken]:
    policy = c.get("topologyManagerPolicy")
    if policy not in TOPOLOGY_POLICIES:
        listed = " ".join(map(quoted, TOPOLOGY_POLICIES))
        yield Broken(
            "topologyManagerPolicy",
            f"{_INVALID}topologyManagerPolicy (--topology-manager-policy) {quoted(policy)} must be one of: [{listed}]",
            *one_of(policy, TOPOLOGY_POLICIES),
        )


def _topology_scope(c: Configuration) -> Iterator[Broken]:
    scope = c.get("topologyManagerScope")
    if scope not in ("container", "pod"):
        yield Broken(
            "topologyManagerScope",
            f'{_INVALID}topologyManagerScope (--topology-manager-scope) {quoted(scope)} must be one of: "container", or "pod"',
            *one_of(scope, ("container", "pod")),
        )


def one_of(value: str, accepted: tuple[str, ...]) -> tuple[Reason, Reason]:
    """Reason and remedy for a value that is none of those accepted: often only its case is wrong."""
    meant = next((each for each in accepted if each.casefold() == value.casefold()), None)
    if meant:
        return Reason("value-case", {"value": value}), Reason("write", {"value": meant})
    return Reason("value-unknown", {"value": value}), Reason("choose", {"values": ", ".join(accepted)})


def _swap(c: Configuration) -> Iterator[Broken]:
    behavior = (c.get("memorySwap") or {}).get("swapBehavior", "")
    if not behavior:
        return
    if not c.enabled("NodeSwap"):
        yield Broken(
            "memorySwap.swapBehavior",
            f"{_INVALID}memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled",
            *_needs_gate("NodeSwap"),
        )
    elif behavior not in ("NoSwap", "LimitedSwap"):
        yield Broken(
            "memorySwap.swapBehavior",
            f'{_INVALID}memorySwap.swapBehavior {quoted(behavior)} must be one of: "", "LimitedSwap" or "NoSwap"',
            *one_of(behavior, ("LimitedSwap", "NoSwap")),
        )


def _needs_gate(gate: str) -> tuple[Reason, Reason]:
    return Reason("needs-gate", {"gate": gate}), Reason("set-gate", {"gate": gate})


_ENFORCED = "enforceNodeAllocatable (--enforce-node-allocatable)"


def _crash_loop(c: Configuration) -> Iterator[Broken]:
    period = (c.get("crashLoopBackOff") or {}).get("maxContainerRestartPeriod")
    if period is None:
        return
    field = "crashLoopBackOff.maxContainerRestartPeriod"
    if not c.enabled(CRASH_LOOP_GATE):
        yield Broken(
            field,
            f"{_INVALID}FeatureGate KubeletCrashLoopBackOffMax not enabled, "
            "CrashLoopBackOff.MaxContainerRestartPeriod must not be set",
            *_gate_off_late(CRASH_LOOP_GATE),
        )
    elif not 1 <= quantities.seconds(period) <= 300:
        yield Broken(
            field,
            f"{_INVALID}CrashLoopBackOff.MaxContainerRestartPeriod (got: {quantities.seconds(period):g} seconds) "
            "must be set between 1s and 300s",
            Reason("number", {"value": period}),
            Reason("number-within", {"demand": "must be set between 1s and 300s"}),
        )


def _gate_off_late(gate: str) -> tuple[Reason, Reason]:
    """The default was filled in before a drop-in or a flag turned its gate off."""
    return Reason("gate-off-late", {"gate": gate}), Reason("gate-in-file", {"gate": gate})


_PULL_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")


def _pulled_images(c: Configuration) -> Iterator[Broken]:
    field, policy = "imagePullCredentialsVerificationPolicy", c.get("imagePullCredentialsVerificationPolicy")
    if not policy:
        return
    if not c.enabled(PULLED_IMAGES_GATE):
        yield Broken(
            field,
            f"{_INVALID}`{field}` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled",
            *_gate_off_late(PULLED_IMAGES_GATE),
        )
    elif policy not in _PULL_POLICIES:
        *first, last = map(quoted, _PULL_POLICIES)
        yield Broken(
            field,
            f"{_INVALID}option {quoted(policy)} specified for {field}. Valid options are {', '.join(first)} or {last}",
            *one_of(policy, _PULL_POLICIES),
        )


def _both_kinds(c: Configuration) -> Iterator[Broken]:
    given = set(c.get("enforceNodeAllocatable") or ())
    for first, second in (
        ("system-reserved", "system-reserved-compressible"),
        ("kube-reserved", "kube-reserved-compressible"),
    ):
        if {first, second} <= given:
            yield Broken(
                "enforceNodeAllocatable",
                f"{_INVALID}both {quoted(first)} and {quoted(second)} cannot be specified together in {_ENFORCED}",
                Reason("exclusive", {"first": first, "second": second}),
                Reason("remove-value", {"value": second}),
            )


def _enforcements(c: Configuration) -> Iterator[Broken]:
    seen: set[str] = set()
    given = c.get("enforceNodeAllocatable") or ()
    for value in given:
        if value in seen:
            yield _enforcement(
                f"duplicated enforcements {quoted(value)} in {_ENFORCED}",
                Reason("twice", {"value": value}),
                Reason("remove-value", {"value": value}),
            )
            continue
        seen.add(value)
        if value == "none":
            if len(given) > 1:
                yield _enforcement(
                    f'{_ENFORCED} may not contain additional enforcements when "none" is specified',
                    Reason("none-with-others"),
                    Reason("remove-value", {"value": "none"}),
                )
            continue
        if value not in ENFORCEMENTS or (value.endswith("-compressible") and c.minor < COMPRESSIBLE_SINCE):
            yield _enforcement(_no_option(value, c.minor), *one_of(value, _options(c.minor)))
            continue
        yield from _cgroup_given(c, value)
        if not c.get("cgroupsPerQOS"):
            yield _enforcement(
                f"cgroupsPerQOS (--cgroups-per-qos) must be set to true when {quoted(value)} contained in {_ENFORCED}",
                Reason("needs-field", {"field": "cgroupsPerQOS"}),
                Reason("set-field", {"field": "cgroupsPerQOS"}),
            )


def _enforcement(words: str, reason: Reason, remedy: Reason) -> Broken:
    return Broken("enforceNodeAllocatable", _INVALID + words, reason, remedy)


def _options(minor: int) -> tuple[str, ...]:
    return tuple(
        each for each in ENFORCEMENTS if minor >= COMPRESSIBLE_SINCE or not each.endswith("-compressible")
    )


def _no_option(value: str, minor: int) -> str:
    *first, last = map(quoted, _options(minor))
    return f"option {quoted(value)} specified for {_ENFORCED}. Valid options are {', '.join(first)} or {last}"


def _cgroup_given(c: Configuration, value: str) -> Iterator[Broken]:
    for who, flag in (("system", "system-reserved-cgroup"), ("kube", "kube-reserved-cgroup")):
        field = f"{who}ReservedCgroup"
        if value.startswith(f"{who}-reserved") and not c.get(field):
            either = f"{quoted(who + '-reserved')} or {quoted(who + '-reserved-compressible')}"
            included = either if c.minor >= COMPRESSIBLE_SINCE else quoted(f"{who}-reserved")
            yield Broken(
                "enforceNodeAllocatable",
                f"{_INVALID}{field} (--{flag}) must be specified when {included} included in {_ENFORCED}",
                Reason("needs-field", {"field": field}),
                Reason("set-field", {"field": field}),
            )


_HAIRPIN = ("none", "hairpin-veth", "promiscuous-bridge")


def _hairpin(c: Configuration) -> Iterator[Broken]:
    mode = c.get("hairpinMode")
    if mode and mode not in _HAIRPIN:
        yield Broken(
            "hairpinMode",
            f"{_INVALID}option {quoted(mode)} specified for hairpinMode (--hairpin-mode). Valid options are "
            '"none", "hairpin-veth" or "promiscuous-bridge"',
            *one_of(mode, _HAIRPIN),
        )


def _reserved_cpus(c: Configuration) -> Iterator[Broken]:
    cpus = c.get("reservedSystemCPUs")
    if not cpus:
        return
    if c.get("systemReservedCgroup") or c.get("kubeReservedCgroup"):
        yield Broken(
            "reservedSystemCPUs",
            f"{_INVALID}can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
            Reason("cpus-with-cgroup"),
            Reason(
                "remove-one-field",
                {"first": "reservedSystemCPUs", "second": "systemReservedCgroup, kubeReservedCgroup"},
            ),
        )
    if fault := quantities.cpus_fault(cpus):
        yield Broken(
            "reservedSystemCPUs",
            f"{_INVALID}unable to parse reservedSystemCPUs (--reserved-cpus) {cpus}, error: {fault}",
            Reason("bad-cpus", {"value": cpus}),
            Reason("give-cpus"),
        )


def _reserved_memory(c: Configuration) -> Iterator[Broken]:
    """`validateReservedMemoryConfiguration`."""
    seen: set[tuple[int, str]] = set()
    for at, entry in enumerate(c.get("reservedMemory") or ()):
        numa = entry.get("numaNode", 0)
        for kind, size in sorted((entry.get("limits") or {}).items()):
            path = f"reservedMemory[{at}].limits[{kind}]"
            values: dict[str, str | int | float] = {"numa": numa, "kind": kind}
            if kind != resource.MEMORY and not kind.startswith(resource.HUGE_PAGES):
                yield Broken(
                    path,
                    f"{_INVALID}the limit type {quoted(kind)} for NUMA node {numa} is not supported, "
                    "only [memory hugepages-<HugePageSize>] is accepted",
                    Reason("memory-kind", values),
                    Reason("memory-kinds"),
                )
            if resource.parse(size).amount == 0:
                yield Broken(
                    path,
                    f"{_INVALID}reserved memory may not be zero for NUMA node {numa} and resource {quoted(kind)}",
                    Reason("memory-zero", values),
                    Reason("remove-field"),
                )
            if (numa, kind) in seen:
                yield Broken(
                    path,
                    f"{_INVALID}the reserved memory has a duplicate value for NUMA node {numa} and resource {quoted(kind)}",
                    Reason("memory-twice", values),
                    Reason("memory-once"),
                )
            seen.add((numa, kind))


def _user_namespaces(c: Configuration) -> Iterator[Broken]:
    ids = (c.get("userNamespaces") or {}).get("idsPerPod")
    if ids is None or c.minor < 33:
        return
    demand = ""
    if ids < 65536:
        demand = "must not be less than 65536"
    elif ids % 65536:
        demand = "must be a multiple of 65536"
    elif ids > 0xFFFFFFFF:
        demand = f"must not be more than {0xFFFFFFFF}"
    if demand:
        yield Broken(
            "userNamespaces.idsPerPod",
            f"{_INVALID}userNamespaces.idsPerPod {demand}",
            Reason("number", {"value": ids}),
            Reason("number-within", {"demand": demand}),
        )


def _throttling(c: Configuration) -> Iterator[Broken]:
    """The neighbours of MemoryQoS."""
    factor, on = c.get("memoryThrottlingFactor"), c.enabled("MemoryQoS")
    if c.minor < 22:
        return
    if c.minor >= 37 and not on and factor is not None and factor != _FORMER_THROTTLING_FACTOR:
        yield Broken(
            "memoryThrottlingFactor",
            f"{_INVALID}memoryThrottlingFactor must not be set when MemoryQoS feature gate is disabled",
            *_needs_gate("MemoryQoS"),
        )
    if factor is not None and not 0 < factor <= 1:
        yield Broken(
            "memoryThrottlingFactor",
            f"{_INVALID}memoryThrottlingFactor {factor:g} must be greater than 0 and less than or equal to 1.0",
            Reason("number", {"value": factor}),
            Reason("number-within", {"demand": "must be greater than 0 and less than or equal to 1.0"}),
        )


def _memory_reservation(c: Configuration) -> Iterator[Broken]:
    policy = c.get("memoryReservationPolicy")
    if c.minor < 36 or policy in ("None", None):
        return
    if policy != "TieredReservation":
        yield Broken(
            "memoryReservationPolicy",
            f"{_INVALID}option {quoted(policy)} specified for memoryReservationPolicy. "
            'Valid options are "None" or "TieredReservation"',
            *one_of(policy, ("None", "TieredReservation")),
        )
    elif not c.enabled("MemoryQoS"):
        yield Broken(
            "memoryReservationPolicy",
            f"{_INVALID}memoryReservationPolicy {quoted(policy)} requires MemoryQoS feature gate to be enabled",
            *_needs_gate("MemoryQoS"),
        )


def _container_logs(c: Configuration) -> Iterator[Broken]:
    workers, files, interval = (
        c.get("containerLogMaxWorkers"),
        c.get("containerLogMaxFiles"),
        c.get("containerLogMonitorInterval"),
    )
    if workers is not None and workers < 1:
        yield _log("containerLogMaxWorkers", workers, "must be greater than or equal to 1")
    if interval is not None and quantities.seconds(interval) < 3:
        yield _log(
            "containerLogMonitorInterval",
            interval,
            "must be a positive time duration greater than or equal to 3s",
        )
    if files is not None and files <= 1:
        yield _log("containerLogMaxFiles", files, "must be greater than 1")


def _log(field: str, value: str | int, demand: str) -> Broken:
    return Broken(
        field,
        f"{_INVALID}{field} {demand}",
        Reason("number", {"value": value}),
        Reason("number-within", {"demand": demand}),
    )


_RULES: tuple[Callable[[Configuration], Iterator[Broken]], ...] = (
    _lease,
    _system_cgroups,
    _number("eventBurst", "event-burst", _NOT_NEGATIVE, _negative),
    _number("eventRecordQPS", "event-qps", _NOT_NEGATIVE, _negative),
    _number("healthzPort", "healthz-port", "must be between 1 and 65535, inclusive", _no_port_and_not_zero),
    _number(
        "imageGCHighThresholdPercent",
        "image-gc-high-threshold",
        "must be between 0 and 100, inclusive",
        lambda value: not 0 <= value <= 100,
    ),
    _number(
        "imageGCLowThresholdPercent",
        "image-gc-low-threshold",
        "must be between 0 and 100, inclusive",
        lambda value: not 0 <= value <= 100,
    ),
    _image_gc,
    _number(
        "iptablesDropBit",
        "iptables-drop-bit",
        "must be between 0 and 31, inclusive",
        lambda value: not 0 <= value <= 31,
    ),
    _number(
        "iptablesMasqueradeBit",
        "iptables-masquerade-bit",
        "must be between 0 and 31, inclusive",
        lambda value: not 0 <= value <= 31,
    ),
    _number("kubeAPIBurst", "kube-api-burst", _NOT_NEGATIVE, _negative),
    _number("kubeAPIQPS", "kube-api-qps", _NOT_NEGATIVE, _negative),
    _number(
        "nodeStatusMaxImages", "node-status-max-images", "must be -1 or greater", lambda value: value < -1
    ),
    _number("maxOpenFiles", "max-open-files", _NOT_NEGATIVE, _negative),
    _number("maxPods", "max-pods", _NOT_NEGATIVE, _negative),
    _number(
        "oomScoreAdj",
        "oom-score-adj",
        "must be between -1000 and 1000, inclusive",
        lambda value: not -1000 <= value <= 1000,
    ),
    _number("podsPerCore", "pods-per-core", _NOT_NEGATIVE, _negative),
    _number("port", "port", "must be between 1 and 65535, inclusive", _no_port_and_not_zero),
    _number(
        "readOnlyPort", "read-only-port", "must be between 0 and 65535, inclusive", _no_port_and_not_zero
    ),
    _number("registryBurst", "registry-burst", _NOT_NEGATIVE, _negative),
    _number("registryPullQPS", "registry-qps", _NOT_NEGATIVE, _negative),
    _parallel_pulls,
    _run_once,
    _topology_policy,
    _topology_scope,
    _swap,
    _crash_loop,
    _both_kinds,
    _enforcements,
    _hairpin,
    _pulled_images,
    _reserved_cpus,
    _reserved_memory,
    _user_namespaces,
    _throttling,
    _memory_reservation,
    _container_logs,
)
"""In the order of the kubelet's file; `port: 0` is filled with the default before."""
