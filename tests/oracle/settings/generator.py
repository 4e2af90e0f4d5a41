"""Random settings: files, drop-ins and flags with all that people get wrong, drawn from pools of texts."""

import random
from typing import Any

from numacore.kubelet.checks import tables

Case = dict[str, Any]

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
_QUANTITIES = (
    '"1Gi"',
    "1Gi",
    '"100Mi"',
    '"0"',
    '"-1"',
    '"1Q"',
    "abc",
    "5",
    "1.5",
    '"1e3"',
    '"1.5Gi"',
    '""',
    "true",
    "null",
)
_COUNTS = ("0", "1", "-1", "5", "70000", "3000000000", "1.5", '"5"', "true", "null", "08")
_BOOLEANS = ("true", "false", '"true"', "yes", "off", "1", "null", "y")
_CPUS = ('"0"', "0", '"0-1"', "0-1", '"0,4"', '"7-4"', '"a"', '""', '"0-99"', '"1-2,"', "1:30", "null", "0x1")
_GATES = (
    "CPUManager", "CPUManagerPolicyOptions", "CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions", "TopologyManager", "TopologyManagerPolicyOptions",
    "TopologyManagerPolicyAlphaOptions", "MemoryManager", "MemoryQoS", "KubeletCrashLoopBackOffMax", "KubeletEnsureSecretPulledImages", "PodLevelResources", "PodLevelResourceManagers", "NodeSwap", "AllAlpha", "AllBeta", "Foo",
    "KubeletPodResourcesGet", "InPlacePodVerticalScaling", "DynamicResourceAllocation", "SizeMemoryBackedVolumes", "cpumanager",
)  # fmt: skip
_CPU_OPTIONS = (
    "full-pcpus-only",
    "distribute-cpus-across-numa",
    "align-by-socket",
    "strict-cpu-reservation",
    "nonsense",
)
_SIGNALS = (
    *(f"{one}.available" for one in ("memory", "nodefs", "imagefs", "pid", "containerfs")),
    "nodefs.inodesFree",
    "memory.free",
)

POOL: dict[str, tuple[str, ...]] = {
    "cpuManagerPolicy": ("static", "none", "Static", '""', "true", "1", "[static]", "null"),
    "memoryManagerPolicy": ("Static", "None", "static", "BestEffort", "null", "no"),
    "topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node", "Restricted", "strict", "0", "null"),
    "topologyManagerScope": ("container", "pod", "Pod", '""', "true"),
    "reservedSystemCPUs": _CPUS,
    "systemReservedCgroup": ("/system.slice", '""', "5"),
    "kubeReservedCgroup": ("/kube.slice",),
    "cgroupsPerQOS": _BOOLEANS,
    "enforceNodeAllocatable": ("[pods]", "[none]", "[none, pods]", "[]", "[pods, pods]", "[pods, system-reserved]", "[kube-reserved, kube-reserved-compressible]",
        "pods", "[Pods]", "[1]", "{pods: true}", "[system-reserved-compressible, system-reserved]", "null", "[null]"),
    "memoryThrottlingFactor": ("0.9", "0.8", "1", "0", "1.5", "-1", '"0.8"', "null", "2"),
    "memoryReservationPolicy": ("None", "TieredReservation", "none", "null", "Tiered"),
    "memorySwap": ("{swapBehavior: LimitedSwap}", "{swapBehavior: limitedswap}", "{swapbehavior: NoSwap}", "{}", "LimitedSwap"),
    "healthzPort": _COUNTS,
    "maxPods": _COUNTS,
    "podsPerCore": _COUNTS,
    "imageGCHighThresholdPercent": ("85", "70", "101", "80"),
    "imageGCLowThresholdPercent": ("80", "90", "-1"),
    "oomScoreAdj": ("-999", "-1001", "1001"),
    "nodeLeaseDurationSeconds": ("40", "0", "-1"),
    "maxParallelImagePulls": ("1", "0", "5", "null"),
    "serializeImagePulls": _BOOLEANS,
    "hairpinMode": ("none", "hairpin-veth", "Veth"),
    "crashLoopBackOff": ("{maxContainerRestartPeriod: 10s}", "{maxContainerRestartPeriod: 10m}", "{}"),
    "imagePullCredentialsVerificationPolicy": ("NeverVerify", "neververify"),
    "containerLogMaxFiles": ("5", "1"),
    "containerLogMaxWorkers": ("1", "0"),
    "containerLogMonitorInterval": ("10s", "2s", "3", '"3"', "1m"),
    "cpuManagerReconcilePeriod": ("10s", "10", "5x", '""', "true", "1h30m", "-5s", ".5s", "[1]", "10s5"),
    "mergeDefaultEvictionSettings": _BOOLEANS,
    "failSwapOn": _BOOLEANS,
    "runOnce": ("false", "true"),
    "systemCgroups": ("/x",),
    "userNamespaces": ("{idsPerPod: 65536}", "{idsPerPod: 1}", "{idsPerPod: 65537}", "{idsPerPod: 8589934592}"),
    "authentication": ("{anonymous: {enabled: false}}", "{anonymous: {enabled: maybe}}", "{webhook: {cacheTTL: 5}}", "{x509: {clientCAfile: /x}}", "5"),
    "cpuManagerpolicy": ("static",),
    "reservedSystemCpus": ('"0"', '"1"'),
    "topologyManagerPolicyOption": ("{a: b}",),
    "somethingElse": ("1", "{a: 1}"),
    "TopologyManagerPolicy": ("restricted",),
}  # fmt: skip
"""Texts of values by field; maps of many keys are made below."""

