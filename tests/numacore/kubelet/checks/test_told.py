"""What stands beside the kubelet's words: the file at fault, the value, the remedy, how sure we are; and the bounds of every rule."""

from typing import Any

import msgspec
import pytest

from numacore.kubelet import node
from numacore.kubelet.checks import gates, quantities
from numacore.kubelet.checks.assembly import File, Sources
from numacore.kubelet.checks.check import Running, check
from numacore.kubelet.checks.documents import read
from numacore.kubelet.device_manager import Device
from numacore.kubelet.machine import Machine
from numacore.kubelet.node import StateFiles
from tests.numacore.kubelet.builders import container, machine, pod, settings
from tests.numacore.kubelet.checks.test_checks import HEAD, STATIC, TOPOLOGY, checked, the

# Rules: what a finding tells beside its words

RULES: list[tuple[str, str, dict[str, Any], str, dict[str, Any]]] = [
    (
        'evictionHard: {memory.free: "1Gi"}\n', "unknown-signal", {"signal": "memory.free"}, "choose",
        {"values": "memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, containerfs.available, "
                   "containerfs.inodesFree, allocatableMemory.available, pid.available"},
    ),
    ("userNamespaces: {idsPerPod: 1024}\n", "number", {"value": 1024}, "number-within", {"demand": "must not be less than 65536"}),
    ("userNamespaces: {idsPerPod: 65537}\n", "number", {"value": 65537}, "number-within", {"demand": "must be a multiple of 65536"}),
    (
        "userNamespaces: {idsPerPod: 4295032832}\n", "number", {"value": 4295032832}, "number-within",
        {"demand": "must not be more than 4294967295"},
    ),
    ("containerLogMaxFiles: 1\n", "number", {"value": 1}, "number-within", {"demand": "must be greater than 1"}),
    ("containerLogMaxWorkers: 0\n", "number", {"value": 0}, "number-within", {"demand": "must be greater than or equal to 1"}),
    (
        "containerLogMonitorInterval: 2s\n", "number", {"value": "2s"}, "number-within",
        {"demand": "must be a positive time duration greater than or equal to 3s"},
    ),
    (
        "crashLoopBackOff: {maxContainerRestartPeriod: 301s}\n", "number", {"value": "301s"}, "number-within",
        {"demand": "must be set between 1s and 300s"},
    ),
    ("hairpinMode: veth\n", "value-unknown", {"value": "veth"}, "choose", {"values": "none, hairpin-veth, promiscuous-bridge"}),
    ("memoryReservationPolicy: Tiered\n", "value-unknown", {"value": "Tiered"}, "choose", {"values": "None, TieredReservation"}),
    (
        "memoryReservationPolicy: TieredReservation\nfeatureGates: {MemoryQoS: false}\n", "needs-gate", {"gate": "MemoryQoS"}, "set-gate",
        {"gate": "MemoryQoS"},
    ),
    ("cgroupsPerQOS: false\n", "needs-field", {"field": "cgroupsPerQOS"}, "set-field", {"field": "cgroupsPerQOS"}),
    (
        "enforceNodeAllocatable: [system-reserved, system-reserved-compressible]\nsystemReservedCgroup: /s\n", "exclusive",
        {"first": "system-reserved", "second": "system-reserved-compressible"}, "remove-value", {"value": "system-reserved-compressible"},
    ),
    (
        'reservedSystemCPUs: "0"\nkubeReservedCgroup: /k\n', "cpus-with-cgroup", {}, "remove-one-field",
        {"first": "reservedSystemCPUs", "second": "systemReservedCgroup, kubeReservedCgroup"},
    ),
    ("imageGCLowThresholdPercent: 85\n", "number", {"value": 85}, "number-within", {"demand": "must be less than 85"}),
    ("imageGCHighThresholdPercent: 80\n", "number", {"value": 80}, "number-within", {"demand": "must be less than 80"}),
    (
        "memoryManagerPolicy: Static\n", "memory-sum", {"kind": "memory", "have": 0, "need": 100 << 20, "eviction": 100 << 20},
        "memory-sum", {"kind": "memory", "have": 0, "need": 100 << 20, "eviction": 100 << 20},
    ),
    (
        "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 100Mi, hugepages-2Mi: 4Mi}}]\n", "memory-sum",
        {"kind": "hugepages-2Mi", "have": 4 << 20, "need": 0, "eviction": 0},
        "memory-sum", {"kind": "hugepages-2Mi", "have": 4 << 20, "need": 0, "eviction": 0},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "values", "remedy", "wanted"), RULES)
