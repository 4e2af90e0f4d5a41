"""File, drop-ins and flags put together: what is wrong with one of them, where, and what to do about it."""

from typing import Any

import pytest

from numacore.kubelet.checks.assembly import File, Sources
from numacore.kubelet.checks.check import Checked, check
from numacore.kubelet.checks.documents import read
from tests.numacore.kubelet.builders import machine
from tests.numacore.kubelet.checks.test_checks import HEAD, checked, the

NO_MAPPING = "couldn't get version/kind; json parse error"
NO_FILE: list[tuple[str, str, str, str, dict[str, Any]]] = [
    ("", "", "was empty", "empty-file", {}),
    ("# nothing", "kind", "Object 'Kind' is missing in", "no-kind", {}),
    ("- a", "", NO_MAPPING, "not-a-mapping", {}),
    ("0", "", NO_MAPPING, "not-a-mapping", {}),
    ("apiVersion: [1]\nkind: x", "kind", NO_MAPPING, "wrong-kind", {}),
    ("apiVersion: x\nkind: [1]", "kind", NO_MAPPING, "wrong-kind", {}),
    ("{}", "kind", "Object 'Kind' is missing in", "no-kind", {}),
]


def as_file(text: str) -> Checked:
    return check(Sources(minor=37, file=File("config.yaml", read(text))), machine())


@pytest.mark.parametrize(("text", "field", "words", "code", "values"), NO_FILE)
def test_what_is_no_configuration_is_refused_alike_as_file_and_as_drop_in(
    text: str, field: str, words: str, code: str, values: dict[str, Any]
) -> None:
    own = Sources(minor=37, file=File("config.yaml", read(HEAD)), drop_ins=(File("10.conf", read(text)),))
    for found, stage, where in (
        (as_file(text), "load", "config.yaml"),
        (check(own, machine()), "merge", "10.conf"),
    ):
        (finding,) = found.told
        assert (finding.stage, finding.field, finding.where) == (stage, field, where)
        assert (finding.words, finding.reason.code, finding.reason.values) == (words, code, values)
        assert finding.remedy.code == "give-kind"
        assert found.fields is None


@pytest.mark.parametrize(
    ("text", "file", "drop_in"),
    [
        (
            "apiVersion: v1\nkind: Pod\n",
            'no kind "Pod" is registered for version "v1" in scheme',
            "unknown apiVersion/kind: /v1, Kind=Pod",
        ),
        (
            "apiVersion: apps/v1\nkind: KubeletConfiguration\n",
            'no kind "KubeletConfiguration" is registered for version "apps/v1" in scheme',
            "unknown apiVersion/kind: apps/v1, Kind=KubeletConfiguration",
        ),
        ("kind: KubeletConfiguration\n", "Object 'apiVersion' is missing in", "unknown apiVersion/kind: /, Kind=KubeletConfiguration"),
    ],
)  # fmt: skip
def test_another_kind_is_refused_in_other_words_by_file_and_drop_in(
    text: str, file: str, drop_in: str
) -> None:
    own = Sources(minor=37, file=File("config.yaml", read(HEAD)), drop_ins=(File("10.conf", read(text)),))
    assert [each.words for each in as_file(text).told] == [file]
    assert [each.words for each in check(own, machine()).told] == [drop_in]


def test_another_kind_is_named_with_its_version() -> None:
    (finding,) = as_file("apiVersion: v1\nkind: Pod\n").told
    assert (finding.field, finding.reason.code, finding.remedy.code) == ("kind", "wrong-kind", "give-kind")
    assert finding.reason.values == {"version": "v1", "kind": "Pod"}
    (missing,) = as_file("kind: KubeletConfiguration\n").told
    assert (missing.field, missing.reason.code, missing.remedy.code) == (
        "apiVersion",
        "no-version",
        "give-kind",
    )


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [("a: [", "yaml-syntax", 1), ("{", "json-syntax", 1), ("a: b\n\tc: d\n", "yaml-syntax", 2)],
)
def test_broken_syntax_is_told_with_its_line_in_words_of_ours(text: str, code: str, line: int) -> None:
    (finding,) = as_file(text).told
    assert (finding.stage, finding.field, finding.where, finding.words) == ("load", "", "config.yaml", "")
    assert (finding.reason.code, finding.reason.values["line"]) == (code, line)
    assert finding.reason.values["problem"]
    assert (finding.remedy.code, finding.remedy.values) == ("mend-syntax", {"line": line})


