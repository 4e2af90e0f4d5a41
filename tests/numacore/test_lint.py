"""What is said of workloads that will not be placed as they ask."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numacore import lint, manifest
from numacore.lint import Capacity
from numacore.topology import Attributes, HugePages
from tests.numacore.whatif import nodes

GIB = 1024**3
ANNOTATION = "volcano.sh/numa-topology-policy"
EQUAL = {"cpu": "4", "memory": "8Gi"}
NODE = Capacity(
    node="n1",
    cpus={0: 30, 1: 32},
    memory={0: 60 * GIB, 1: 64 * GIB},
    hugepages={"hugepages-2Mi": {0: GIB, 1: 0}, "hugepages-1Gi": {0: 0, 1: 0}},
)


def pod(
    policy: str = "restricted",
    scheduler: str = "volcano",
    resources: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    container = {"name": "web", "resources": resources or {"limits": EQUAL, "requests": EQUAL}}
    return {
        "kind": "Pod",
        "metadata": {"name": "shop", "annotations": {ANNOTATION: policy} if policy else {}},
        "spec": {"schedulerName": scheduler, "containers": [container]} | spec,
    }


def findings(document: dict[str, Any], *nodes: Capacity) -> list[tuple[str, str, str]]:
    (group,) = manifest.read([document])
    return [(each.severity, each.reason.code, each.field) for each in lint.lint(group, nodes)]


def values(document: dict[str, Any], *nodes: Capacity) -> dict[str, str | int | float]:
    (group,) = manifest.read([document])
    (finding,) = lint.lint(group, nodes)
    return finding.reason.values


def limits(**amounts: str) -> dict[str, Any]:
    return {"limits": EQUAL | amounts}


def test_a_sound_pod_has_no_finding() -> None:
    assert findings(pod(), NODE) == []


def test_a_pod_without_policy_may_be_of_any_class() -> None:
    resources = {"requests": {"cpu": "1500m"}, "limits": {"cpu": "2"}}
    assert findings(pod("", "default-scheduler", resources), NODE) == []


@pytest.mark.parametrize(
    ("policy", "code", "meant"),
    [
        ("Restricted", "policy-case", "restricted"),
        ("SINGLE_NUMA_NODE", "policy-case", "single-numa-node"),
        ("numa", "policy-unknown", None),
    ],
)
def test_a_policy_that_nobody_knows_is_an_error(policy: str, code: str, meant: str | None) -> None:
    assert ("error", code, f"metadata.annotations.{ANNOTATION}") in findings(pod(policy))
    assert values(pod(policy)).get("meant") == meant


def test_a_policy_on_the_workload_instead_of_its_pods() -> None:
    document = {
        "kind": "Deployment",
        "metadata": {"name": "shop", "annotations": {ANNOTATION: "restricted"}},
        "spec": {"template": {"spec": pod("")["spec"]}},
    }
    assert findings(document) == [("error", "policy-misplaced", f"metadata.annotations.{ANNOTATION}")]
    assert values(document)["field"] == f"spec.template.metadata.annotations.{ANNOTATION}"


def test_a_task_names_its_own_field() -> None:
    task = {"topologyPolicy": "Best-Effort", "template": {"spec": pod("")["spec"]}}
    document = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "spec": {"tasks": [task]}}
    assert findings(document) == [("error", "policy-case", "spec.tasks[0].topologyPolicy")]


def test_a_scheduler_that_does_not_read_the_policy() -> None:
    assert findings(pod(scheduler="default-scheduler")) == [
        ("error", "scheduler-blind", "spec.schedulerName")
    ]
    (group,) = manifest.read([pod(scheduler="numa-scheduler")])
    assert lint.lint(group, [], ["volcano", "numa-scheduler"]) == ()


def test_every_container_and_resource_that_spoils_the_class_is_named() -> None:
    resources = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}}
    document = pod(resources=resources)
    document["spec"]["containers"].append({"name": "log"})
    at = "spec.containers"
    assert findings(document) == [
        ("error", "not-guaranteed-unequal", f"{at}[0].resources.requests.cpu"),
        ("error", "not-guaranteed-no-limit", f"{at}[1].resources.limits.cpu"),
        ("error", "not-guaranteed-no-limit", f"{at}[1].resources.limits.memory"),
    ]


def test_pod_level_resources_make_the_class() -> None:
    document = pod(resources={"requests": {"cpu": "2"}})
    document["spec"]["resources"] = {"requests": EQUAL, "limits": EQUAL}
    assert findings(document) == []
    document["spec"]["resources"] = {"limits": EQUAL}
    assert findings(document) == [("error", "not-guaranteed-unequal", "spec.resources.requests.cpu")]
    document["spec"]["resources"] = {"limits": {"cpu": "2"}}
    assert findings(document) == [("error", "not-guaranteed-no-limit", "spec.resources.limits.memory")]


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [("1500m", [("cpu-fraction")]), ("2000m", []), ("2", []), ("0.5", ["cpu-fraction"])],
)
def test_cpus_in_parts_are_not_pinned(cpu: str, expected: list[str]) -> None:
    assert [code for _, code, _ in findings(pod(resources=limits(cpu=cpu)))] == expected


def test_zero_cpus_are_said_to_be_none() -> None:
    assert ("warning", "cpu-zero", "spec.containers[0].resources.requests.cpu") in findings(
        pod(resources=limits(cpu="0"))
    )


def test_a_sidecar_in_parts_beside_pinned_containers_is_named_as_such() -> None:
    sidecar = {"name": "log", "restartPolicy": "Always", "resources": limits(cpu="500m")}
    assert findings(pod(initContainers=[sidecar])) == [
        ("warning", "sidecar-fraction", "spec.initContainers[0].resources.requests.cpu")
    ]


@pytest.mark.parametrize(("policy", "severity"), [("single-numa-node", "error"), ("restricted", "warning")])
def test_larger_than_every_numa_node(policy: str, severity: str) -> None:
    document = pod(policy, resources=limits(cpu="33", memory="65Gi"))
    assert findings(document, NODE) == [
        (severity, "larger-than-numa", "spec.containers[0].resources.requests.cpu"),
        (severity, "larger-than-numa", "spec.containers[0].resources.requests.memory"),
    ]
    assert values(pod(policy, resources=limits(cpu="33")), NODE)["most"] == 32


def test_larger_than_every_node_counts_the_pod_as_a_whole() -> None:
    document = pod(resources=limits(cpu="32"))
    document["spec"]["containers"].append({"name": "more", "resources": limits(cpu="31")})
    assert findings(document, NODE) == [("error", "larger-than-node", "spec.containers")]
    assert values(document, NODE) == {"resource": "cpu", "asked": "63", "most": 62}


def test_sizes_are_not_judged_while_a_node_is_unknown() -> None:
    unknown = Capacity(node="n2", cpus=None, memory=None)
    assert findings(pod(resources=limits(cpu="500")), NODE, unknown) == []
    assert findings(pod(resources=limits(cpu="500"))) == []


def test_huge_pages_of_a_size_that_no_node_has() -> None:
    resources = limits(**{"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"})
    assert findings(pod(resources=resources), NODE) == [
        ("error", "hugepages-nowhere", "spec.containers[0].resources.requests.hugepages-1Gi")
    ]


def test_the_capacity_of_a_node_leaves_out_what_is_reserved() -> None:
    found = lint.capacity("n1", nodes.facts())
    assert found.cpus == {0: 3, 1: 4}
    assert found.memory == {0: 16 * GIB, 1: 16 * GIB}


def test_a_capacity_that_nobody_knows_is_unknown() -> None:
    known = nodes.facts()
    bare = msgspec.structs.replace(known, attributes=Attributes())
    assert lint.capacity("n1", bare).memory is None


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (pod("numa"), [("policy-unknown", {"policy": "numa", "policies": "none, best-effort, restricted, single-numa-node"})]),
        (
            pod(scheduler="mine"),
            [("scheduler-blind", {"scheduler": "mine", "policy": "restricted", "schedulers": "volcano"})],
        ),
        (
            pod(resources={"limits": EQUAL, "requests": EQUAL | {"cpu": "1500m"}}),
            [
                ("not-guaranteed-unequal", {"resource": "cpu", "policy": "restricted", "request": "1500m", "limit": "4"}),
                ("cpu-fraction", {"container": "web", "cpus": "1500m"}),
            ],
        ),
        (
            pod(initContainers=[{"name": "side", "restartPolicy": "Always", "resources": {"limits": {"memory": "1Gi"}}}]),
            [("not-guaranteed-no-limit", {"resource": "cpu", "policy": "restricted", "sidecar": "side"})],
        ),
        (pod(resources=limits(cpu="0")), [
            ("not-guaranteed-no-limit", {"resource": "cpu", "policy": "restricted"}), ("cpu-zero", {"container": "web"}),
        ]),
        (pod(resources=limits(cpu="40")), [("larger-than-numa", {"container": "web", "resource": "cpu", "asked": "40", "most": 32})]),
        (pod(resources=limits(cpu="63")), [("larger-than-node", {"resource": "cpu", "asked": "63", "most": 62})]),
        (pod(resources=limits(**{"hugepages-1Gi": "1Gi"})), [("hugepages-nowhere", {"container": "web", "resource": "hugepages-1Gi"})]),
    ],
)  # fmt: skip
def test_a_finding_tells_what_its_sentence_needs(
    document: dict[str, Any], told: list[tuple[str, dict[str, Any]]]
) -> None:
    (group,) = manifest.read([document])
    assert [(each.reason.code, each.reason.values) for each in lint.lint(group, [NODE])] == told


def test_a_sidecar_in_parts_where_nobody_is_pinned_is_one_of_several() -> None:
    sidecar = {"name": "log", "restartPolicy": "Always", "resources": limits(cpu="500m")}
    document = pod(resources=limits(cpu="1500m"), initContainers=[sidecar])
    assert [code for _, code, _ in findings(document)] == ["cpu-fraction", "cpu-fraction"]


def test_one_cpu_of_its_own_is_enough_to_be_spoilt_by_a_sidecar() -> None:
    sidecar = {"name": "log", "restartPolicy": "Always", "resources": limits(cpu="500m")}
    document = pod(resources=limits(cpu="1"), initContainers=[sidecar])
    assert [code for _, code, _ in findings(document)] == ["sidecar-fraction"]


def test_a_pod_that_asks_for_nothing_as_a_whole_is_classed_by_its_containers() -> None:
    document = pod(resources={"limits": {"cpu": "2"}})
    document["spec"]["resources"] = {"limits": {}, "requests": {}}
    assert findings(document) == [
        ("error", "not-guaranteed-no-limit", "spec.containers[0].resources.limits.memory")
    ]


def test_a_node_without_cpus_is_one_on_which_nothing_fits() -> None:
    none = Capacity(node="n2", cpus={}, memory={})
    assert findings(pod(), none, NODE) == []
    assert [code for _, code, _ in findings(pod(), none)] == ["larger-than-node", "larger-than-node"]


def test_huge_pages_of_a_capacity_are_bytes_and_a_pool_of_unknown_size_gives_none() -> None:
    known = nodes.facts()
    pools = {
        0: (HugePages(2 << 20, 8, 8), HugePages(1 << 30, None, None)),
        1: (HugePages(2 << 20, None, None),),
    }
    seen = msgspec.structs.replace(
        known, attributes=msgspec.structs.replace(known.attributes, hugepages=pools)
    )
    assert lint.capacity("n1", seen).hugepages == {
        "hugepages-2Mi": {0: 16 << 20, 1: 0},
        "hugepages-1Gi": {0: 0},
    }


def test_a_policy_in_words_is_understood_and_a_cluster_without_such_a_scheduler_has_none_to_name() -> None:
    assert values(pod("Single Numa Node"))["meant"] == "single-numa-node"
    (group,) = manifest.read([pod(scheduler="mine")])
    (finding,) = lint.lint(group, [], schedulers=())
    assert finding.reason.values["schedulers"] == "-"


def test_a_misplaced_policy_is_told_as_it_was_written() -> None:
    document = {
        "kind": "Deployment",
        "metadata": {"name": "shop", "annotations": {ANNOTATION: "restricted"}},
        "spec": {"template": {"spec": pod("")["spec"]}},
    }
    assert values(document)["policy"] == "restricted"
