"""Settings written by hand: each is a mistake that somebody made, or a trap. The kubelet's answers to them are recorded with the random ones."""

from tests.oracle.settings.generator import HEAD, Case

_GOOD = """cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
reservedSystemCPUs: "0,4"
memoryManagerPolicy: Static
systemReserved: {memory: "1Gi"}
reservedMemory:
- numaNode: 0
  limits: {memory: 1124Mi}
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
"""


def _file(identity: str, text: str) -> Case:
    return {"ID": identity, "File": HEAD + text, "Flags": [], "Online": list(range(8))}


def _drop_ins(identity: str, text: str, *drop_ins: tuple[str, str]) -> Case:
    given = [{"Name": name, "Text": content} for name, content in drop_ins]
    return _file(identity, text) | {"DropIns": given}


def _flags(identity: str, text: str, *flags: str) -> Case:
    return _file(identity, text) | {"Flags": list(flags)}


WRITTEN: tuple[Case, ...] = (
    _file("good", _GOOD),
    _file("wrong-case-of-a-field", "cpuManagerpolicy: static\n"),
    _file("unquoted-boolean-in-options", "cpuManagerPolicyOptions: {full-pcpus-only: true}\n"),
    _file("unquoted-number-in-reserved", "kubeReserved: {cpu: 1}\n"),
    _file("cpus-as-a-number", "reservedSystemCPUs: 0\n"),
    _file("cpus-octal", "reservedSystemCPUs: 010\n"),
    _file("cpus-as-a-range", "reservedSystemCPUs: 0-3\n"),
    _file("key-twice", "cpuManagerPolicy: static\ncpuManagerPolicy: none\n"),
    _file("key-twice-in-a-map", 'kubeReserved:\n  cpu: "1"\n  cpu: "2"\n'),
    _file("unknown-below-a-list", "reservedMemory:\n- numaNode: 0\n  limit: {memory: 1Gi}\n"),
    _file("gate-unknown", "featureGates: {Foo: true}\n"),
    _file("gate-removed", "featureGates: {CPUManager: true}\n"),
    _file("gate-removed-later", "featureGates: {CPUManagerPolicyOptions: true}\n"),
    _file("gate-of-35-and-36", "featureGates: {GangScheduling: true, GenericWorkload: true}\n"),
    _file("gate-of-36", "featureGates: {WorkloadAwarePreemption: false}\n"),
    _file("gate-of-a-library", "featureGates: {InOrderInformersBatchProcess: false}\n"),
    _file("gate-locked", "featureGates: {CPUManagerPolicyOptions: false}\n"),
    _file("gate-locked-as-it-is", "featureGates: {InPlacePodVerticalScaling: true}\n"),
    _file("gate-needs-another", "featureGates: {PodLevelResourceManagers: true, PodLevelResources: false}\n"),
    _file("all-alpha", "featureGates: {AllAlpha: true}\n"),
    _file("all-beta", "featureGates: {AllBeta: true}\n"),
    _file("no-beta", "featureGates: {AllBeta: false}\n"),
    _file("gate-no-boolean", 'featureGates: {MemoryQoS: "true"}\n'),
    _file("policy-in-wrong-case", "topologyManagerPolicy: Single-Numa-Node\n"),
    _file("cpu-policy-in-wrong-case", "cpuManagerPolicy: Static\n"),
    _file("memory-policy-in-wrong-case", "memoryManagerPolicy: static\n"),
    _file("scope-in-wrong-case", "topologyManagerScope: Pod\n"),
    _file("cpus-with-cgroup", 'reservedSystemCPUs: "0"\nsystemReservedCgroup: /system.slice\n'),
    _file("cpus-not-online", 'reservedSystemCPUs: "0-8"\n'),
    _file("cpus-backwards", 'reservedSystemCPUs: "3-0"\n'),
    _file("cpus-over-amounts", 'reservedSystemCPUs: "0-1"\nkubeReserved: {cpu: "4"}\nsystemReserved: {cpu: "4", memory: 1Gi}\n'),
    _file("enforced-without-cgroup", "enforceNodeAllocatable: [pods, system-reserved]\n"),
    _file("enforced-both-kinds", "enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /k\n"),
    _file("memory-twice-and-zero", "reservedMemory: [{numaNode: 0, limits: {memory: 0}}, {numaNode: 0, limits: {memory: 1}}]\n"),
    _file("memory-of-cpu", "reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]\n"),
    _file("own-eviction", 'evictionHard: {memory.available: "500Mi"}\n'),
    _file("own-eviction-merged", 'evictionHard: {memory.available: "500Mi"}\nmergeDefaultEvictionSettings: true\n'),
    _file("no-eviction", "evictionHard: {}\n"),
    _file("eviction-unknown", 'evictionHard: {memory.free: "500Mi"}\n'),
    _file("eviction-number", "evictionHard: {memory.available: 500}\n"),
    _file("endless", "maxPods: .inf\n"),
    _file("duration-without-unit", 'cpuManagerReconcilePeriod: "10"\n'),
    _file("throttling-off", "memoryThrottlingFactor: 0.8\nfeatureGates: {MemoryQoS: false}\n"),
    _file("tiered-without-gate", "memoryReservationPolicy: TieredReservation\nfeatureGates: {MemoryQoS: false}\n"),
    _file("two-documents", "---\n" + HEAD + "cpuManagerPolicy: static\n"),
    _file("anchors", 'kubeReserved: &a {cpu: "1"}\nsystemReserved: *a\n'),
    _file("json", "") | {"File": '{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","maxPods":"5","cpuManagerPolicy":1}'},
    _file("yaml-in-braces", "") | {"File": "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration}"},
    _file("tab", "cpuManagerPolicy: static\n\tmaxPods: 5\n"),
    _file("empty", "") | {"File": ""},
    _file("comment-only", "") | {"File": "# nothing\n"},
    _file("text-only", "") | {"File": "hello\n"},
    _file("no-version", "") | {"File": "kind: KubeletConfiguration\n"},
    _file("no-kind", "") | {"File": "apiVersion: kubelet.config.k8s.io/v1beta1\n"},
    _file("other-version", "") | {"File": "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n"},
    _file(
        "options-without-their-gate",
        'topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {max-allowable-numa-nodes: "9", prefer-closest-numa-nodes: "true"}\n'
        "featureGates: {TopologyManagerPolicyOptions: false}\n",
    ),
    _file("half-a-cpu", 'kubeReserved: {cpu: "500m"}\n'),
    _file("less-than-nothing", 'systemReserved: {cpu: "-0.5"}\n'),
    _file("nothing-reserved", 'systemReserved: {memory: "0"}\n'),
    _file("resource-that-cannot-be-reserved", 'kubeReserved: {gpu: "1"}\n'),
    _file("amount-that-is-none", 'kubeReserved: {memory: "much"}\n'),
    _file("threshold-of-all", 'evictionHard: {memory.available: "100%"}\n'),
    _file("threshold-of-all-with-a-point", 'evictionHard: {memory.available: "100.0%"}\n'),
    _file("threshold-of-more-than-all", 'evictionHard: {memory.available: "100.5%"}\n'),
    _file("threshold-of-none", 'evictionHard: {memory.available: "0%"}\n'),
    _file("threshold-below-nothing", 'evictionHard: {memory.available: "-5%"}\n'),
    _file("threshold-without-a-number", 'evictionHard: {memory.available: "x%"}\n'),
    _file("threshold-of-nothing", 'evictionHard: {memory.available: "0"}\n'),
    _file("qos-without-percent", 'qosReserved: {memory: "50"}\nfeatureGates: {QOSReserved: true}\n'),
    _file("qos-without-a-number", 'qosReserved: {memory: "x%"}\nfeatureGates: {QOSReserved: true}\n'),
    _file("qos-of-more-than-all", 'qosReserved: {memory: "150%"}\nfeatureGates: {QOSReserved: true}\n'),
    _file("qos-of-cpu", 'qosReserved: {cpu: "50%"}\nfeatureGates: {QOSReserved: true}\n'),
    _file("lease-of-no-time", "nodeLeaseDurationSeconds: -1\n"),
    _file("system-cgroups-alone", "systemCgroups: /system\n"),
    _file("collection-upside-down", "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 70\n"),
    _file("no-pulls", "maxParallelImagePulls: 0\n"),
    _file("pulls-one-at-a-time", "maxParallelImagePulls: 2\nserializeImagePulls: true\n"),
    _file("run-once", "runOnce: true\n"),
    _file("exclusive-policies", 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {strict-cpu-reservation: "maybe"}\n'),
    _file("port-of-none", "port: 70000\nreadOnlyPort: -1\nhealthzPort: 65536\n"),
    _drop_ins("list-replaced", "enforceNodeAllocatable: [pods]\n", ("10.conf", HEAD + "enforceNodeAllocatable: [none]\n")),
    _drop_ins(
        "memory-replaced",
        "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n",
        ("10.conf", HEAD + "reservedMemory: [{numaNode: 1, limits: {memory: 1Gi}}]\n"),
    ),
    _drop_ins("maps-joined", 'kubeReserved: {cpu: "1"}\n', ("10.conf", HEAD + "kubeReserved: {memory: 1Gi}\n")),
    _drop_ins("not-conf", "", ("10.yaml", HEAD + "cpuManagerPolicy: static\n"), ("20.CONF", "nonsense")),
    _drop_ins("later-wins", "", ("20.conf", HEAD + "maxPods: 2\n"), ("10.conf", HEAD + "maxPods: -1\n")),
    _drop_ins("other-case-counts", "", ("10.conf", HEAD + 'reservedSystemCpus: "0"\n')),
    _drop_ins("other-case-loses", "", ("10.conf", HEAD + "CPUManagerPolicy: static\n")),
    _drop_ins("drop-in-unknown", "", ("10.conf", HEAD + "nonsense: 1\n")),
    _drop_ins("drop-in-key-twice", "", ("10.conf", HEAD + "maxPods: 1\nmaxPods: 2\n")),
    _drop_ins("drop-in-without-kind", "", ("10.conf", "maxPods: 1\n")),
    _drop_ins("drop-in-other-version", "", ("10.conf", "apiVersion: v1\nkind: KubeletConfiguration\n")),
    _drop_ins("drop-in-other-version-key-twice", "", ("10.conf", "apiVersion: v1\nkind: KubeletConfiguration\nmaxPods: 1\nmaxPods: 1\n")),
    _drop_ins("drop-in-other-kind-key-twice", "", ("10.conf", HEAD.replace("Configuration", "") + "maxPods: 1\nmaxPods: 1\n")),
    _drop_ins("drop-in-json-key-twice", "", ("10.conf", '{"apiVersion": "v1", "kind": "KubeletConfiguration", "maxPods": 1, "maxPods": 1}')),
    _drop_ins("drop-in-empty", "", ("10.conf", "")),
    _drop_ins("drop-in-type", "", ("10.conf", HEAD + "cpuManagerPolicyOptions: {full-pcpus-only: true}\n")),
    _drop_ins("drop-in-gate", "", ("10.conf", HEAD + "featureGates: {Foo: true}\n")),
    _drop_ins("drop-in-merges-eviction", 'evictionHard: {memory.available: "1Gi"}\n', ("10.conf", HEAD + "mergeDefaultEvictionSettings: true\n")),
    _drop_ins("drop-in-eviction-joins", "", ("10.conf", HEAD + 'evictionHard: {memory.available: "1Gi"}\n')),
    _drop_ins("drop-in-eviction-null", "", ("10.conf", HEAD + "evictionHard: null\n")),
    _drop_ins("drop-in-gate-off-late", "", ("10.conf", HEAD + "featureGates: {KubeletCrashLoopBackOffMax: false}\n")),
    _drop_ins("drop-in-pulls-late", "", ("10.conf", HEAD + "maxParallelImagePulls: 5\n")),
    _drop_ins("no-drop-ins", "maxPods: 7\n"),
    _flags("flag-beats-file", "cpuManagerPolicy: none\n", "--cpu-manager-policy=static"),
    _flags("flag-replaces-map", 'kubeReserved: {cpu: "1"}\n', "--kube-reserved=memory=1Gi"),
    _flags("gates-join", "featureGates: {MemoryQoS: false}\n", "--feature-gates=AllBeta=true"),
    _flags("flag-gate-off-late", "", "--feature-gates=KubeletCrashLoopBackOffMax=false"),
    _flags("flag-gone-in-37", "", "--boot-id-file=/x"),
    _flags("flag-gone", "", "--container-runtime=remote"),
    _flags("flag-separate", "", "--cpu-manager-policy", "static", "--fail-swap-on", "-v", "4"),
    _flags("flag-bad-pair", "", "--kube-reserved=cpu"),
    _flags("flag-memory", "", "--reserved-memory=0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=512Mi"),
    {"ID": "flags-only", "Flags": ["--cpu-manager-policy=static", "--kube-reserved=cpu=1"], "Online": [0, 1]},
)  # fmt: skip
