"""Manifests of every kind as groups of pods, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from numacore import manifest
from numacore.manifest import Fault, Group, ManifestError

WEB = {"name": "web", "resources": {"limits": {"cpu": "4", "memory": "8Gi"}}}
POLICY = {"volcano.sh/numa-topology-policy": "restricted"}


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"annotations": POLICY},
        "spec": {"schedulerName": "volcano", "containers": list(containers or [WEB])} | spec,
    }


def workload(kind: str, spec: dict[str, Any], version: str = "apps/v1") -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "shop", "namespace": "prod"},
        "spec": spec,
    }


def one(document: Any) -> Group:
    (group,) = manifest.read([document])
    return group


def faults(*documents: Any) -> tuple[Fault, ...]:
    with pytest.raises(ManifestError) as caught:
        manifest.read(documents)
    return caught.value.faults


def codes(*documents: Any) -> list[tuple[str, str]]:
    return [(each.field, each.reason.code) for each in faults(*documents)]


@pytest.mark.parametrize(
    ("document", "replicas", "where"),
    [
        (workload("Deployment", {"replicas": 3, "template": template()}), 3, "spec.template.spec"),
        (workload("Deployment", {"template": template()}), 1, "spec.template.spec"),
        (workload("StatefulSet", {"replicas": 0, "template": template()}), 0, "spec.template.spec"),
        (workload("ReplicaSet", {"replicas": 2, "template": template()}), 2, "spec.template.spec"),
        (workload("DaemonSet", {"template": template()}), None, "spec.template.spec"),
        (workload("Job", {"template": template()}, "batch/v1"), 1, "spec.template.spec"),
        (
            workload("Job", {"parallelism": 5, "completions": 2, "template": template()}, "batch/v1"),
            2,
            "spec.template.spec",
        ),
        (workload("Job", {"parallelism": 5, "template": template()}, "batch/v1"), 5, "spec.template.spec"),
        (
            workload(
                "CronJob", {"jobTemplate": {"spec": {"parallelism": 2, "template": template()}}}, "batch/v1"
            ),
            2,
            "spec.jobTemplate.spec.template.spec",
        ),
    ],
)
def test_it_finds_the_pods_of_every_kind(document: dict[str, Any], replicas: int | None, where: str) -> None:
    group = one(document)
    assert (group.replicas, group.where) == (replicas, where)
    assert (group.name, group.namespace, group.scheduler, group.policy) == (
        "shop",
        "prod",
        "volcano",
        "restricted",
    )
    assert group.pod.containers[0].requests == {"cpu": "4", "memory": "8Gi"}


def test_a_pod_is_one_pod_and_is_read_where_it_stands() -> None:
    group = one(
        {"apiVersion": "v1", "kind": "Pod"}
        | template()
        | {"metadata": {"name": "solo", "annotations": POLICY}}
    )
    assert (group.title, group.replicas, group.where, group.policy) == ("Pod/solo", 1, "spec", "restricted")


def test_a_bare_template_counts_as_a_pod() -> None:
    assert one(template()).title == "Pod/unnamed"


def test_a_volcano_job_has_a_group_for_each_task_whose_policy_wins() -> None:
    document = workload(
        "Job",
        {
            "tasks": [
                {"name": "head", "template": template()},
                {
                    "replicas": 4,
                    "topologyPolicy": "single-numa-node",
                    "template": template(schedulerName="other"),
                },
            ]
        },
        "batch.volcano.sh/v1alpha1",
    )
    head, workers = manifest.read([document])
    assert (head.title, head.replicas, head.policy) == ("Job/shop/head", 1, "restricted")
    assert (workers.title, workers.replicas, workers.policy, workers.scheduler) == (
        "Job/shop/task1",
        4,
        "single-numa-node",
        "volcano",
    )


def test_lists_are_unpacked_and_documents_without_pods_passed_over() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": {}}
    deployment = workload("Deployment", {"template": template()})
    groups = manifest.read([None, service, {"kind": "List", "items": [deployment, service]}])
    assert [each.title for each in groups] == ["Deployment/shop"]


def test_an_annotation_on_the_workload_is_no_policy_of_its_pods() -> None:
    document = workload("Deployment", {"template": {"spec": {"containers": [WEB]}}})
    document["metadata"]["annotations"] = POLICY
    group = one(document)
    assert (group.policy, group.misplaced_policy, group.scheduler) == ("", "restricted", "default-scheduler")


def test_an_init_container_that_always_restarts_is_a_sidecar() -> None:
    pod = one(template(initContainers=[{"name": "log", "restartPolicy": "Always"}, {"name": "setup"}])).pod
    assert [(each.name, each.sidecar) for each in pod.in_order()] == [
        ("log", True),
        ("setup", False),
        ("web", False),
    ]


def test_pod_level_requests_follow_the_containers_and_else_the_limit() -> None:
    containers = [{"name": name, "resources": {"requests": {"cpu": "1500m"}}} for name in ("a", "b")]
    init = [{"name": "setup", "resources": {"requests": {"cpu": "2"}}}]
    resources = {"limits": {"cpu": "8", "memory": "4Gi"}}
    pod = one(template(*containers, initContainers=init, resources=resources)).pod
    assert pod.resources is not None
    assert pod.resources.requests == {"cpu": "3", "memory": "4Gi"}


def test_it_names_every_fault_with_its_field() -> None:
    bad = {
        "name": "web",
        "resources": {
            "requests": {"cpu": "5", "memory": "plenty", "hugepages-2Mi": "4Mi", "example.com/nic": 1},
            "limits": {"cpu": "4", "memory": "-1Gi", "hugepages-2Mi": "8Mi", "pods": True},
        },
    }
    document = workload("Deployment", {"replicas": "3", "template": template(bad, {"image": "x"}, WEB)})
    at = "spec.template.spec.containers"
    assert codes(document) == [
        ("spec.replicas", "not-a-count"),
        (f"{at}[0].resources.requests.memory", "no-quantity"),
        (f"{at}[0].resources.limits.memory", "negative"),
        (f"{at}[0].resources.limits.pods", "no-quantity"),
        (f"{at}[0].resources.requests.cpu", "above-limit"),
        (f"{at}[0].resources.requests.hugepages-2Mi", "not-the-limit"),
        (f"{at}[0].resources.requests.example.com/nic", "needs-limit"),
        (f"{at}[1].name", "no-name"),
        (f"{at}[2].name", "duplicate-name"),
    ]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("just text", [("", "not-a-mapping")]),
        ({"kind": "Service"}, [("kind", "no-pods")]),
        ({"apiVersion": "v1"}, [("kind", "no-kind")]),
        ({"kind": "Pod", "spec": {"containers": []}}, [("spec.containers", "no-containers")]),
        ({"kind": "Pod", "spec": ["x"]}, [("spec", "not-a-mapping"), ("spec.containers", "no-containers")]),
        (
            {"kind": "Pod", "spec": {"containers": "web"}},
            [("spec.containers", "not-a-list"), ("spec.containers", "no-containers")],
        ),
        (
            {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "spec": {}},
            [("spec.tasks", "no-tasks")],
        ),
        ({"kind": 7}, [("kind", "not-a-text"), ("kind", "no-kind")]),
    ],
)
def test_it_says_what_is_no_manifest(document: Any, expected: list[tuple[str, str]]) -> None:
    assert codes(document) == expected


@pytest.mark.parametrize("replicas", [-1, 2**31, True, 1.0, "3"])
def test_a_number_of_pods_is_an_int32(replicas: Any) -> None:
    document = workload("Deployment", {"replicas": replicas, "template": template()})
    assert codes(document) == [("spec.replicas", "not-a-count")]
    document["spec"]["replicas"] = 2**31 - 1
    assert one(document).replicas == 2**31 - 1


def test_it_tells_the_faulty_document_by_its_number() -> None:
    assert [each.document for each in faults(template(), {"kind": "Pod"})] == [2]


def test_nothing_at_all_is_no_manifest() -> None:
    assert codes() == [("kind", "no-pods")]


def test_it_reads_no_endless_list() -> None:
    found = faults({"kind": "List", "items": [template()] * (manifest.MAX_DOCUMENTS + 5)})
    assert [each.reason.code for each in found] == ["too-many-documents"]
