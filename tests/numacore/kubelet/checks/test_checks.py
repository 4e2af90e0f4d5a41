"""Every rule and every trap once: what is said, how loudly, where, and what to do about it."""

from typing import Any

import pytest

from numacore.kubelet.checks import running
from numacore.kubelet.checks.assembly import File, Sources
from numacore.kubelet.checks.check import Checked, Running, check
from numacore.kubelet.checks.documents import read
from numacore.kubelet.checks.findings import Finding
from numacore.kubelet.machine import Machine
from numacore.kubelet.node import StateFiles
from tests.numacore.kubelet.builders import machine, settings

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = 'cpuManagerPolicy: static\nkubeReserved: {cpu: "1"}\n'
TOPOLOGY = "topologyManagerPolicy: restricted\n"


def checked(
    text: str | None = "",
    *flags: str,
    drop_ins: dict[str, str] | None = None,
    minor: int = 37,
    on: Machine | None = None,
    found: Running | None = None,
) -> Checked:
    """Two NUMA nodes of four cores with two threads each, if nothing else is said."""
    sources = Sources(
        minor=minor,
        file=None if text is None else File("config.yaml", read(HEAD + text)),
        drop_ins=None
        if drop_ins is None
        else tuple(File(name, read(HEAD + content)) for name, content in drop_ins.items()),
        flags=flags,
    )
    return check(sources, on or machine(), found)


def the(found: Checked, code: str) -> Finding:
    (finding,) = (each for each in found.findings if each.reason.code == code)
    return finding


