"""The form of cases and answers, and what is no case."""

import json
from typing import Any

import pytest

from numacore.volcano import cases, versions
from numacore.volcano.cases import CaseError

AMOUNTS = {"cpu": "2", "memory": "1Gi"}
DETAIL = {str(cpu): {"Numa": cpu // 4, "Socket": cpu // 4, "Core": cpu} for cpu in range(8)}


def case(**changes: Any) -> dict[str, Any]:
    node = {
        "Name": "n0",
        "CPUManager": "static",
        "Topology": "single-numa-node",
        "Detail": DETAIL,
        "Allocatable": "0-7",
        "Reserved": "1",
    } | changes.pop("node", {})
    return {
        "ID": "one",
        "Policy": "single-numa-node",
        "Weight": 10,
        "Containers": [{"Name": "c0", "Requests": AMOUNTS, "Limits": AMOUNTS}],
        "Nodes": [node],
    } | changes


def answered(given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cases.answer(json.dumps(given)))
    return found


def test_an_answer_says_what_there_is_to_say() -> None:
    assert answered(case()) == {
        "id": "one",
        "nodes": {"n0": {"fit": True, "scored": True, "cpus": "1-2", "per_container": ["1-2"]}},
        "scores": {"n0": 0},
    }


def test_zeros_may_be_left_out_as_the_exporter_leaves_them_out() -> None:
    assert answered(case(node={"Detail": DETAIL | {"0": {}}})) == answered(case())


def test_open_choices_are_further_answers() -> None:
    """Seven free CPUs, three of them wanted: either socket may be emptied first."""
    amounts = {"cpu": "3", "memory": "1Gi"}
    given = case(
        Policy="best-effort",
        Containers=[{"Name": "c0", "Requests": amounts, "Limits": amounts}],
        node={"Topology": "best-effort", "Allocatable": "0-3,6-7", "Reserved": "", "Detail": {
            str(cpu): {"Numa": 0, "Socket": cpu // 4, "Core": cpu} for cpu in range(8)
        }},
    )  # fmt: skip
    found = answered(given)
    assert found["nodes"]["n0"]["cpus"] == "0,6-7"
    assert [each["nodes"]["n0"]["cpus"] for each in found["open"]] == ["0-2"]
    assert all("open" not in each for each in found["open"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`, got `array`"),
        (json.dumps(case(ID=1)), "`$.ID`"),
        (json.dumps(case(Nodes=[{}])), "missing required field `Name`"),
        (json.dumps(case(node={"Allocatable": "7-0"})), "node n0: the range '7-0' runs backwards"),
        (json.dumps(case(node={"Detail": {"x": {}}})), "node n0: 'x' in Detail is no CPU id"),
        (json.dumps(case(node={"Detail": {"0": {"Numa": 64}}})), "node n0: CPU 0 lies on no NUMA node 0-63"),
        (json.dumps(case(node={"Reserved": "much"})), "Reserved of node n0: 'much' is not a quantity"),
        (json.dumps(case(Containers=[{"Name": "c", "Requests": {"cpu": "-1"}}])), "cpu of container c: '-1' is negative"),
    ],
)  # fmt: skip
def test_what_is_no_case_is_refused_by_its_field(given: str, words: str) -> None:
    with pytest.raises(CaseError) as refusal:
        cases.answer(given)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "proof"), [("1.15", "proven"), ("v1.15.1", "proven"), ("1.9.0", "documents"), ("1.16.0-alpha.1", "documents")]
)  # fmt: skip
def test_a_version_says_how_well_it_is_known(text: str, proof: str) -> None:
    assert versions.parse(text).proof == proof


@pytest.mark.parametrize("text", ["1.8", "1.17", "2.0", "15", "one", "1.x", ""])
def test_other_versions_are_unknown(text: str) -> None:
    with pytest.raises(versions.UnknownVersionError):
        versions.parse(text)
