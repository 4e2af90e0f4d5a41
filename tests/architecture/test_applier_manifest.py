"""The applier's Job has the rights that it needs and no others, and mounts what the program writes."""

from typing import Any

import pytest
import yaml

from numaagent.applier import command, places
from numacore.change import undo
from tests.servers import ROOT

FILE = ROOT / "charts" / "volcano-config-service" / "files" / "applier" / "job.yaml"


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def pod(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["template"]["spec"]
    return found


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    [found] = pod["containers"]
    assert isinstance(found, dict)
    return found


def test_it_is_not_privileged(pod: dict[str, Any], container: dict[str, Any]) -> None:
    rights = container["securityContext"]
    assert rights["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN", "FOWNER"]}
    assert (rights["privileged"], rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"]) == (
        False,
        False,
        True,
    )
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostPID", "hostIPC"} & set(pod)


def test_its_arguments_are_always_the_same_and_there_is_no_shell(container: dict[str, Any]) -> None:
    assert container["command"] == ["python3", "-m", "numaagent.applier"]
    options = command._parser().parse_args(container["args"])
    assert (options.order, options.keys, options.host, options.token, options.look) == (
        "/order/order.json",
        "/keys/keys.pem",
        "/host",
        "/token/token",
        False,
    )
    assert [each["name"] for each in container["env"]] == ["NODE_NAME"]


def test_it_mounts_what_it_reads_and_writes_and_nothing_else(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    volumes = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"] if "hostPath" in each}
    mounts = {
        each["mountPath"].removeprefix("/host"): each.get("readOnly", False)
        for each in container["volumeMounts"]
        if each["name"] in volumes
    }
    assert sorted(volumes.values()) == sorted(mounts)
    assert mounts == {
        places.KUBELET: False,
        "/etc/kubernetes": False,
        undo.UNITS: False,
        undo.STATE: False,
        places.BUS.rpartition("/")[0]: True,
        places.MACHINE_ID: True,
    }


def test_it_may_go_back_before_anybody_kills_it(job: dict[str, Any], pod: dict[str, Any]) -> None:
    assert pod["restartPolicy"] == "Never"
    assert pod["terminationGracePeriodSeconds"] >= 300
    assert job["spec"]["activeDeadlineSeconds"] > 900


def test_nobody_is_evicted_for_it_on_a_full_node(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """kubelet 1.37, pkg/kubelet/preemption: for a critical pod that does not fit it frees what the pod requests. A limit alone is a request."""
    assert pod["priorityClassName"] == "system-node-critical"
    assert container["resources"]["requests"] == dict.fromkeys(("cpu", *container["resources"]["limits"]), 0)
    assert "cpu" not in container["resources"]["limits"]
