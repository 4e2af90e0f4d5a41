"""The JSON form of cases: devices, state files, restarts, open choices."""

import json
from typing import Any

import pytest

from numacore.kubelet import case

Json = dict[str, Any]
NODES = [
    {
        "ID": at,
        "Memory": 8 << 30,
        "HugePages": {},
        "Cores": [{"ID": at, "Socket": at, "Threads": [4 * at + i for i in range(4)]}],
    }
    for at in range(2)
]
CONFIG = {
    "TopologyPolicy": "restricted",
    "Scope": "container",
    "CPUPolicy": "static",
    "Reservation": {"cpu": "1"},
    "MemoryPolicy": "None",
}


def asked(cpu: str = "2", **more: str) -> Json:
    return {"cpu": cpu, "memory": "64Mi"} | {f"example.com/{name}": value for name, value in more.items()}


def admit(uid: str, resources: Json) -> Json:
    return {"Admit": {"UID": uid, "Containers": [{"Name": "c", "Requests": resources, "Limits": resources}]}}


def judged(*steps: Json, **more: Any) -> Json:
    given = {"ID": "x", "Machine": NODES, "Config": CONFIG, "Steps": list(steps)} | more
    return json.loads(case.answer(json.dumps(given).encode()))


def test_a_restart_keeps_what_runs_and_may_find_other_settings() -> None:
    other = CONFIG | {"TopologyPolicy": "single-numa-node"}
    answer = judged(admit("a", asked("3")), {"Restart": {"Config": other}}, admit("a", asked("3")))
    first, restarted, again = answer["steps"]
    assert restarted == {"admit": True, "shared": first["shared"]}
    assert again == first


def test_a_restart_that_fails_ends_the_case() -> None:
    answer = judged(admit("a", asked()), {"Restart": {"Machine": NODES[:1]}}, admit("b", asked()))
    assert len(answer["steps"]) == 2
    assert answer["steps"][1]["start_error"].startswith("current set of available CPUs")


def test_state_files_are_found_and_kept() -> None:
    kept = judged(admit("a", asked()), KeepState=True)["state"]
    known = admit("a", asked())["Admit"]
    answer = judged(
        admit("b", asked()), State={"CPU": kept["cpu"], "Memory": kept["memory"], "Pods": [known]}
    )
    assert answer["steps"][0]["cpus"] == {"c": "4-5"}
    forgotten = judged(admit("b", asked()), State={"CPU": kept["cpu"], "Memory": kept["memory"]})
    assert forgotten["steps"][0]["cpus"] == {"c": "1-2"}


def test_a_state_file_that_does_not_fit_is_a_start_error() -> None:
    answer = judged(State={"CPU": '{"policyName":"none","defaultCpuSet":"","checksum":0}'})
    assert 'configured policy "static" differs from state checkpoint policy "none"' in answer["start_error"]
    assert answer["steps"] is None


def gpus(*numa: list[int]) -> list[Json]:
    return [
        {
            "Resource": "example.com/gpu",
            "Devices": [{"ID": f"g{at}", "Numa": on} for at, on in enumerate(numa)],
        }
    ]


def test_which_of_equal_devices_a_container_gets_is_open() -> None:
    config = CONFIG | {"TopologyPolicy": "none"}
    answer = judged(admit("a", asked(gpu="1")), Config=config, Devices=gpus([0], [0], [1], []))
    possible = [answer, *answer["open"]]
    held = [each["steps"][0]["devices"]["c"]["example.com/gpu"] for each in possible]
    assert sorted(held) == [[[]], [[0]], [[1]]]


def test_a_hint_leaves_no_choice_among_devices_of_one_numa_node() -> None:
    answer = judged(admit("a", asked(gpu="1")), Devices=gpus([0], [0], [1]))
    assert answer["steps"][0]["devices"] == {"c": {"example.com/gpu": [[0]]}}
    assert "open" not in answer


def test_unhealthy_devices_and_new_reports_count() -> None:
    ill = [{"Resource": "example.com/gpu", "Devices": [{"ID": "g0", "Numa": [0], "Unhealthy": True}]}]
    answer = judged(
        admit("a", asked(gpu="1")), {"Devices": gpus([0])}, admit("a", asked(gpu="1")), Devices=ill
    )
    refused, _, fine = answer["steps"]
    assert (refused["reason"], fine["admit"]) == ("TopologyAffinityError", True)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"{}", "Machine"),
        (b'{"Machine":[],"Config":{"CPUPolicy":"none","MemoryPolicy":"None"}}', "TopologyPolicy"),
        (b'{"Machine":[{"ID":"a"}],"Config":{}}', "$.Machine[0].ID"),
        (b"nothing", "JSON"),
    ],
)
def test_a_line_that_is_no_case_names_the_field(line: bytes, field: str) -> None:
    with pytest.raises(case.CaseError) as refused:
        case.answer(line)
    assert field in str(refused.value)


def test_an_amount_that_is_no_quantity_is_named() -> None:
    with pytest.raises(ValueError, match="'many' is not a quantity"):
        judged(admit("a", asked("many")))


def test_which_devices_were_taken_matters_where_a_later_report_drops_some() -> None:
    first, second = admit("a", asked(gpu="1")), admit("b", asked(gpu="1"))
    config = CONFIG | {"TopologyPolicy": "none"}
    answer = judged(first, {"Devices": gpus([0])}, second, Config=config, Devices=gpus([0], [0]))
    possible = [answer, *answer["open"]]
    assert sorted(each["steps"][2]["admit"] for each in possible) == [False, True]


def test_more_ways_than_are_gone_through_are_told() -> None:
    config = CONFIG | {"TopologyPolicy": "none"}
    steps = [admit(f"p{at}", asked("100m", gpu="1")) for at in range(10)]
    answer = judged(*steps, Config=config, Devices=gpus(*([at % 2] for at in range(12))))
    assert answer["open_unfinished"]
    assert "open_unfinished" not in judged(steps[0], Config=config, Devices=gpus([0], [1]))


def test_devices_of_a_refused_pod_come_back_with_a_restart() -> None:
    """The device manager writes its file when it gives devices, not when it takes them back."""
    config = CONFIG | {"TopologyPolicy": "none"}
    one, too_many = asked("100m", gpu="1"), asked("100m", gpu="9")
    containers = [
        {"Name": name, "Requests": each, "Limits": each} for name, each in (("a", one), ("b", too_many))
    ]
    refused = {"Admit": {"UID": "p", "Containers": containers}}
    answer = judged(refused, {"Restart": {}}, admit("q", one), Config=config, Devices=gpus([0], [0]))
    first, _, other = answer["steps"]
    assert first["devices"] == {"a": {"example.com/gpu": [[0]]}}
    assert other["admit"]
    again = judged(
        refused, admit("q", asked("100m")), {"Restart": {}}, refused, Config=config, Devices=gpus([0], [1])
    )
    held = {json.dumps(each["steps"][3]["devices"]) for each in (again, *again["open"])}
    assert held == {json.dumps({"a": {"example.com/gpu": [[at]]}}) for at in (0, 1)}
