"""A pod on which a kubelet would die: page, REST and terminal say so first, and do not call it a refusal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from django.core.management import call_command
from django.test import Client

from monitoring.models import Cluster
from monitoring.selectors import planning
from monitoring.services import endpoints
from numacore.facts import Facts
from numacore.kubeletstate import Setting
from numacore.usage import Usage
from tests.monitoring import planned
from tests.monitoring.pages import machines, seeds
from tests.numacore.machines import attributes, topology
from tests.numacore.whatif import nodes


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    planning.forget()
    monkeypatch.setattr(endpoints, "ask_once", lambda _nodes: [])
    yield
    planning.forget()


def sparse() -> Facts:
    """NUMA nodes 0 and 2: with prefer-closest-numa-nodes the kubelet looks for a distance past the end of its row."""
    of = topology({0: "0-3", 2: "4-7"}, [[10, 21], [21, 10]])
    closest = Setting({"prefer-closest-numa-nodes": "true"}, "file")
    return msgspec.structs.replace(
        nodes.facts(nodes.kubelet(topologyManagerPolicyOptions=closest)),
        topology=of,
        attributes=attributes(of),
        usage=Usage(containers_of="", cpu=machines.cpu_times(of, {})),
    )


@pytest.fixture
def cluster(db: None) -> Cluster:
    made = planned.cluster()
    seeds.node(made, "sparse", sparse())
    return made


def test_the_page_says_it_in_its_first_line_and_of_volcano(cluster: Cluster, as_viewer: Client) -> None:
    asked = f"/c/east/planner/?{urlencode({'m': planned.job('1'), 'node': 'sparse'})}"
    english = as_viewer.get(asked, headers={"accept-language": "en"}).content.decode()
    assert "The kubelet of 1 node would crash on this pod: sparse." in english
    assert "Volcano would send it here and the kubelet would crash on it." in english
    assert "the kubelet would refuse it" not in english
    chinese = as_viewer.get(asked, headers={"accept-language": "zh-hans"}).content.decode()
    assert "Volcano 会把它调度到这里，而 kubelet 会因它崩溃。" in chinese


def test_rest_says_it(cluster: Cluster, as_viewer: Client) -> None:
    body = msgspec.json.encode({"manifest": planned.job("1"), "nodes": ["sparse"], "trace": True})
    answer = as_viewer.post("/api/v1/clusters/east/plan/", body, content_type="application/json").json()
    (node,) = answer["groups"][0]["nodes"]
    assert (node["outcome"], [each["code"] for each in node["reasons"]]) == ("crash", ["kubelet-panics"])
    assert (node["disagreement"]["side"], node["disagreement"]["cause"]) == ("kubelet-crashes", "crash")
    assert "index out of range [2] with length 2" in node["trace"]["message"]


def test_a_terminal_says_it(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(planned.job("1"))
    out = io.StringIO()
    call_command("plan", str(file), stdout=out)
    assert out.getvalue().startswith(
        "Job/train/worker: The kubelet of 1 node would crash on this pod: sparse."
    )