FIELDS: list[tuple[str, str, dict[str, Any], str, dict[str, Any]]] = [
    ("cgroupsPerQos", "wrong-case", {"field": "cgroupsPerQOS"}, "rename-field", {"field": "cgroupsPerQOS"}),
    ("maxPodz", "unknown-field", {"field": "maxPods"}, "rename-field", {"field": "maxPods"}),
    ("foo", "unknown-field", {}, "remove-field", {}),
]


@pytest.mark.parametrize(("name", "code", "values", "remedy", "wanted"), FIELDS)
def test_an_unknown_field_of_the_file_is_told_with_what_it_probably_means(
    name: str, code: str, values: dict[str, Any], remedy: str, wanted: dict[str, Any]
) -> None:
    finding = the(checked(f"{name}: 1\n"), code)
    assert (finding.severity, finding.stage, finding.field, finding.where) == (
        "silent",
        "load",
        name,
        "config.yaml",
    )
    assert finding.words == f'unknown field "{name}"'
    assert finding.reason.values == values
    assert (finding.remedy.code, finding.remedy.values) == (remedy, wanted)


def test_unknown_fields_of_a_drop_in_pass_without_a_word() -> None:
    found = checked("", drop_ins={"10.conf": "foo: 1\nreservedMemory: [{numaNode: 0, limit: {}}]\n"})
    assert {
        (each.field, each.where, each.words) for each in found.findings if each.reason.code == "unknown-field"
    } == {
        ("foo", "10.conf", ""),
        ("reservedMemory[0].limit", "10.conf", ""),
    }


@pytest.mark.parametrize(
    ("text", "minor", "code", "since"),
    [
        ("memoryReservationPolicy: None\n", 35, "field-too-new", "1.36"),
        ("runOnce: false\n", 37, None, ""),
    ],
)
def test_a_field_of_another_version_says_which(text: str, minor: int, code: str | None, since: str) -> None:
    found = checked(text, minor=minor)
    assert found.starts
    if code is None:
        assert found.findings == ()
        return
    finding = the(found, code)
    assert (finding.reason.values, finding.remedy.code) == ({"since": since}, "remove-field")


def test_keys_that_stand_twice_are_told_with_path_and_line() -> None:
    text = "maxPods: 5\nmaxPods: 6\nkubeReserved: {cpu: 1m, cpu: 2m}\n"
    for found, severity, stage, where in (
        (checked(text), "silent", "load", "config.yaml"),
        (checked("", drop_ins={"10.conf": text}), "fatal", "merge", "10.conf"),
    ):
        twice = [each for each in found.findings if each.reason.code == "duplicate"]
        assert [(each.severity, each.stage, each.field, each.where) for each in twice] == [
            (severity, stage, "maxPods", where),
            (severity, stage, "kubeReserved.cpu", where),
        ]
        assert [each.words for each in twice] == [
            'line 4: key "maxPods" already set in map',
            'line 5: key "cpu" already set in map',
        ]
        assert {(each.remedy.code, tuple(each.remedy.values)) for each in twice} == {("remove-duplicate", ())}


def test_every_drop_in_is_read_before_the_kubelet_ends() -> None:
    twice = "maxPods: 5\nmaxPods: 6\n"
    found = checked("", drop_ins={"20.conf": twice, "10.conf": twice, "30.conf": "maxPods: 7\n"})
    assert [each.where for each in found.told] == ["10.conf", "20.conf"]
    assert found.fields is None