FATAL: list[tuple[str, str, str, str]] = [
    (TOPOLOGY.replace("restricted", "Restricted"), "value-case", "topologyManagerPolicy", "write"),
    (TOPOLOGY.replace("restricted", "strict"), "value-unknown", "topologyManagerPolicy", "choose"),
    ("topologyManagerScope: Pod\n", "value-case", "topologyManagerScope", "write"),
    ("cpuManagerPolicy: Static\n", "value-case", "cpuManagerPolicy", "write"),
    ("memoryManagerPolicy: static\n", "value-case", "memoryManagerPolicy", "write"),
    ("memoryManagerPolicy: BestEffort\n", "memory-windows", "memoryManagerPolicy", "set-memory-static"),
    ('cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n', "options-without-policy", "cpuManagerPolicyOptions", "set-static"),
    (STATIC + 'cpuManagerPolicyOptions: {nonsense: "true"}\n', "option-unknown", "cpuManagerPolicyOptions", "remove-option"),
    (STATIC + 'cpuManagerPolicyOptions: {align-by-socket: "true"}\n', "option-gate", "cpuManagerPolicyOptions", "option-gate-cpu"),
    (STATIC + 'cpuManagerPolicyOptions: {full-pcpus-only: "yes"}\n', "option-value", "cpuManagerPolicyOptions", "option-bool"),
    (
        STATIC + 'cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: "true", distribute-cpus-across-numa: "true"}\n',
        "options-exclude", "cpuManagerPolicyOptions", "remove-one-option",
    ),
    (
        STATIC + 'cpuManagerPolicyOptions: {align-by-socket: "true"}\nfeatureGates: {CPUManagerPolicyAlphaOptions: true}\n'
        + TOPOLOGY.replace("restricted", "single-numa-node"),
        "socket-single-numa", "cpuManagerPolicyOptions", "remove-align-by-socket",
    ),
    (TOPOLOGY + 'topologyManagerPolicyOptions: {nonsense: "1"}\n', "option-unknown", "topologyManagerPolicyOptions", "remove-option"),
    (TOPOLOGY + 'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "7"}\n', "option-number", "topologyManagerPolicyOptions", "option-at-least-8"),
    (TOPOLOGY + 'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "x"}\n', "option-number", "topologyManagerPolicyOptions", "option-at-least-8"),
    (TOPOLOGY + 'topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "x"}\n', "option-value", "topologyManagerPolicyOptions", "option-bool"),
    ("cpuManagerPolicy: static\n", "no-reserved-cpus", "reservedSystemCPUs", "reserve-cpus"),
    ('reservedSystemCPUs: "0-99"\n', "cpus-not-online", "reservedSystemCPUs", "only-online"),
    ('reservedSystemCPUs: "0-"\n', "bad-cpus", "reservedSystemCPUs", "give-cpus"),
    ('reservedSystemCPUs: "0"\nkubeReservedCgroup: /kube.slice\n', "cpus-with-cgroup", "reservedSystemCPUs", "remove-one-field"),
    ("reservedSystemCPUs: 0\n", "unquoted", "reservedSystemCPUs", "quote"),
    ("cpuManagerPolicyOptions: {full-pcpus-only: true}\n", "unquoted", "cpuManagerPolicyOptions[full-pcpus-only]", "quote"),
    ("enforceNodeAllocatable: pods\n", "wrong-type", "enforceNodeAllocatable", "give-type"),
    ("cpuManagerReconcilePeriod: 10\n", "bad-duration", "cpuManagerReconcilePeriod", "give-duration"),
    ("cpuManagerReconcilePeriod: 10x\n", "bad-duration", "cpuManagerReconcilePeriod", "give-duration"),
    ("reservedMemory: [{numaNode: 0, limits: {memory: x}}]\n", "bad-quantity", "reservedMemory[0].limits[memory]", "give-quantity"),
    ("enforceNodeAllocatable: [pods, pods]\n", "twice", "enforceNodeAllocatable", "remove-value"),
    ("enforceNodeAllocatable: [none, pods]\n", "none-with-others", "enforceNodeAllocatable", "remove-value"),
    ("enforceNodeAllocatable: [system-reserved]\n", "needs-field", "enforceNodeAllocatable", "set-field"),
    ("cgroupsPerQOS: false\n", "needs-field", "enforceNodeAllocatable", "set-field"),
    ("enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /k\n", "exclusive", "enforceNodeAllocatable", "remove-value"),
    ("reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]\n", "memory-kind", "reservedMemory[0].limits[cpu]", "memory-kinds"),
    ("reservedMemory: [{numaNode: 0, limits: {memory: 0}}]\n", "memory-zero", "reservedMemory[0].limits[memory]", "remove-field"),
    (
        "reservedMemory: [{numaNode: 0, limits: {memory: 1}}, {numaNode: 0, limits: {memory: 2}}]\n",
        "memory-twice", "reservedMemory[1].limits[memory]", "memory-once",
    ),
    ("memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 7, limits: {memory: 100Mi}}]\n", "memory-no-node", "reservedMemory", "memory-nodes"),
    ("memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n", "memory-sum", "reservedMemory", "memory-sum"),
    (
        "memoryManagerPolicy: Static\nkubeReserved: {memory: 1Gi}\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n",
        "memory-sum-eviction", "reservedMemory", "memory-sum",
    ),
    ("memoryManagerPolicy: Static\nevictionHard: {}\n", "memory-none", "reservedMemory", "memory-reserve"),
    ('kubeReserved: {gpu: "1"}\n', "not-reservable", "kubeReserved.gpu", "reservable"),
    ('systemReserved: {cpu: "x"}\n', "bad-quantity", "systemReserved.cpu", "give-quantity"),
    ('systemReserved: {cpu: "-1"}\n', "number", "systemReserved.cpu", "give-quantity"),
    ('evictionHard: {memory.free: "1Gi"}\n', "unknown-signal", "evictionHard.memory.free", "choose"),
    ('evictionHard: {memory.available: "0"}\n', "bad-threshold", "evictionHard.memory.available", "give-threshold"),
    ('evictionHard: {memory.available: "150%"}\n', "bad-threshold", "evictionHard.memory.available", "give-threshold"),
    ('qosReserved: {memory: "50"}\n', "bad-percentage", "qosReserved.memory", "give-percentage"),
    ("memoryThrottlingFactor: 0.8\nfeatureGates: {MemoryQoS: false}\n", "needs-gate", "memoryThrottlingFactor", "set-gate"),
    ("memoryThrottlingFactor: 1.5\n", "number", "memoryThrottlingFactor", "number-within"),
    ("memoryReservationPolicy: Tiered\n", "value-unknown", "memoryReservationPolicy", "choose"),
    ("memorySwap: {swapBehavior: limitedSwap}\n", "value-case", "memorySwap.swapBehavior", "write"),
    ("maxPods: -1\n", "number", "maxPods", "number-within"),
    ("nodeLeaseDurationSeconds: -1\n", "number", "nodeLeaseDurationSeconds", "number-within"),
    ("systemCgroups: /system\n", "needs-field", "systemCgroups", "set-field"),
    ("imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 70\n", "number", "imageGCLowThresholdPercent", "number-within"),
    ("maxParallelImagePulls: 0\n", "number", "maxParallelImagePulls", "number-within"),
    ("maxParallelImagePulls: 2\nserializeImagePulls: true\n", "serial-pulls", "maxParallelImagePulls", "set-field"),
    ("runOnce: true\n", "run-once", "runOnce", "remove-field"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "field", "remedy"), FATAL)