def test_a_broken_rule_tells_the_value_and_what_would_be_taken(
    text: str, code: str, values: dict[str, Any], remedy: str, wanted: dict[str, Any]
) -> None:
    finding = the(checked(text), code)
    assert (finding.severity, finding.reason.values) == ("fatal", values)
    assert (finding.remedy.code, finding.remedy.values) == (remedy, wanted)


def test_a_default_that_a_gate_in_a_drop_in_came_too_late_for_names_the_gate() -> None:
    gate = "featureGates: {KubeletCrashLoopBackOffMax: false}\n"
    found = the(checked("", drop_ins={"10.conf": gate}), "gate-off-late")
    told = {"gate": "KubeletCrashLoopBackOffMax"}
    assert (found.reason.values, found.remedy.code, found.remedy.values) == (told, "gate-in-file", told)


TAKEN = [
    'reservedSystemCPUs: "0"\nkubeReserved: {cpu: nonsense}\n',
    'evictionHard: {memory.available: "0.0%"}\n',
    'evictionHard: {memory.available: "0.5%"}\n',
    'evictionHard: {memory.available: "1"}\n',
    'qosReserved: {memory: "0%"}\n',
    'qosReserved: {memory: "100%"}\n',
    "reservedMemory: [{numaNode: 0}]\n",
    "userNamespaces: {}\n",
    "userNamespaces: {idsPerPod: 65536}\n",
    "containerLogMaxFiles: 2\n",
    "containerLogMaxWorkers: 1\n",
    "containerLogMonitorInterval: 3s\n",
    "crashLoopBackOff: {maxContainerRestartPeriod: 1s}\n",
    "crashLoopBackOff: {maxContainerRestartPeriod: 300s}\n",
    "crashLoopBackOff: {}\n",
    "hairpinMode: hairpin-veth\n",
    "imageGCLowThresholdPercent: 84\n",
    "imageGCHighThresholdPercent: 81\n",
    "memorySwap: {}\n",
    "memoryThrottlingFactor: 1\n",
    "memoryThrottlingFactor: 0.9\nfeatureGates: {MemoryQoS: false}\n",
    "nodeLeaseDurationSeconds: 1\n",
    "port: 0\n",
    "port: 65535\n",
    "readOnlyPort: 1\n",
]


@pytest.mark.parametrize("text", TAKEN)
def test_values_at_their_bounds_are_taken(text: str) -> None:
    assert checked(text).told == ()


def test_rules_that_came_later_are_not_asked_of_an_older_kubelet() -> None:
    wrong = {
        "userNamespaces: {idsPerPod: 65537}\n": 33,
        "memoryReservationPolicy: Tiered\n": 36,
        "memoryThrottlingFactor: 0.8\nfeatureGates: {MemoryQoS: false}\n": 37,
    }
    for text, since in wrong.items():
        assert [checked(text, minor=minor).starts for minor in (since - 1, since)] == [True, False], text


