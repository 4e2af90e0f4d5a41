"""The real API server looks at every object of every rendering (server-side dry run, unknown fields refused), and at pods as Pod Security does."""

from typing import Any

import pytest

from tests.cluster.api import Api, ApiError
from tests.cluster.cleaning import make_namespace
from tests.cluster.controlplane import ControlPlane
from tests.deploy import matrix
from tests.deploy.helm import NAMESPACE, Helm, Object, containers, pods

APPLY = "application/apply-patch+yaml"
STRICT = {"dryRun": "All", "fieldManager": "tests", "force": "true", "fieldValidation": "Strict"}


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Api:
    make_namespace(plane, NAMESPACE)
    return plane.api


def refusals(api: Api, things: list[Object]) -> list[str]:
    refused = []
    for each in things:
        try:
            api.raw("PATCH", api.path(each), each, APPLY, STRICT)
        except ApiError as error:
            refused.append(f"{each['kind']} {each['metadata']['name']}: {error}")
    return refused


@pytest.mark.parametrize("values", matrix.CASES.values(), ids=matrix.CASES)
def test_it_takes_every_object(api: Api, helm: Helm, values: dict[str, Any]) -> None:
    assert refusals(api, helm.template(values)) == []


def test_it_would_say_so(api: Api, helm: Helm) -> None:
    """The check can fail: a field that does not exist is refused."""
    things = [each for each in helm.template() if each["kind"] == "DaemonSet"]
    things[0]["spec"]["template"]["spec"]["automountToken"] = False
    assert "automountToken" in str(refusals(api, things))


@pytest.fixture(scope="module")
def restricted(plane: ControlPlane) -> str:
    """A namespace with Pod Security's strictest profile."""
    make_namespace(plane, "restricted")
    plane.api.patch(
        "/api/v1/namespaces/restricted",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    )
    return "restricted"


@pytest.mark.parametrize("case", ["defaults", "rollouts", "oauth"])
def test_all_pods_but_the_exporters_keep_to_the_strictest_profile(
    plane: ControlPlane, helm: Helm, restricted: str, case: str
) -> None:
    told = {}
    for name, template in pods(helm.template(matrix.CASES[case])).items():
        template["spec"].pop("serviceAccountName", None)
        if name in ("numaweb-postgresql", "numaweb-redis"):  # a StatefulSet would put the claim in its place
            template["spec"]["volumes"] += [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        template["spec"].setdefault("restartPolicy", "Always")
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": restricted},
            "spec": template["spec"],
        }
        said = refusals(plane.api, [pod])
        if said:
            told[name] = said[0]
    assert set(told) == {"numa-exporter"}
    reasons = told["numa-exporter"]
    assert "restricted volume types" in reasons
    assert "runAsUser=0" in reasons
    assert not [word for word in ("capabilities", "allowPrivilegeEscalation", "seccomp") if word in reasons]


def test_what_an_exporter_is_excepted_for_is_read_only(helm: Helm) -> None:
    template = pods(helm.template())["numa-exporter"]
    [container] = containers(template)
    hosts = {each["name"] for each in template["spec"]["volumes"] if "hostPath" in each}
    assert hosts == {"sys", "proc", "kubelet", "log", "machine-id"}
    assert all(mount["readOnly"] for mount in container["volumeMounts"] if mount["name"] in hosts)
