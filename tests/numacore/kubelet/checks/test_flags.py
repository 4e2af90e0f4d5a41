"""The command line: what flags set, what they add to, and what stops the kubelet before it reads its file."""

from typing import Any

import pytest

from tests.numacore.kubelet.checks.test_checks import checked

SET: list[tuple[tuple[str, ...], str, Any]] = [
    (("--max-pods", "20"), "maxPods", 20),
    (("--max_pods=+20",), "maxPods", 20),
    (("--max-pods=2147483647",), "maxPods", 2147483647),
    (("--max-pods=5", "--max-pods=6"), "maxPods", 6),
    (("--cpu-manager-policy=none", "-v", "4", "--max-pods=7"), "maxPods", 7),
    (("-v4", "--max-pods=7", "--"), "maxPods", 7),
    (("-v=4", "-h", "--help", "--max-pods=7"), "maxPods", 7),
    (("--kube-reserved= cpu = 1 ,,",), "kubeReserved", {"cpu": "1"}),
    (("--kube-reserved=cpu=1", "--kube-reserved=memory=1Gi"), "kubeReserved", {"cpu": "1", "memory": "1Gi"}),
    (
        ("--eviction-hard=memory.available<1Gi", "--eviction-hard=nodefs.available<5%"),
        "evictionHard",
        {"memory.available": "1Gi", "nodefs.available": "5%"},
    ),
    (("--enforce-node-allocatable=",), "enforceNodeAllocatable", []),
    (("--reserved-memory=",), "reservedMemory", []),
    (
        ("--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Mi;1:memory=1Gi", "--reserved-memory=+2:memory=3Gi"),
        "reservedMemory",
        [
            {"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": "2Mi"}},
            {"numaNode": 1, "limits": {"memory": "1Gi"}},
            {"numaNode": 2, "limits": {"memory": "3Gi"}},
        ],
    ),
    (("--feature-gates=AllAlpha=false", "--feature-gates= MemoryQoS = T "), "featureGates", {"AllAlpha": False, "MemoryQoS": True}),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "field", "value"), SET)
def test_a_flag_sets_its_field(flags: tuple[str, ...], field: str, value: Any) -> None:
    found = checked("", *flags)
    assert found.starts
    assert found.fields is not None
    assert found.fields[field] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [(text, True) for text in ("1", "t", "T", "TRUE", "true", "True")]
    + [(text, False) for text in ("0", "f", "F", "FALSE", "false", "False")],
)
def test_a_yes_or_no_is_spelt_as_in_go(text: str, value: bool) -> None:
    found = checked("enforceNodeAllocatable: [none]\n", f"--cgroups-per-qos={text}")
    assert found.fields is not None
    assert found.fields["cgroupsPerQOS"] is value


def test_options_of_a_policy_are_added_one_by_one_and_may_hold_an_equals_sign() -> None:
    one = "--cpu-manager-policy-options= full-pcpus-only = true "
    other = "--cpu-manager-policy-options=strict-cpu-reservation=a=b,c"
    found = checked("", one, other)
    assert found.fields is not None
    assert found.fields["cpuManagerPolicyOptions"] == {
        "full-pcpus-only": "true",
        "strict-cpu-reservation": "a=b,c",
    }


REFUSED: list[tuple[str, str, str]] = [
    ("-x", "--x", "unknown shorthand flag: 'x' in -x"),
    ("-v", "--v", "flag needs an argument: 'v' in -v"),
    ("-", "", "unknown command -"),
    ("start", "", "unknown command start"),
    ("--=x", "", "bad flag syntax: --=x"),
    ("---x", "", "bad flag syntax: ---x"),
    ("--max-pods", "--max-pods", "flag needs an argument: --max-pods"),
    ("--nonsense=1", "--nonsense", "unknown flag: --nonsense"),
]