@pytest.mark.parametrize(
    ("value", "minor", "choices", "words"),
    [
        ("kube-reserved-compressible", 31, "pods, system-reserved, kube-reserved, none", '"kube-reserved" or "none"'),
        ("podz", 32, "pods, system-reserved, system-reserved-compressible, kube-reserved, kube-reserved-compressible, none",
         '"kube-reserved-compressible" or "none"'),
    ],
)  # fmt: skip
def test_what_may_be_enforced_depends_on_the_version(
    value: str, minor: int, choices: str, words: str
) -> None:
    finding = the(checked(f"enforceNodeAllocatable: [{value}]\n", minor=minor), "value-unknown")
    assert finding.remedy.values == {"values": choices}
    assert finding.words.endswith(words)


def test_a_cgroup_that_is_missing_is_asked_for_in_the_words_of_the_version() -> None:
    text = "enforceNodeAllocatable: [system-reserved]\n"
    for minor, included in (
        (31, '"system-reserved" included'),
        (32, '"system-reserved" or "system-reserved-compressible" included'),
    ):
        words = the(checked(text, minor=minor), "needs-field").words
        assert words.startswith(
            f"invalid configuration: systemReservedCgroup (--system-reserved-cgroup) must be specified when {included}"
        )


def test_every_wrong_enforcement_of_a_list_is_told() -> None:
    found = checked("enforceNodeAllocatable: [pods, pods, none, x]\n")
    assert [each.reason.code for each in found.told] == ["twice", "none-with-others", "value-unknown"]


def test_both_sums_that_are_wrong_are_given_for_the_kubelet_names_either() -> None:
    text = "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 2Gi, hugepages-2Mi: 4Mi}}]\n"
    (finding,) = checked(text).told
    assert '"hugepages-2Mi"' in finding.words
    (other,) = finding.alternatives
    assert other.startswith('the total amount "2Gi" of type "memory"')


# Where, when, how sure


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ('kubeReserved: {gpu: "1"}\n', "not-reservable", "kubeReserved.gpu"),
        ("reservedMemory: [{limits: {cpu: 1}}]\n", "memory-kind", "reservedMemory[0].limits[cpu]"),
        ("topologyManagerScope: pod\n", "without-policy", "topologyManagerScope"),
        ('reservedMemory: [{limits: {memory: "1"}}]\n', "numa-missing", "reservedMemory[0].numaNode"),
        ('reservedSystemCPUs: "0"\nsystemReserved: {cpu: "1"}\n', "cpus-beat-amount", "systemReserved.cpu"),
    ],
)
def test_a_finding_names_the_file_that_set_its_field(text: str, code: str, field: str) -> None:
    finding = the(checked("maxPods: 20\n", drop_ins={"10.conf": text}), code)
    assert (finding.field, finding.where) == (field, "10.conf")
    assert the(checked(text), code).where == "config.yaml"


def test_a_finding_on_a_field_that_nobody_set_names_no_file() -> None:
    assert the(checked("imageGCHighThresholdPercent: 80\n"), "number").where == ""
    assert the(checked(None), "no-eviction").where == ""


def test_a_machine_whose_cpus_nobody_finds_is_told_in_the_kubelets_words() -> None:
    for minor, proven in ((37, True), (33, False)):
        (finding,) = checked('reservedSystemCPUs: "0"\n', on=Machine(()), minor=minor).told
        assert (finding.severity, finding.stage, finding.field) == ("fatal", "run", "reservedSystemCPUs")
        assert finding.words == "unable to discover CPU topology info: could not detect number of cpus"
        assert (finding.reason.code, finding.remedy.code) == ("no-topology", "look-at-machine")
        assert finding.proven is proven


# Restarts

RESTART = (
    "cpuManagerPolicy: static\nmemoryManagerPolicy: Static\ntopologyManagerPolicy: single-numa-node\n"
    'kubeReserved: {cpu: "1", memory: 924Mi}\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n'
)
FIRST, SECOND = machine().nodes
NO_PAGES = Machine((FIRST, msgspec.structs.replace(SECOND, hugepages={})))


