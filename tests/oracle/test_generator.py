"""Random cases can be made again and go everywhere."""

import json
from collections import Counter
from functools import cache
from typing import Any

from numacore.kubelet.checks import gates
from tests.oracle import generator, machines

SEED, CASES = 20_26, 1500


@cache
def drawn() -> tuple[dict[str, Any], ...]:
    return tuple(generator.cases(SEED, CASES))


def test_a_case_is_made_from_its_seed_and_number_alone() -> None:
    assert generator.case(SEED, 7) == drawn()[7]
    assert generator.case(SEED + 1, 7) != drawn()[7]


def test_an_older_kubelet_is_asked_for_no_gate_that_it_refuses() -> None:
    asked = [generator.case(SEED, nth, minor=34) for nth in range(300)]
    for case in asked:
        configs = [
            case["Config"],
            *(step["Restart"].get("Config") for step in case["Steps"] if "Restart" in step),
        ]
        assert not any(gates.refusals(config["Gates"], 34) for config in configs if config)
    assert any(case["Config"]["Gates"] for case in asked)
    assert any("PodLevelResourceManagers" in case["Config"]["Gates"] for case in drawn())


def test_parts_can_be_left_out() -> None:
    for case in generator.cases(SEED, 200, without=generator.PARTS):
        told = json.dumps(case)
        assert not any(word in told for word in ('"Devices"', '"Restart"', '"State"', '"KeepState"'))


def test_machines_have_all_shapes() -> None:
    nodes = [case["Machine"] for case in drawn()]
    sizes = Counter(map(len, nodes))
    assert set(sizes) >= {*range(1, 10), 12, 16}
    assert any([node["ID"] for node in machine] != list(range(len(machine))) for machine in nodes)
    assert any(not node["Cores"] for machine in nodes for node in machine)
    assert any(node["Distances"] is None for machine in nodes for node in machine)
    assert {size for machine in nodes for node in machine for size in node["HugePages"]} == {
        "2048",
        "1048576",
    }
    sockets = [{core["Socket"] for core in node["Cores"]} for machine in nodes for node in machine]
    assert any(len(each) == 2 for each in sockets)


def test_no_cpu_is_there_twice() -> None:
    for case in drawn():
        cpus = machines.cpus(case["Machine"])
        assert cpus
        assert len(cpus) == len(set(cpus))


def test_every_setting_and_step_turns_up() -> None:
    settings = [case["Config"] for case in drawn()]
    assert {each["TopologyPolicy"] for each in settings} >= {
        "none",
        "best-effort",
        "restricted",
        "single-numa-node",
    }
    assert {each["Scope"] for each in settings} >= {"container", "pod"}
    assert len({option for each in settings for option in each["CPUOptions"]}) >= 6
    assert len({gate for each in settings for gate in each["Gates"]}) >= 8
    steps = Counter(word for case in drawn() for step in case["Steps"] for word in step)
    assert all(steps[word] > 20 for word in ("Admit", "Remove", "Restart", "Devices"))
    told = json.dumps(drawn())
    assert all(
        word in told
        for word in ("hugepages-1Gi", "hugepages-2Mi", "PodLimits", "Always", '"Unhealthy": true')
    )
