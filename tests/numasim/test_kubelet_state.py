"""State files carry the checksums that real kubelets wrote over the same content."""

import json

import pytest

from numacore.cpuset import EMPTY, CpuSet
from numasim import kubeletstate
from numasim.kubelet import Settings
from numasim.kubeletstate import Block, NodeTable, Table

GIB = 1 << 30


def cpus(entries: dict[str, dict[str, str]]) -> dict[str, dict[str, CpuSet]]:
    return {uid: {name: CpuSet.parse(text) for name, text in row.items()} for uid, row in entries.items()}


@pytest.mark.parametrize(
    ("default", "entries", "checksum"),
    [
        ("0-63", {}, 1058907510),
        ("2-15,17-31,34-47,49-63", {}, 4141502832),
        ("0-31", {}, 3540042759),
        (
            "0-1,4,6-9,12,14-15",
            {"69aa6124-4e0e-4c66-94ea-feae7df25b68": {"app": "2-3,10-11", "sidecar": "5,13"}},
            1811869873,
        ),
    ],
)
def test_it_sums_a_cpu_state_as_the_kubelet_does(
    default: str, entries: dict[str, dict[str, str]], checksum: int
) -> None:
    text = kubeletstate.cpu_state(Settings(), CpuSet.parse(default), cpus(entries))
    assert json.loads(text)["checksum"] == checksum


def test_it_writes_the_state_of_policy_none_as_the_kubelet_does() -> None:
    state = kubeletstate.cpu_state(Settings(cpu_policy="none"), CpuSet.parse("0-3"), {})
    assert state == '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
    assert (
        kubeletstate.memory_state(Settings(), {}, {})
        == '{"policyName":"None","machineState":{},"checksum":4236770233}'
    )


def test_it_sums_a_memory_state_as_the_kubelet_does() -> None:
    huge = Table(10 * GIB, 0, 10 * GIB, GIB, 9 * GIB)
    free = Table(10 * GIB, 0, 10 * GIB, 0, 10 * GIB)
    nodes = {
        0: NodeTable(
            2,
            {
                "hugepages-1Gi": huge,
                "memory": Table(99759243264, 1126170624, 87895654400, 4294967296, 83600687104),
            },
            (0,),
        ),
        1: NodeTable(
            0,
            {"hugepages-1Gi": free, "memory": Table(99283886080, 1126170624, 87420297216, 0, 87420297216)},
            (1,),
        ),
    }
    blocks = (Block((0,), "memory", 4 * GIB), Block((0,), "hugepages-1Gi", GIB))
    entries = {"2f0c6f0e-6c56-4c9b-9b0e-2f6f0f9f6f11": {"app": blocks}}
    state = kubeletstate.memory_state(Settings(memory_policy="Static"), nodes, entries)
    assert json.loads(state)["checksum"] == 683052938


def test_the_newest_form_repeats_itself_as_data_with_a_sum_of_its_own() -> None:
    uids = {
        "8dd25092-11ca-4b13-92df-38073696f50a": {"main": "4"},
        "944febb6-d6d9-49f5-9b3e-11d91d6ce59b": {"main": "2-3"},
    }
    state = json.loads(
        kubeletstate.cpu_state(Settings(newest_state=True), CpuSet.parse("0-1,5-7"), cpus(uids))
    )
    assert (state["checksum"], state["dataChecksum"]) == (3650389532, 2269571975)
    assert json.loads(state["data"])["defaultCpuSet"] == "0-1,5-7"


def test_nothing_exclusive_leaves_the_entries_out() -> None:
    assert "entries" not in json.loads(kubeletstate.cpu_state(Settings(), EMPTY, {}))