def test_pods_that_a_restart_loses_are_named_besides_what_else_is_found() -> None:
    wide = pod("wide", container(cpu="10"))
    for minor, proven in ((37, True), (33, False)):
        found = checked(
            "topologyManagerscope: pod\n" + RESTART, found=Running(StateFiles(), (wide,)), minor=minor
        )
        lost = the(found, "pod-lost")
        assert (lost.severity, lost.stage, lost.field) == ("silent", "state", "")
        assert lost.reason.values == {"uid": "wide", "reason": "TopologyAffinityError"}
        assert lost.words == "Resources cannot be allocated with Topology locality"
        assert (lost.remedy.code, lost.proven) == ("drain-first", proven)
        assert the(found, "wrong-case").severity == "silent"
        assert found.starts


def test_devices_that_have_registered_again_decide_too() -> None:
    """One device for two pods; while no plugin has registered, nobody asks for devices."""
    two = tuple(pod(uid, container(gpu="1")) for uid in ("first", "second"))
    before = node.start(settings(), machine())
    registered = node.report_devices(before, {"example.com/gpu": (Device("g0", (0,)),)}).state
    for devices, lost in ((registered, ["second"]), (None, [])):
        survival = checked(RESTART, found=Running(StateFiles(), two, devices)).survival
        assert survival is not None
        assert [each.pod.uid for each in survival.lost] == lost


def test_a_kubelet_that_dies_of_a_running_pod_is_a_crash() -> None:
    pages = pod("pages", container(hugepages_2Mi="2Mi"))
    found = checked(RESTART, found=Running(StateFiles(), (pages,)), on=NO_PAGES)
    finding = the(found, "state-refused")
    assert (finding.severity, finding.stage, finding.remedy.code) == ("crash", "state", "remove-state")
    assert "nil pointer" in finding.words


def test_what_differs_from_a_state_file_is_counted() -> None:
    """4 KiB more of memory: the total, what is allocatable and what is free of the first NUMA node."""
    grown = Machine((msgspec.structs.replace(FIRST, memory=FIRST.memory + 4096), SECOND))
    for minor, proven in ((37, True), (33, False)):
        files = node.state_files(node.start(settings("single-numa-node", minor=minor), machine()))
        finding = the(checked(RESTART, found=Running(files), on=grown, minor=minor), "state-refused")
        assert (finding.severity, finding.field, finding.proven) == ("fatal", "", proven)
        assert finding.reason.values == {"differences": 3}
        assert finding.words == "[memorymanager] the expected machine state is different from the real one"


def test_without_a_machine_nothing_is_said_of_state_files() -> None:
    sources = Sources(minor=37, file=File("config.yaml", read(HEAD + STATIC)))
    assert check(sources, None, Running(StateFiles())).survival is None


# Traps

