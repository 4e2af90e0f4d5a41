"""docs/kubernetes: the exporter on every node has no more rights than it needs and is where Prometheus looks."""

from typing import Any

import pytest
import yaml

from numaagent import config
from tests.servers import ROOT

FILE = ROOT / "docs" / "kubernetes" / "numa-exporter.yaml"


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    documents = yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
    [found] = [each for each in documents if each["kind"] == "DaemonSet"]
    template: dict[str, Any] = found["spec"]["template"]
    assert found["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    return template


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    [found] = pod["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_it_has_the_label_and_the_one_port_that_prometheus_looks_for(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    assert pod["metadata"]["labels"]["app"] == "numa-exporter"
    assert [port["containerPort"] for port in container["ports"]] == [config.DEFAULT_PORT]


def test_it_gives_up_every_right(pod: dict[str, Any], container: dict[str, Any]) -> None:
    rights = container["securityContext"]
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert rights["readOnlyRootFilesystem"] is True
    assert rights["allowPrivilegeEscalation"] is False
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not {"hostPID", "hostNetwork", "hostIPC"} & set(pod["spec"])


def test_it_mounts_the_host_below_its_root_and_cannot_write_there(container: dict[str, Any]) -> None:
    assert "--root=/host" in container["args"]
    mounts = container["volumeMounts"]
    assert all(mount["readOnly"] and mount["mountPath"].startswith("/host/") for mount in mounts)


def test_it_mounts_everything_that_the_exporter_reads(pod: dict[str, Any]) -> None:
    paths = {volume["hostPath"]["path"] for volume in pod["spec"]["volumes"]}
    assert paths == {"/sys", "/proc", "/var/lib/kubelet", "/var/log", "/etc/machine-id"}