FLAGS = (
    "--cpu-manager-policy=static", "--cpu-manager-policy=Static", "--cpu_manager_policy=none", "--memory-manager-policy=Static",
    "--topology-manager-policy=restricted", "--topology-manager-policy=Strict", "--topology-manager-scope=pod", "--reserved-cpus=0", "--reserved-cpus=0-99",
    "--system-reserved=cpu=1,memory=1Gi", "--system-reserved=cpu", "--kube-reserved=memory=1Gi", "--kube-reserved=gpu=1", "--eviction-hard=memory.available<1Gi",
    "--eviction-hard=memory.available=1Gi", "--enforce-node-allocatable=pods,pods", "--enforce-node-allocatable=none", "--feature-gates=MemoryQoS=true",
    "--feature-gates=Foo=true", "--feature-gates=CPUManager=true", "--feature-gates=MemoryQoS=maybe", "--feature-gates=PodLevelResources=false,PodLevelResourceManagers=true",
    "--cpu-manager-policy-options=full-pcpus-only=true", "--cpu-manager-policy-options=full-pcpus-only", "--topology-manager-policy-options=prefer-closest-numa-nodes=true",
    "--reserved-memory=0:memory=1Gi", "--reserved-memory=0:memory=1Gi;1:memory=2Gi", "--reserved-memory=memory=1Gi", "--reserved-memory=a:memory=1Gi",
    "--reserved-memory=0:cpu=1", "--reserved-memory=0:memory=x", "--max-pods=50", "--max-pods=x", "--cgroups-per-qos=false", "--cgroups-per-qos=maybe", "--v=4", "-v=2",
    "--network-plugin=cni", "--container-runtime=docker", "--unknown", "word", "--qos-reserved=memory=50%", "--qos-reserved=cpu=50%", "--qos-reserved=memory=x%",
    "--fail-swap-on", "--node-ip",
)  # fmt: skip


_EVERY_GATE = sorted(tables.GATES)
_VALUES = {"bool": "true", "int": "1", "duration": "1s", "string": "/x"}
_PASSING_FLAGS = tuple(
    f"--{name}={_VALUES[kind]}"
    for name, (kind, _, until) in sorted(tables.FLAGS.items())
    if until and kind in _VALUES
)
"""Flags that not every version knows."""