TRAPS: list[tuple[str, str, str, dict[str, Any]]] = [
    ('evictionHard: {memory.available: "1Gi"}\n', "eviction-defaults-lost", "give-evictions", {
        "signals": "nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree"}),
    ('topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}\n', "without-policy", "set-policy", {"policy": "topologyManagerPolicy"}),
    ("reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n", "without-policy", "set-policy", {"policy": "memoryManagerPolicy"}),
    ('reservedMemory: [{limits: {memory: "1"}}]\n', "numa-missing", "give-numa", {}),
    ('reservedSystemCPUs: "0-1"\nsystemReserved: {cpu: "1"}\n', "cpus-beat-amount", "remove-field", {}),
    ('reservedSystemCPUs: "0-1"\n', "cpus-only-counted", "set-static", {}),
    (TOPOLOGY, "only-devices", "set-static", {}),
    (STATIC + TOPOLOGY + 'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "9"}\n', "many-nodes", "watch-admission", {}),
    (
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0,3"\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\n', "half-cores",
        "reserve-whole-cores", {"cpus": "1-2"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "remedy", "values"), TRAPS)
def test_a_trap_says_what_to_do_in_words_of_ours_alone(
    text: str, code: str, remedy: str, values: dict[str, Any]
) -> None:
    finding = the(checked(text), code)
    assert (finding.stage, finding.words, finding.proven) == ("managers", "", True)
    assert (finding.remedy.code, finding.remedy.values) == (remedy, values)
    assert not the(checked(text, minor=33), code).proven


CLEAN = {
    "half-cores": (
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0-1"\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\n',
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {full-pcpus-only: "false"}\n',
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n',
    ),
    "only-devices": (
        TOPOLOGY + STATIC,
        TOPOLOGY + "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]\n",
    ),
    "many-nodes": (
        STATIC + TOPOLOGY + 'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "8"}\n',
        'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "16"}\n',
    ),
    "gate-ending": ("featureGates: {CPUManagerPolicyAlphaOptions: true, AllAlpha: false}\n",),
    "gate-not-documented": ("featureGates: {AllAlpha: false}\n",),
}


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in CLEAN.items() for text in texts])
def test_a_trap_is_not_seen_where_there_is_none(code: str, text: str) -> None:
    found = checked(text)
    assert found.starts
    assert code not in {each.reason.code for each in found.findings}


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True"])
def test_an_option_counts_as_on_in_every_spelling_that_the_kubelet_takes(value: str) -> None:
    text = f'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {{full-pcpus-only: "{value}"}}\n'
    assert the(checked(text), "half-cores").reason.values == {"cpus": "1"}


def test_half_cores_are_asked_of_a_known_machine_only() -> None:
    text = 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\n'
    found = check(Sources(minor=37, file=File("config.yaml", read(HEAD + text))))
    assert [each.reason.code for each in found.findings] == []


@pytest.mark.parametrize(
    ("text", "flags", "code", "severity"),
    [
        (None, (), "no-eviction", "warning"),
        (None, ("--eviction-hard=memory.available<1Gi",), "eviction-defaults-lost", "silent"),
        ("evictionHard: {}\n", (), "eviction-defaults-lost", "silent"),
    ],
)
def test_thresholds_that_were_never_set_differ_from_those_that_a_map_took_away(
    text: str | None, flags: tuple[str, ...], code: str, severity: str
) -> None:
    finding = the(checked(text, *flags), code)
    assert (finding.severity, finding.field, finding.words) == (severity, "evictionHard", "")
    assert (finding.remedy.code, finding.remedy.values) == ("give-evictions", finding.reason.values)


@pytest.mark.parametrize(
    ("gate", "minor", "words"),
    [
        ("CPUManagerPolicyOptions: true", 36, "Warning: setting GA feature gate. It will be removed in a future release."),
        ("CPUManagerPolicyOptions: true", 35, "Setting GA feature gate CPUManagerPolicyOptions=true. It will be removed in a future release."),
        ("AllowDNSOnlyNodeCSR: false", 35, "Setting deprecated feature gate AllowDNSOnlyNodeCSR=false. It will be removed in a future release."),
    ],
)  # fmt: skip
def test_a_gate_that_ends_is_told_in_the_words_of_the_version(gate: str, minor: int, words: str) -> None:
    finding = the(checked(f"featureGates: {{{gate}}}\n", minor=minor), "gate-ending")
    assert (finding.stage, finding.words, finding.remedy.code) == ("gates", words, "remove-gate")


def test_gates_that_end_are_told_by_name() -> None:
    found = checked("featureGates: {CPUManagerPolicyOptions: true, AllowDNSOnlyNodeCSR: false}\n")
    assert [each.field for each in found.findings] == [
        "featureGates.AllowDNSOnlyNodeCSR",
        "featureGates.CPUManagerPolicyOptions",
    ]