@pytest.mark.parametrize(
    ("text", "field", "code", "values", "remedy", "wanted"),
    [
        ("maxPods: many\n", "maxPods", "wrong-type", {"value": "many", "type": "int32"}, "give-type", {"type": "int32"}),
        ("maxPods: true\n", "maxPods", "wrong-type", {"value": "true", "type": "int32"}, "give-type", {"type": "int32"}),
        ("maxPods: 1.5\n", "maxPods", "wrong-type", {"value": "1.5", "type": "int32"}, "give-type", {"type": "int32"}),
        ("topologyManagerPolicy: false\n", "topologyManagerPolicy", "unquoted", {"value": "false"}, "quote", {"value": "false"}),
        ("kubeReserved: {cpu: 1}\n", "kubeReserved[cpu]", "unquoted", {"value": "1"}, "quote", {"value": "1"}),
        ("cpuCFSQuotaPeriod: 5x\n", "cpuCFSQuotaPeriod", "bad-duration", {"value": "5x"}, "give-duration", {}),
        (
            "reservedMemory: [{numaNode: 0, limits: {memory: much}}]\n", "reservedMemory[0].limits[memory]", "bad-quantity",
            {"value": "much"}, "give-quantity", {},
        ),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_told_with_what_it_should_be(
    text: str, field: str, code: str, values: dict[str, Any], remedy: str, wanted: dict[str, Any]
) -> None:
    (finding,) = checked(text).told
    assert (finding.stage, finding.field, finding.where) == ("load", field, "config.yaml")
    assert (finding.reason.code, finding.reason.values) == (code, values)
    assert (finding.remedy.code, finding.remedy.values) == (remedy, wanted)
    assert finding.words.startswith("failed to decode: ")
    (merged,) = checked("", drop_ins={"10.conf": text}).told
    assert (merged.stage, merged.reason.code) == ("merge", code)
    assert merged.words.startswith("failed to unmarshal merged JSON into kubelet configuration: ")


BEFORE = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
GATES: list[tuple[str, str, str, dict[str, str], str]] = [
    ("Foo: true", "unrecognized feature gate: Foo", "gate-unknown", {"gate": "Foo"}, "remove-gate"),
    ("CPUManager: true", "unrecognized feature gate: CPUManager", "gate-removed", {"gate": "CPUManager", "since": "1.33"}, "remove-gate"),
    (
        "CPUManagerPolicyOptions: false", "cannot set feature gate CPUManagerPolicyOptions to false, feature is locked to true", "gate-locked",
        {"gate": "CPUManagerPolicyOptions"}, "remove-gate",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("gate", "words", "code", "values", "remedy"), GATES)
def test_a_gate_that_cannot_be_set_is_told_wherever_it_stands(
    gate: str, words: str, code: str, values: dict[str, str], remedy: str
) -> None:
    name = gate.partition(":")[0]
    text = f"featureGates: {{{gate}}}\n"
    for found, stage, severity, before, where in (
        (checked(text), "load", "crash", BEFORE, "config.yaml"),
        (checked("", drop_ins={"10.conf": text}), "merge", "crash", BEFORE, ""),
        (checked("", f"--feature-gates={gate.replace(': ', '=')}"), "gates", "fatal", "", ""),
    ):
        (finding,) = found.told
        assert (finding.stage, finding.severity, finding.where) == (stage, severity, where)
        assert (finding.field, finding.words) == (f"featureGates.{name}", before + words)
        assert (finding.reason.code, finding.reason.values) == (code, values)
        assert (finding.remedy.code, finding.remedy.values) == (remedy, {"gate": name})


@pytest.mark.parametrize(("minor", "severity"), [(31, "fatal"), (32, "crash")])
def test_a_gate_in_the_file_is_a_panic_since_1_32(minor: int, severity: str) -> None:
    (finding,) = checked(
        "featureGates: {CPUManagerPolicyOptions: true, PodLevelResourceManagers: true}\n", minor=minor
    ).told
    assert (finding.severity, finding.reason.code, finding.reason.values["since"]) == (
        severity,
        "gate-too-new",
        "1.36",
    )


def test_gates_of_file_drop_in_and_flag_are_joined() -> None:
    found = checked(
        "featureGates: {MemoryQoS: false, AllAlpha: false}\n",
        "--feature-gates=AllBeta=false",
        drop_ins={"10.conf": "featureGates: {MemoryQoS: true}\n"},
    )
    assert found.fields is not None
    assert found.fields["featureGates"] == {"MemoryQoS": True, "AllAlpha": False, "AllBeta": False}


def test_a_list_in_a_drop_in_takes_the_place_of_the_files_and_says_so() -> None:
    def replaced(file: str, other: str) -> list[tuple[str, str, str]]:
        found = checked(file, drop_ins={"10.conf": other})
        return [
            (each.field, each.where, each.remedy.code)
            for each in found.findings
            if each.reason.code == "list-replaced"
        ]

    pods, none = "enforceNodeAllocatable: [pods]\n", "enforceNodeAllocatable: [none]\n"
    assert replaced(pods, none) == [("enforceNodeAllocatable", "10.conf", "whole-list")]
    assert replaced(pods, pods) == replaced("", none) == replaced(pods, "enforceNodeAllocatable: []\n") == []


def test_null_in_a_drop_in_takes_away_and_nested_maps_join() -> None:
    found = checked(
        "kubeReserved: {cpu: 1m, memory: 1Gi}\nmaxPods: 5\nmemorySwap: {swapBehavior: NoSwap}\n",
        drop_ins={
            "10.conf": "kubeReserved: {cpu: null}\nmaxPods: null\nmemorySwap: {swapBehavior: LimitedSwap}\n"
        },
    )
    assert found.fields is not None
    assert found.fields["kubeReserved"] == {"memory": "1Gi"}
    assert "maxPods" not in found.fields
    assert found.fields["memorySwap"] == {"swapBehavior": "LimitedSwap"}


def test_default_thresholds_are_merged_in_the_file_alone() -> None:
    merging = "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n"
    in_file, in_drop_in = checked(merging), checked("", drop_ins={"10.conf": merging})
    assert in_file.findings == ()
    assert in_file.fields is not None
    assert in_file.fields["evictionHard"] == {
        "memory.available": "1Gi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%",
    }  # fmt: skip
    told = the(in_drop_in, "merge-in-drop-in")
    assert (told.severity, told.field, told.where, told.remedy.code) == (
        "silent",
        "mergeDefaultEvictionSettings",
        "10.conf",
        "merge-in-file",
    )


def test_a_file_that_is_no_conf_is_passed_over() -> None:
    told = the(checked("", drop_ins={"10.yaml": "maxPods: 5\n"}), "not-conf")
    assert (told.severity, told.stage, told.where, told.words, told.remedy.code) == (
        "silent",
        "merge",
        "10.yaml",
        "",
        "rename-conf",
    )


def test_the_folder_of_drop_ins_is_told_by_version() -> None:
    (refused,) = checked("", drop_ins={}, minor=27).told
    assert (refused.stage, refused.field, refused.words) == (
        "flags",
        "--config-dir",
        "unknown flag: --config-dir",
    )
    assert refused.reason.values == refused.remedy.values == {"flag": "config-dir"}
    assert refused.remedy.code == "remove-flag"
    alpha = checked("", drop_ins={"10.conf": "maxPods: 5\n"}, minor=28)
    warning = the(alpha, "drop-ins-alpha")
    assert (warning.severity, warning.field, warning.words, warning.remedy.code) == (
        "warning",
        "--config-dir",
        "",
        "set-drop-in-variable",
    )
    assert alpha.fields is not None
    assert alpha.fields["maxPods"] == 5


def test_a_flag_that_beats_the_file_names_both() -> None:
    found = checked("topologyManagerScope: container\n", "--topology-manager-scope=pod", "--max-pods=5")
    told = the(found, "flag-beats-file")
    assert (told.severity, told.stage, told.field, told.where) == (
        "silent",
        "flags",
        "topologyManagerScope",
        "config.yaml",
    )
    assert (told.remedy.code, told.remedy.values) == ("remove-one", {"flag": "--topology-manager-scope"})
    assert the(found, "without-policy").where == "--topology-manager-scope"
    same = checked(
        "maxPods: 5\nfeatureGates: {AllAlpha: true, AllBeta: true}\n",
        "--max-pods=5",
        "--feature-gates=AllAlpha=false",
    )
    assert "flag-beats-file" not in {each.reason.code for each in same.findings}


@pytest.mark.parametrize(
    ("flag", "code", "remedy"),
    [("--nonsense", "unknown-flag", "remove-flag"), ("--max-pods=x", "bad-flag", "mend-flag")],
)
def test_a_flag_at_fault_is_named(flag: str, code: str, remedy: str) -> None:
    (finding,) = checked("", flag).told
    name = flag[2:].partition("=")[0]
    assert (finding.reason.code, finding.reason.values) == (code, {"flag": name})
    assert (finding.remedy.code, finding.remedy.values) == (remedy, {"flag": name})