def test_what_stops_the_kubelet(text: str, code: str, field: str, remedy: str) -> None:
    found = checked(text)
    (finding,) = found.told
    assert (finding.severity, finding.reason.code, finding.field, finding.remedy.code) == (
        "fatal",
        code,
        field,
        remedy,
    )
    assert finding.words
    assert finding.proven
    assert (found.starts, found.settings) == (False, None)


CRASHES = [
    ("featureGates: {Foo: true}\n", "gate-unknown"),
    ("featureGates: {CPUManager: true}\n", "gate-removed"),
    ("featureGates: {CPUManagerPolicyOptions: false}\n", "gate-locked"),
    ("featureGates: {PodLevelResourceManagers: true, InPlacePodLevelResourcesVerticalScaling: false, PodLevelResourcesFixDefaulting: false,"
     " PodLevelResourcesFixKubeletQOSClass: false, PodLevelResources: false}\n", "gate-depends"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), CRASHES)
def test_gates_in_the_file_end_the_kubelet_by_a_panic(text: str, code: str) -> None:
    (finding,) = checked(text).told
    assert (finding.severity, finding.stage, finding.reason.code) == ("crash", "load", code)


def test_the_same_gate_as_a_flag_is_refused_without_a_panic() -> None:
    (finding,) = checked("", "--feature-gates=Foo=true").told
    assert (finding.severity, finding.stage, finding.words) == (
        "fatal",
        "gates",
        "unrecognized feature gate: Foo",
    )


def test_a_gate_that_came_later_says_since_when() -> None:
    finding = the(checked("featureGates: {PodLevelResourceManagers: true}\n", minor=34), "gate-too-new")
    assert finding.reason.values["since"] == "1.36"


SILENT: list[tuple[str, str, str, str]] = [
    ("cpuManagerpolicy: static\n", "silent", "wrong-case", "cpuManagerpolicy"),
    ("cpuManagrPolicy: static\n", "silent", "unknown-field", "cpuManagrPolicy"),
    ("cpuManagerPolicy: none\ncpuManagerPolicy: none\n", "silent", "duplicate", "cpuManagerPolicy"),
    ("---\n" + HEAD + STATIC, "silent", "more-documents", ""),
    ('evictionHard: {memory.available: "1Gi"}\n', "silent", "eviction-defaults-lost", "evictionHard"),
    ('topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}\n', "silent", "without-policy", "topologyManagerPolicyOptions"),
    ("topologyManagerScope: pod\n", "silent", "without-policy", "topologyManagerScope"),
    ("reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n", "silent", "without-policy", "reservedMemory"),
    ('reservedSystemCPUs: "0-1"\n' + STATIC, "silent", "cpus-beat-amount", "kubeReserved.cpu"),
    ('reservedSystemCPUs: "0-1"\n', "warning", "cpus-only-counted", "reservedSystemCPUs"),
    (TOPOLOGY, "warning", "only-devices", "topologyManagerPolicy"),
    (STATIC + TOPOLOGY + 'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "16"}\n', "warning", "many-nodes", "topologyManagerPolicyOptions"),
    (
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\n',
        "warning", "half-cores", "reservedSystemCPUs",
    ),
    ("featureGates: {CPUManagerPolicyOptions: true}\n", "warning", "gate-ending", "featureGates.CPUManagerPolicyOptions"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "severity", "code", "field"), SILENT)
def test_what_the_kubelet_takes_and_does_otherwise(text: str, severity: str, code: str, field: str) -> None:
    found = checked(text)
    finding = the(found, code)
    assert (finding.severity, finding.field) == (severity, field)
    assert found.starts
    assert found.settings is not None