def test_of_a_gate_that_no_table_knows_an_old_kubelet_has_to_be_asked() -> None:
    finding = the(checked("featureGates: {FooBar: true}\n", minor=30), "gate-not-documented")
    assert (finding.severity, finding.stage, finding.field) == ("warning", "gates", "featureGates.FooBar")
    assert (finding.words, finding.reason.values) == ("", {"gate": "FooBar"})
    assert finding.remedy.code == "ask-kubelet"


# What the managers get


def test_a_reserved_amount_of_cpu_is_rounded_to_the_nearest_thousandth_since_1_37() -> None:
    for size, as_written, rounded in (
        ("1500u", "1500u", "2m"),
        ("1499u", "1499u", "1m"),
        ("1499100n", "1499100n", "2m"),
        ("1498900n", "1498900n", "1m"),
        ("1.0004", "1000400u", "1"),
    ):
        for minor, expected in ((36, as_written), (37, rounded)):
            found = checked(f'kubeReserved: {{cpu: "{size}"}}\n', minor=minor).settings
            assert found is not None
            assert found.reservation["cpu"] == expected, (size, minor)


def test_a_share_of_memory_is_taken_of_the_machine_however_many_signs_follow() -> None:
    """A tenth of 16 GiB in single precision, as the kubelet keeps it."""
    for text in ("10%", "10%%"):
        found = checked(f'evictionHard: {{memory.available: "{text}"}}\n').settings
        assert found is not None
        assert found.reservation == {"memory": "1717986944"}


def test_all_gates_of_a_stage_reach_the_managers() -> None:
    option = STATIC + 'cpuManagerPolicyOptions: {align-by-socket: "true"}\n'
    assert checked(option + "featureGates: {AllAlpha: true, AllBeta: true}\n").starts
    assert not checked(
        option + "featureGates: {AllAlpha: true, AllBeta: true, CPUManagerPolicyAlphaOptions: false}\n"
    ).starts
    beta = STATIC + 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n'
    assert checked(beta, minor=32).starts
    assert not checked(beta + "featureGates: {AllBeta: false}\n", minor=32).starts


@pytest.mark.parametrize(("text", "cpus"), [("+1", "1"), ("01,1-+3", "1-3"), ("0-0", "0")])
def test_a_list_of_cpus_is_read_as_the_kubelet_reads_it(text: str, cpus: str) -> None:
    """`cpuset.Parse` takes whatever strconv.Atoi does."""
    found = checked(f'cpuManagerPolicy: static\nreservedSystemCPUs: "{text}"\n')
    assert found.settings is not None
    assert found.settings.reserved_system_cpus == cpus


@pytest.mark.parametrize("text", ["99999999999", "0-99999999999", "1,9223372036854775807"])
def test_cpus_that_no_machine_has_are_told_not_to_be_online(text: str) -> None:
    finding = the(checked(f'reservedSystemCPUs: "{text}"\n'), "cpus-not-online")
    assert finding.words == f"reserved-cpus: {text} is not a subset of online-cpus: 0-15"