@pytest.mark.parametrize(("flag", "field", "words"), REFUSED)
def test_what_is_no_flag_is_told_in_the_kubelets_words(flag: str, field: str, words: str) -> None:
    (finding,) = checked("", flag).told
    assert (finding.stage, finding.field, finding.words) == ("flags", field, words)


THREE = "\N{ARABIC-INDIC DIGIT THREE}"
WRONG: list[tuple[str, str, str]] = [
    ("--max-pods", "2147483648", 'strconv.ParseInt: parsing "2147483648": value out of range'),
    ("--max-pods", "-2147483649", 'strconv.ParseInt: parsing "-2147483649": value out of range'),
    ("--max-pods", THREE, f'strconv.ParseInt: parsing "{THREE}": invalid syntax'),
    ("--cgroups-per-qos", "yes", 'strconv.ParseBool: parsing "yes": invalid syntax'),
    ("--feature-gates", "Foo", "malformed pair, expect string=bool"),
    ("--feature-gates", "Foo=yes", 'invalid value of Foo: yes, err: strconv.ParseBool: parsing "yes": invalid syntax'),
    ("--kube-reserved", "cpu", "malformed pair, expect string=string"),
    ("--eviction-hard", "memory.available", "malformed pair, expect string<string"),
    ("--cpu-manager-policy-options", "full-pcpus-only", "malformed pair, expect string=string"),
    (
        "--reserved-memory", "memory=1Gi",
        "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got memory=1Gi",
    ),
    ("--reserved-memory", "a:memory=1Gi", "failed to convert the NUMA node ID, expected integer, got a"),
    ("--reserved-memory", f"{THREE}:memory=1Gi", f"failed to convert the NUMA node ID, expected integer, got {THREE}"),
    ("--reserved-memory", "0:memory", "the reserved limit has incorrect value, expected type=quantity, got memory"),
    ("--reserved-memory", "0:cpu=1", 'memory type conversion error, unknown type: "cpu"'),
    ("--reserved-memory", "0:memory=much", "failed to parse the quantity: much"),
]  # fmt: skip


@pytest.mark.parametrize(("flag", "text", "words"), WRONG)
def test_a_value_that_a_flag_does_not_take_is_told_in_the_kubelets_words(
    flag: str, text: str, words: str
) -> None:
    (finding,) = checked("", f"{flag}={text}").told
    assert (finding.stage, finding.field) == ("flags", flag)
    assert finding.words == f'invalid argument "{text}" for "{flag}" flag: {words}'


OLD_WORDS = [
    ("a:memory=1Gi", "failed to convert the NUMA node ID, exptected integer, got a"),
    ("0:memory", "the reserved limit has incorrect value, expected type=quantatity, got memory"),
    ("0:memory=much", "failed to parse the quantatity, expected quantatity, got much"),
]  # the misspellings are the kubelet's


@pytest.mark.parametrize(("text", "words"), OLD_WORDS)
def test_before_1_35_reserved_memory_is_refused_in_words_spelt_otherwise(text: str, words: str) -> None:
    (finding,) = checked("", f"--reserved-memory={text}", minor=34).told
    assert finding.words == f'invalid argument "{text}" for "--reserved-memory" flag: {words}'


def test_what_stands_after_two_dashes_is_a_command_that_there_is_not() -> None:
    (finding,) = checked("", "--", "--max-pods=5", "x").told
    assert (finding.field, finding.words) == ("", "unknown command --max-pods=5")


@pytest.mark.parametrize(
    ("flag", "minor", "known"),
    [
        ("--topology-manager-policy-options=", 25, False),
        ("--topology-manager-policy-options=", 26, True),
        ("--boot-id-file=/x", 36, True),
        ("--boot-id-file=/x", 37, False),
        ("--log-cadvisor-usage", 36, True),
    ],
)
def test_a_flag_is_known_from_its_first_version_until_one_drops_it(
    flag: str, minor: int, known: bool
) -> None:
    assert checked("", flag, minor=minor).starts is known