def test_a_misspelt_field_is_told_what_it_probably_means() -> None:
    finding = the(checked("reservedMemory:\n- {numanode: 0, limits: {}}\n"), "wrong-case")
    assert (finding.field, finding.remedy.values) == ("reservedMemory[0].numanode", {"field": "numaNode"})
    assert finding.words == 'unknown field "reservedMemory[0].numanode"'
    assert the(checked("reservedMemory:\n- {numanode: 0, limits: {}}\n"), "numa-missing").severity == "silent"


def test_a_field_before_its_time_is_passed_over() -> None:
    found = checked(STATIC + 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n', minor=21)
    assert the(found, "field-too-new").reason.values == {"since": "1.22"}
    assert found.settings is not None
    assert found.settings.cpu_manager_policy_options == {}


def test_settings_of_a_good_file_are_the_managers() -> None:
    found = checked(
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0-1,8-9"\nsystemReserved: {memory: 1Gi}\nmemoryManagerPolicy: Static\n'
        "reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]\ntopologyManagerPolicy: single-numa-node\ntopologyManagerScope: pod\n"
    )
    assert found.findings == ()
    assert found.settings is not None
    assert (found.settings.cpu_manager_policy, found.settings.reserved_system_cpus) == ("static", "0-1,8-9")
    assert found.settings.reservation == {"cpu": "4", "memory": "1124Mi"}


def test_drop_ins_join_maps_and_replace_lists() -> None:
    found = checked(
        'kubeReserved: {cpu: "1"}\nenforceNodeAllocatable: [pods]\n',
        drop_ins={
            "10.conf": "kubeReserved: {memory: 1Gi}\nenforceNodeAllocatable: [none]\n",
            "5.yaml": STATIC,
        },
    )
    assert found.fields is not None
    assert found.fields["kubeReserved"] == {"cpu": "1", "memory": "1Gi"}
    assert found.fields["enforceNodeAllocatable"] == ["none"]
    assert the(found, "list-replaced").reason.values == {"by": "10.conf", "of": "config.yaml"}
    assert the(found, "not-conf").where == "5.yaml"
    assert found.fields["cpuManagerPolicy"] == "none"


def test_the_last_drop_in_wins_in_the_order_of_names() -> None:
    found = checked("", drop_ins={"20.conf": "maxPods: 20\n", "10.conf": "maxPods: 10\n"})
    assert found.fields is not None
    assert found.fields["maxPods"] == 20


def test_a_wrong_case_counts_in_a_drop_in_unless_the_right_one_is_there() -> None:
    counts = checked("", drop_ins={"10.conf": 'reservedSystemCpus: "0"\n'})
    assert the(counts, "wrong-case-counts").severity == "warning"
    assert counts.settings is not None
    assert counts.settings.reserved_system_cpus == "0"
    loses = checked("", drop_ins={"10.conf": "CPUManagerPolicy: static\n"})
    assert the(loses, "wrong-case").severity == "silent"
    assert loses.settings is not None
    assert loses.settings.cpu_manager_policy == "none"


def test_duplicates_stop_the_kubelet_in_drop_ins_only() -> None:
    twice = "maxPods: 5\nmaxPods: 6\n"
    assert checked(twice).starts
    (finding,) = checked("", drop_ins={"10.conf": twice}).told
    assert (finding.stage, finding.where) == ("merge", "10.conf")


def test_a_gate_turned_off_too_late_leaves_its_default_behind() -> None:
    gate = "featureGates: {KubeletCrashLoopBackOffMax: false}\n"
    assert checked(gate).starts
    assert the(checked("", drop_ins={"10.conf": gate}), "gate-off-late").severity == "fatal"


def test_flags_beat_the_file() -> None:
    found = checked("cpuManagerPolicy: none\n" + STATIC.partition("\n")[2], "--cpu-manager-policy=static")
    assert the(found, "flag-beats-file").reason.values == {
        "flag": "--cpu-manager-policy",
        "file": "config.yaml",
    }
    assert found.settings is not None
    assert found.settings.cpu_manager_policy == "static"


def test_without_a_file_no_eviction_is_reserved() -> None:
    found = checked(None, "--cpu-manager-policy=static", "--kube-reserved=cpu=1")
    assert found.settings is not None
    assert found.settings.reservation == {"cpu": "1"}
    assert the(found, "no-eviction").severity == "warning"


@pytest.mark.parametrize("flag", ["--container-runtime=remote", "--nonsense", "-x"])
def test_unknown_flags_stop_the_kubelet(flag: str) -> None:
    (finding,) = checked("", flag).told
    assert (finding.stage, finding.severity) == ("flags", "fatal")


def test_drop_ins_before_their_time() -> None:
    assert the(checked("", drop_ins={}, minor=27), "unknown-flag").severity == "fatal"
    assert the(checked("", drop_ins={}, minor=29), "drop-ins-alpha").severity == "warning"
    assert checked("", drop_ins={}, minor=30).findings == ()


@pytest.mark.parametrize(
    ("minor", "proven"), [(30, False), (33, False), (34, True), (35, True), (36, True), (37, True)]
)
def test_findings_say_whether_a_kubelet_of_the_version_was_run_beside_them(minor: int, proven: bool) -> None:
    (finding,) = checked("topologyManagerPolicy: strict\n", minor=minor).told
    assert finding.proven is proven


MATURITY: list[tuple[str, int, str | None]] = [
    ("align-by-socket", 24, "option-unknown"), ("full-pcpus-only", 23, None), ("align-by-socket", 37, "option-gate"), ("strict-cpu-reservation", 32, "option-gate"),
    ("strict-cpu-reservation", 33, None), ("prefer-align-cpus-by-uncorecache", 33, "option-gate"), ("prefer-align-cpus-by-uncorecache", 34, None),
    ("distribute-cpus-across-cores", 30, "option-unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "minor", "code"), MATURITY)
def test_options_by_version(option: str, minor: int, code: str | None) -> None:
    text = STATIC + f'cpuManagerPolicyOptions: {{{option}: "true"}}\n'
    codes = {each.reason.code for each in checked(text, minor=minor).told}
    assert codes == ({code} if code else set())


@pytest.mark.parametrize(("nodes", "most", "starts"), [(9, "", False), (9, "9", True), (8, "", True)])
def test_more_numa_nodes_than_the_limit(nodes: int, most: str, starts: bool) -> None:
    options = f'topologyManagerPolicyOptions: {{max-allowable-numa-nodes: "{most}"}}\n' if most else ""
    found = checked(TOPOLOGY + options, on=machine(nodes, cores=1))
    assert found.starts is starts
    if not starts:
        assert the(found, "too-many-nodes").reason.values == {"most": "8", "nodes": 9}


def test_missing_distances_stop_prefer_closest() -> None:
    blind = machine()
    without = Machine(
        tuple(type(node)(node.id, node.memory, node.hugepages, None, node.cores) for node in blind.nodes)
    )
    text = TOPOLOGY + 'topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}\n'
    assert the(checked(text, on=without), "no-distances").severity == "fatal"


def test_the_forgotten_threshold_is_named_with_its_amounts() -> None:
    finding = the(
        checked(
            "memoryManagerPolicy: Static\nkubeReserved: {memory: 1Gi}\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
        ),
        "memory-sum-eviction",
    )
    assert finding.remedy.values == {
        "kind": "memory",
        "have": 1 << 30,
        "need": (1 << 30) + (100 << 20),
        "eviction": 100 << 20,
    }


def test_what_the_remedy_says_is_taken() -> None:
    """The sum that the finding asks for starts."""
    text = "memoryManagerPolicy: Static\nkubeReserved: {{memory: 1Gi}}\nreservedMemory: [{{numaNode: 0, limits: {{memory: {size}}}}}]\n"
    need = the(checked(text.format(size="1Gi")), "memory-sum-eviction").remedy.values["need"]
    assert checked(text.format(size=need)).starts
    assert not checked(text.format(size=int(need) - 1)).starts


def test_everything_wrong_is_told_at_once_though_the_kubelet_tells_the_first_stage() -> None:
    found = checked("cpuManagerpolicy: static\ntopologyManagerPolicy: Strict\ntopologyManagerScope: Pod\n")
    assert {each.field for each in found.findings} == {
        "cpuManagerpolicy",
        "topologyManagerPolicy",
        "topologyManagerScope",
    }
    assert {each.field for each in found.told} == {"topologyManagerPolicy", "topologyManagerScope"}


def test_without_a_machine_the_rest_is_still_checked() -> None:
    sources = Sources(
        minor=37,
        file=File("config.yaml", read(HEAD + 'reservedSystemCPUs: "0-99"\ncpuManagerPolicy: static\n')),
    )
    assert check(sources).starts


def state(policy: str, cpus: str) -> Running:
    return Running(StateFiles(cpu=f'{{"policyName":"{policy}","defaultCpuSet":"{cpus}","checksum":0}}'))


def test_one_call_says_whether_it_would_survive_a_restart() -> None:
    found = checked(STATIC, found=state("static", "0-15"), minor=36)
    assert found.survival is not None
    assert (found.starts, found.survival.survives) == (True, True)


def test_and_why_not() -> None:
    found = checked(STATIC, found=state("none", ""), minor=36)
    (finding,) = found.told
    assert (finding.stage, finding.reason.code, finding.remedy.code) == (
        "state",
        "state-refused",
        "remove-state",
    )
    assert "differs from state checkpoint policy" in finding.words


def test_settings_that_do_not_start_say_nothing_of_state_files() -> None:
    found = checked("cpuManagerPolicy: Static\n", found=state("none", ""))
    assert found.survival is None
    assert {each.stage for each in found.told} == {"managers"}


ODD: list[Any] = [
    "- a",
    "hello",
    "5",
    "",
    "# nothing",
    "a: [",
    "{",
    "{}",
    "apiVersion: [1]\nkind: {}",
    "\x00",
    "kind: KubeletConfiguration",
]


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_configuration_is_refused(text: str) -> None:
    found = check(Sources(minor=37, file=File("config.yaml", read(text))), machine())
    assert not found.starts
    assert found.findings[0].where == "config.yaml"


ONLY_EVICTION = {"kind": "memory", "need": 100 << 20, "eviction": 100 << 20}
SIGNALS_LEFT = "nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree"
TOLD: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (TOPOLOGY.replace("restricted", "Restricted"), "value-case", {"value": "Restricted"}, {"value": "restricted"}),
    (
        TOPOLOGY.replace("restricted", "strict"), "value-unknown", {"value": "strict"},
        {"values": "none, best-effort, restricted, single-numa-node"},
    ),
    (
        STATIC + 'cpuManagerPolicyOptions: {align-by-socket: "true"}\n', "option-gate",
        {"stage": "Alpha", "option": "align-by-socket"}, {"stage": "Alpha", "option": "align-by-socket"},
    ),
    (STATIC + 'cpuManagerPolicyOptions: {full-pcpus-only: "yes"}\n', "option-value", {"option": "full-pcpus-only"}, {"option": "full-pcpus-only"}),
    ('reservedSystemCPUs: "14-99"\n', "cpus-not-online", {"cpus": "16-99", "online": "0-15"}, {"cpus": "14-15"}),
    ('reservedSystemCPUs: "0-"\n', "bad-cpus", {"value": "0-"}, {}),
    ("reservedSystemCPUs: 0\n", "unquoted", {"value": "0"}, {"value": "0"}),
    ("enforceNodeAllocatable: pods\n", "wrong-type", {"value": "pods", "type": "[]string"}, {"type": "[]string"}),
    ("cpuManagerReconcilePeriod: 10x\n", "bad-duration", {"value": "10x"}, {}),
    ("enforceNodeAllocatable: [pods, pods]\n", "twice", {"value": "pods"}, {"value": "pods"}),
    ("enforceNodeAllocatable: [none, pods]\n", "none-with-others", {}, {"value": "none"}),
    ("enforceNodeAllocatable: [system-reserved]\n", "needs-field", {"field": "systemReservedCgroup"}, {"field": "systemReservedCgroup"}),
    (
        "enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /k\n", "exclusive",
        {"first": "kube-reserved", "second": "kube-reserved-compressible"}, {"value": "kube-reserved-compressible"},
    ),
    ("reservedMemory: [{numaNode: 1, limits: {cpu: 1}}]\n", "memory-kind", {"numa": 1, "kind": "cpu"}, {}),
    ("reservedMemory: [{numaNode: 1, limits: {memory: 0}}]\n", "memory-zero", {"numa": 1, "kind": "memory"}, {}),
    (
        "reservedMemory: [{numaNode: 1, limits: {memory: 1}}, {numaNode: 1, limits: {memory: 2}}]\n", "memory-twice",
        {"numa": 1, "kind": "memory"}, {},
    ),
    ("memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 7, limits: {memory: 100Mi}}]\n", "memory-no-node", {"numa": "7"}, {"numa": "7"}),
    (
        "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n", "memory-sum",
        ONLY_EVICTION | {"have": 1 << 30}, ONLY_EVICTION | {"have": 1 << 30},
    ),
    ('kubeReserved: {gpu: "1"}\n', "not-reservable", {"kind": "gpu"}, {"kinds": "cpu, memory, ephemeral-storage, pid"}),
    ('systemReserved: {cpu: "-0.5"}\n', "number", {"value": "-0.5"}, {}),
    ('evictionHard: {memory.available: "150%"}\n', "bad-threshold", {"value": "150%"}, {}),
    ('qosReserved: {memory: "50"}\n', "bad-percentage", {"value": "50"}, {}),
    ("memoryThrottlingFactor: 0.8\nfeatureGates: {MemoryQoS: false}\n", "needs-gate", {"gate": "MemoryQoS"}, {"gate": "MemoryQoS"}),
    (
        "memoryThrottlingFactor: 1.5\n", "number", {"value": 1.5},
        {"demand": "must be greater than 0 and less than or equal to 1.0"},
    ),
    ("cpuManagrPolicy: static\n", "unknown-field", {"field": "cpuManagerPolicy"}, {"field": "cpuManagerPolicy"}),
    ("cpuManagerPolicy: none\ncpuManagerPolicy: none\n", "duplicate", {"line": 4}, {}),
    ("---\n" + HEAD + STATIC, "more-documents", {"number": 2}, {}),
    ('evictionHard: {memory.available: "1Gi"}\n', "eviction-defaults-lost", {"signals": SIGNALS_LEFT}, {"signals": SIGNALS_LEFT}),
    ("topologyManagerScope: pod\n", "without-policy", {"policy": "topologyManagerPolicy"}, {"policy": "topologyManagerPolicy"}),
    ('reservedSystemCPUs: "0-1"\n' + STATIC, "cpus-beat-amount", {"cpus": "0-1", "number": 2}, {}),
    ('reservedSystemCPUs: "0-1"\n', "cpus-only-counted", {"cpus": "0-1"}, {}),
    (TOPOLOGY, "only-devices", {"policy": "restricted"}, {}),
    (
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\n', "half-cores",
        {"cpus": "1"}, {"cpus": "1"},
    ),
    ("nodeLeaseDurationSeconds: -1\n", "number", {"value": -1}, {"demand": "must be greater than 0"}),
    ("systemCgroups: /system\n", "needs-field", {"field": "cgroupRoot"}, {"field": "cgroupRoot"}),
    ("imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 70\n", "number", {"value": 70}, {"demand": "must be less than 70"}),
    ("maxParallelImagePulls: 0\n", "number", {"value": 0}, {"demand": "must be a positive number"}),
    ("maxParallelImagePulls: 2\nserializeImagePulls: true\n", "serial-pulls", {}, {"field": "serializeImagePulls"}),
    ("port: 70000\n", "number", {"value": 70000}, {"demand": "must be between 1 and 65535, inclusive"}),
    ("readOnlyPort: -1\n", "number", {"value": -1}, {"demand": "must be between 0 and 65535, inclusive"}),
    ("oomScoreAdj: -2000\n", "number", {"value": -2000}, {"demand": "must be between -1000 and 1000, inclusive"}),
    ("featureGates: {CPUManager: true}\n", "gate-removed", {"gate": "CPUManager", "since": "1.33"}, {"gate": "CPUManager"}),
    ("featureGates: {CPUManagerPolicyOptions: true}\n", "gate-ending", {"gate": "CPUManagerPolicyOptions"}, {"gate": "CPUManagerPolicyOptions"}),
]  # fmt: skip
"""What a finding and its remedy tell beside their codes: the wrong value, the right one, amounts in bytes."""


@pytest.mark.parametrize(("text", "code", "reason", "remedy"), TOLD)
def test_a_finding_tells_what_is_wrong_and_what_to_write(
    text: str, code: str, reason: dict[str, Any], remedy: dict[str, Any]
) -> None:
    finding = the(checked(text), code)
    assert (finding.reason.values, finding.remedy.values) == (reason, remedy)


@pytest.mark.parametrize(
    "text",
    [
        'kubeReserved: {cpu: "500m"}\n',
        'systemReserved: {memory: "0"}\n',
        'evictionHard: {memory.available: "100%"}\n',
        'evictionHard: {memory.available: "0%"}\n',
        'evictionHard: {memory.available: "100.0%"}\n',
        'evictionHard: {memory.available: "5.5%"}\n',
    ],
)
def test_amounts_at_the_edge_are_taken(text: str) -> None:
    assert checked(text).starts


@pytest.mark.parametrize(
    ("text", "minor", "gate", "words"),
    [
        (
            TOPOLOGY + 'topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true", max-allowable-numa-nodes: "9"}\n',
            34,
            "TopologyManagerPolicyOptions",
            "topology manager policy options map[max-allowable-numa-nodes:9 prefer-closest-numa-nodes:true] require feature gates",
        ),
        (
            STATIC + 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n',
            32,
            "CPUManagerPolicyOptions",
            "CPU Manager policy options map[full-pcpus-only:true] require feature gates",
        ),
    ],
)  # fmt: skip
def test_options_whose_gate_is_off(text: str, minor: int, gate: str, words: str) -> None:
    (finding,) = checked(f"{text}featureGates: {{{gate}: false}}\n", minor=minor).told
    assert (finding.reason.code, finding.reason.values, finding.remedy.values) == (
        "needs-gate",
        {"gate": gate},
        {"gate": gate},
    )
    assert finding.words == f'{words} "{gate}" enabled'


def test_what_is_reserved_is_summed_up_and_a_numa_node_that_is_not_named_is_0() -> None:
    text = (
        "memoryManagerPolicy: Static\n"
        'kubeReserved: {cpu: "1", memory: 1Gi}\nsystemReserved: {cpu: 500m, memory: 2Gi}\nevictionHard: {memory.available: 50Mi}\n'
        "reservedMemory: [{limits: {memory: 2Gi}}, {numaNode: 1, limits: {memory: 1074Mi}}]\n"
    )
    found = checked(text)
    assert found.settings is not None
    assert found.settings.reservation == {"cpu": "1500m", "memory": "3122Mi"}
    assert [(each.numa, each.limits) for each in found.settings.reserved_memory] == [
        (0, {"memory": "2Gi"}),
        (1, {"memory": "1074Mi"}),
    ]
    assert found.starts


def test_more_numa_nodes_than_anybody_can_enumerate_are_a_warning() -> None:
    text = TOPOLOGY + 'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "17"}\n'
    finding = the(checked(text, on=machine(17, cores=1)), "too-many-nodes")
    assert (finding.severity, finding.field, finding.reason.values["nodes"]) == (
        "warning",
        "topologyManagerPolicy",
        17,
    )
    assert "17 NUMA nodes" in str(finding.reason.values["told"])
    over = the(checked(TOPOLOGY, on=machine(9, cores=1)), "too-many-nodes")
    assert (over.severity, over.reason.values["nodes"]) == ("fatal", 9)


def test_words_that_nobody_explained_are_handed_on_without_a_field() -> None:
    field, reason, remedy = running.explained("something new", settings(), machine(), {})
    assert (field, reason.code, remedy.code) == ("", "managers-refuse", "read-words")


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("cpuManagerPolicy: strict\n", "cpuManagerPolicy", "none, static"),
        ("memoryManagerPolicy: strict\n", "memoryManagerPolicy", "None, Static"),
        ("topologyManagerScope: node\n", "topologyManagerScope", "container, pod"),
    ],
)
def test_an_unknown_policy_is_told_those_that_there_are(text: str, field: str, values: str) -> None:
    (finding,) = checked(text).told
    assert (finding.field, finding.reason.values, finding.remedy.values) == (
        field,
        {"value": "strict" if "strict" in text else "node"},
        {"values": values},
    )


@pytest.mark.parametrize(
    "reserved",
    ["systemReserved: {memory: 1Gi}", "systemReserved: {memory: 512Mi}\nkubeReserved: {memory: 512Mi}"],
)
def test_whoever_forgets_the_threshold_is_told_so_whatever_reserves(reserved: str) -> None:
    text = f"memoryManagerPolicy: Static\n{reserved}\nreservedMemory: [{{numaNode: 0, limits: {{memory: 1Gi}}}}]\n"
    finding = the(checked(text), "memory-sum-eviction")
    assert finding.reason.values == {
        "kind": "memory",
        "have": 1 << 30,
        "need": (1 << 30) + (100 << 20),
        "eviction": 100 << 20,
    }