WORDS = [
    ('reservedSystemCPUs: "5-3"\n', 'invalid range "5-3" (5 > 3)'),
    ('reservedSystemCPUs: "1-2-3"\n', 'strconv.Atoi: parsing "2-3": invalid syntax'),
    ('reservedSystemCPUs: "0,"\n', 'strconv.Atoi: parsing "": invalid syntax'),
    (f'reservedSystemCPUs: "{1 << 63}"\n', 'strconv.Atoi: parsing "9223372036854775808": value out of range'),
    ('reservedSystemCPUs: "\N{ARABIC-INDIC DIGIT THREE}"\n', 'strconv.Atoi: parsing "\N{ARABIC-INDIC DIGIT THREE}": invalid syntax'),
    ('kubeReserved: {memory: ""}\n', "quantities must match the regular expression"),
    ('kubeReserved: {memory: "1e"}\n', "unable to parse quantity's suffix"),
    ('kubeReserved: {memory: ".Mi"}\n', "unable to parse numeric part of quantity"),
    ('kubeReserved: {memory: "Mi"}\n', "unable to parse numeric part of quantity"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_what_cannot_be_read_is_told_in_gos_words(text: str, words: str) -> None:
    (finding,) = checked(text).told
    assert words in finding.words


DURATIONS = {
    "": 'invalid duration ""', "+": 'invalid duration "+"', "x": 'invalid duration "x"', "1": 'missing unit in duration "1"',
    "-1.5": 'missing unit in duration "-1.5"', "1d": 'unknown unit "d" in duration "1d"', "1s1": 'missing unit in duration "1s1"',
    "+1m1w": 'unknown unit "w" in duration "+1m1w"', "1ns1us1µs1μs1ms1s1m1h1y": 'unknown unit "y" in duration "1ns1us1µs1μs1ms1s1m1h1y"',
    ".s": 'invalid duration ".s"', "0": None, "+0": None, "-0": None, ".5s": None, "1.s": None, "-1h1m": None,
}  # fmt: skip
SECONDS = {
    "3s": 3, "1.5m": 90, "1h1m1s": 3661, "500ms": 0.5, "2us": 2e-6, "2µs": 2e-6, "2μs": 2e-6, "7ns": 7e-9, "-3s": -3, "+.5s": 0.5, "2.s": 2, "0": 0,
}  # fmt: skip


def test_durations_are_refused_in_gos_words() -> None:
    for text, words in DURATIONS.items():
        assert quantities.duration_fault(text) == (words and f"time: {words}"), text


def test_durations_are_counted_in_seconds() -> None:
    for text, value in SECONDS.items():
        assert quantities.seconds(text) == pytest.approx(value), text


# Feature gates by version

KNOWN: list[tuple[str, int, str | None]] = [
    ("CPUManagerPolicyOptions", 21, None),
    ("CPUManagerPolicyOptions", 22, "ALPHA"),
    ("CPUManagerPolicyOptions", 23, "BETA"),
    ("CPUManagerPolicyOptions", 33, "GA"),
    ("PodLevelResourceManagers", 35, None),
    ("PodLevelResourceManagers", 36, "ALPHA"),
    ("APIServerTracing", 36, "GA"),
    ("APIServerTracing", 37, None),
    ("Foo", 37, None),
]


@pytest.mark.parametrize(("name", "minor", "stage"), KNOWN)
def test_a_gate_is_known_from_its_first_version_until_it_is_dropped(
    name: str, minor: int, stage: str | None
) -> None:
    found = gates.find(name, minor)
    assert (found.stage if found else None) == stage
    assert (name in gates.names(minor)) is (stage is not None)


def test_when_a_gate_came_and_went() -> None:
    assert {name: gates.known_since(name) for name in ("CPUManagerPolicyOptions", "PodLevelResourceManagers", "AllAlpha", "Foo")} == {
        "CPUManagerPolicyOptions": 22, "PodLevelResourceManagers": 36, "AllAlpha": 1, "Foo": 0,
    }  # fmt: skip
    went = [
        ("APIServerTracing", 36),
        ("APIServerTracing", 37),
        ("CPUManager", 32),
        ("CPUManager", 33),
        ("Foo", 37),
    ]
    assert [gates.removed(*each) for each in went] == [0, 37, 0, 33, 0]


def test_what_was_asked_for_beats_all_gates_of_a_stage() -> None:
    force = gates.in_force({"AllBeta": False, "PodLevelResourceManagers": True}, 37)
    assert force["PodLevelResourceManagers"] is True
    assert force["MemoryQoS"] is False
    assert not {"AllBeta", "CPUManagerPolicyAlphaOptions", "CPUManagerPolicyOptions"} & force.keys()
    assert [gates.enabled(name, {"AllBeta": False}, 37) for name in ("MemoryQoS", "CPUManagerPolicyOptions", "Foo")] == [
        False, True, False,
    ]  # fmt: skip
