"""The kubelet's state files in every form, and when they are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from numaagent.readers import statefiles
from numaagent.readers.files import Files
from numacore.cpuset import CpuSet
from numacore.kubeletstate import MemoryTable
from numacore.workload import MemoryBlock

UID = "69aa6124-4e0e-4c66-94ea-feae7df25b68"
V2 = {
    "policyName": "static",
    "defaultCpuSet": "0-1,4,6-9,12,14-15",
    "entries": {UID: {"app": "2-3,10-11", "sidecar": "5,13"}},
    "checksum": 1811869873,
}
MEMORY = {
    "policyName": "Static",
    "machineState": {
        "0": {
            "numberOfAssignments": 2,
            "memoryMap": {
                "memory": {"total": 100, "systemReserved": 10, "allocatable": 90, "reserved": 40, "free": 50},
                "hugepages-1Gi": {
                    "total": 8,
                    "systemReserved": 0,
                    "allocatable": 8,
                    "reserved": 1,
                    "free": 7,
                },
            },
            "cells": [0],
        },
        "1": {"numberOfAssignments": 0, "memoryMap": {}, "cells": [1, 2]},
    },
    "entries": {UID: {"app": [{"numaAffinity": [0, 1], "type": "memory", "size": 40}]}},
    "checksum": 683052938,
}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(str(tmp_path))


def write(files: Files, name: str, content: object) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    Path(files.root, name).write_text(text)
    return files.root


def test_it_reads_the_form_with_names(files: Files) -> None:
    state = statefiles.cpu(files, write(files, "cpu_manager_state", V2))
    assert state is not None
    assert (state.policy, str(state.default)) == ("static", "0-1,4,6-9,12,14-15")
    assert state.entries == {UID: {"app": CpuSet.parse("2-3,10-11"), "sidecar": CpuSet.parse("5,13")}}


def test_it_reads_the_oldest_form_with_container_ids(files: Files) -> None:
    old = {"policyName": "static", "defaultCpuSet": "0-3", "entries": {"0ab1": "4-5"}, "checksum": 1}
    state = statefiles.cpu(files, write(files, "cpu_manager_state", old))
    assert state is not None
    assert state.entries == {"0ab1": {"": CpuSet.parse("4-5")}}


def test_it_reads_entries_of_whole_pods_beside_those_of_containers(files: Files) -> None:
    state = statefiles.cpu(
        files, write(files, "cpu_manager_state", {**V2, "podEntries": {UID: {"cpuSet": {}}}})
    )
    assert state is not None
    assert set(state.entries) == {UID}


def test_it_believes_the_text_inside_where_there_is_one(files: Files) -> None:
    inside = {"policyName": "static", "defaultCpuSet": "0-7", "entries": {UID: {"app": "8"}}}
    newest = {**V2, "checksum": 0, "data": json.dumps(inside), "dataChecksum": 2269571975}
    state = statefiles.cpu(files, write(files, "cpu_manager_state", newest))
    assert state is not None
    assert state.entries == {UID: {"app": CpuSet([8])}}


def test_it_reads_keys_in_any_case_as_the_kubelet_does(files: Files) -> None:
    odd = {"PolicyName": "none", "defaultCPUSet": "0-2"}
    state = statefiles.cpu(files, write(files, "cpu_manager_state", odd))
    assert state is not None
    assert (state.policy, str(state.default)) == ("none", "0-2")


def test_it_reads_memory_of_each_node_and_of_containers(files: Files) -> None:
    state = statefiles.memory(files, write(files, "memory_manager_state", MEMORY))
    assert state is not None
    assert state.policy == "Static"
    assert state.nodes[0]["memory"] == MemoryTable(100, 10, 90, 40, 50)
    assert state.nodes[0]["hugepages-1Gi"].free == 7
    assert state.groups == {0: (0,), 1: (1, 2)}
    assert state.entries == {UID: {"app": (MemoryBlock("memory", 40, (0, 1)),)}}


def test_it_reads_the_state_of_a_manager_that_is_off(files: Files) -> None:
    folder = write(
        files, "memory_manager_state", {"policyName": "None", "machineState": {}, "checksum": 4236770233}
    )
    state = statefiles.memory(files, folder)
    assert state is not None
    assert (state.policy, state.nodes, state.entries) == ("None", {}, {})


def test_it_counts_no_problem_where_there_is_no_file(files: Files) -> None:
    assert statefiles.cpu(files, files.root) is None
    assert statefiles.memory(files, files.root) is None
    assert files.problems.listed() == ()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\x00\x01\x02",
        json.dumps(V2)[:-20],
        "[]",
        "null",
        '{"entries": {}}',
        '{"policyName": "static", "defaultCpuSet": 7}',
        '{"policyName": "static", "defaultCpuSet": "7-1"}',
        '{"policyName": "static", "defaultCpuSet": "0", "entries": {"u": {"c": "0-4294967295"}}}',
        '{"policyName": "static", "data": "{"}',
        '{"policyName": "sta\\u0000tic"}',
        '{"policyName": "static", "entries": {"u\\u0000": {"c": "0"}}}',
        '{"policyName":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_it_tells_that_a_file_is_damaged(files: Files, content: str) -> None:
    assert statefiles.cpu(files, write(files, "cpu_manager_state", content)) is None
    [problem] = files.problems.listed()
    assert (problem.reader, problem.what) == ("cpu-state", "/cpu_manager_state")
    assert problem.cause.startswith("it is damaged: ")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("machineState", {"0": {"memoryMap": {"memory": {"total": -5}}}}),
        ("machineState", {"zero": {}}),
        ("machineState", {"99999999": {}}),
        ("entries", {UID: {"app": [{"numaAffinity": [0], "type": "memory", "size": 1 << 70}]}}),
        ("entries", {UID: {"app": [{"numaAffinity": "0", "type": "memory", "size": 1}]}}),
        ("entries", {UID: [1]}),
    ],
)
def test_it_tells_that_amounts_are_damaged(files: Files, part: str, value: object) -> None:
    assert statefiles.memory(files, write(files, "memory_manager_state", {**MEMORY, part: value})) is None
    [problem] = files.problems.listed()
    assert (problem.reader, problem.cause[:15]) == ("memory-state", "it is damaged: ")


def test_it_does_not_read_a_huge_file(files: Files) -> None:
    folder = write(files, "cpu_manager_state", "x" * (statefiles.LIMIT + 1))
    assert statefiles.cpu(files, folder) is None
    [problem] = files.problems.listed()
    assert problem.cause == f"it is larger than {statefiles.LIMIT} bytes and was not used"