def cases(seed: int, number: int) -> list[Case]:
    """The same seed gives the same cases."""
    dice = random.Random(seed)
    return [_case(dice, f"{seed}-{at}") for at in range(number)]


def _case(dice: random.Random, identity: str) -> Case:
    case: Case = {"ID": identity, "File": _file(dice), "Flags": [], "Online": list(range(8))}
    if dice.random() < 0.25:
        names = dice.sample(("10-a.conf", "20-b.conf", "05.conf", "30.yaml", "numa.conf"), dice.randint(0, 2))
        case["DropIns"] = [{"Name": name, "Text": _file(dice)} for name in names]
    if dice.random() < 0.25:
        pool = _PASSING_FLAGS if dice.random() < 0.2 else FLAGS
        case["Flags"] = [dice.choice(pool) for _ in range(dice.randint(1, 2))]
    if dice.random() < 0.03:
        del case["File"]
    return case


def _file(dice: random.Random) -> str:
    fields = dice.sample(sorted(POOL), dice.randint(0, 4))
    lines = [f"{name}: {dice.choice(POOL[name])}" for name in fields]
    for chance, made in (
        (0.2, _gates),
        (0.2, _reserved),
        (0.2, _eviction),
        (0.15, _memory),
        (0.15, _options),
    ):
        if dice.random() < chance:
            lines.append(made(dice))
    if dice.random() < 0.05 and lines:
        lines.append(dice.choice(lines))
    dice.shuffle(lines)
    head = (
        HEAD
        if dice.random() < 0.97
        else dice.choice(("", "kind: KubeletConfiguration\n", HEAD.replace("v1beta1", "v1"), "- "))
    )
    return head + "".join(line + "\n" for line in lines)


def _flow(name: str, pairs: list[tuple[str, str]]) -> str:
    return f"{name}: {{" + ", ".join(f"{key}: {value}" for key, value in dict(pairs).items()) + "}"


def _gates(dice: random.Random) -> str:
    values = ("true", "false", "true", "false", "on", '"true"', "1")
    pool = _EVERY_GATE if dice.random() < 0.5 else _GATES
    return _flow(
        "featureGates", [(dice.choice(pool), dice.choice(values)) for _ in range(dice.randint(1, 2))]
    )


def _reserved(dice: random.Random) -> str:
    kinds = ("cpu", "memory", "ephemeral-storage", "pid", "gpu", "hugepages-2Mi")
    pairs = [(dice.choice(kinds), dice.choice(_QUANTITIES)) for _ in range(dice.randint(1, 2))]
    return _flow(dice.choice(("kubeReserved", "systemReserved")), pairs)


def _eviction(dice: random.Random) -> str:
    values = (*_QUANTITIES, '"10%"', "10%", '"0%"', '"150%"', '"-1%"', '"x%"', "5%%")
    return _flow(
        "evictionHard", [(dice.choice(_SIGNALS), dice.choice(values)) for _ in range(dice.randint(1, 2))]
    )


def _options(dice: random.Random) -> str:
    pairs = [
        (dice.choice(_CPU_OPTIONS), dice.choice(('"true"', "true", "maybe")))
        for _ in range(dice.randint(1, 2))
    ]
    return _flow("cpuManagerPolicyOptions", pairs)


def _memory(dice: random.Random) -> str:
    entries = []
    for _ in range(dice.randint(1, 3)):
        kinds = dice.sample(("memory", "hugepages-2Mi", "hugepages-1Gi", "cpu"), dice.randint(1, 2))
        limits = ", ".join(f"{kind}: {dice.choice(_QUANTITIES)}" for kind in kinds)
        entries.append(f"{{numaNode: {dice.choice(('0', '1', 'a'))}, limits: {{{limits}}}}}")
    return "reservedMemory: [" + ", ".join(entries) + "]"
