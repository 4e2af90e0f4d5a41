"""On many NUMA nodes the search for smaller requests has a bound: page, REST and terminal say so where it ended early."""

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
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubeletstate import CpuManagerState, Setting
from numacore.usage import Usage
from tests.monitoring import planned
from tests.monitoring.pages import machines, seeds
from tests.numacore.machines import attributes
from tests.numacore.whatif import nodes

ENGLISH = "Not every smaller request was tried"
CHINESE = "并非所有更小的申请量都试过"
HELD = CpuSet(cpu for cpu in range(64) if cpu % 4 < 2)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    planning.forget()
    monkeypatch.setattr(endpoints, "ask_once", lambda _nodes: [])
    yield
    planning.forget()


def vast() -> Facts:
    """16 NUMA nodes of four CPUs, half of each given away: under restricted a pod gets two CPUs, or none at all."""
    topology = machines.topology(sockets=2, numa=8, cores=4, threads=1)
    free = CpuSet(range(64)) - HELD
    kubelet = nodes.kubelet(
        topologyManagerPolicyOptions=Setting({"max-allowable-numa-nodes": "16"}, "file"),
        reservedSystemCPUs=Setting("2", "file"),
        cpu_state=CpuManagerState("static", free, {"u1": {"web": HELD}}),
    )
    (web,) = nodes.facts().containers
    return Facts(
        topology=topology,
        attributes=attributes(topology),
        kubelet=kubelet,
        containers=(msgspec.structs.replace(web, exclusive=HELD),),
        usage=Usage(containers_of="", cpu=machines.cpu_times(topology, {})),
    )


@pytest.fixture
def cluster(db: None) -> Cluster:
    made = seeds.cluster()
    seeds.node(made, "vast", vast())
    return made


def page(client: Client, cpu: str, language: str) -> str:
    asked = urlencode({"m": planned.job(cpu), "node": "vast"})
    return client.get(f"/c/east/planner/?{asked}", headers={"accept-language": language}).content.decode()


def test_the_page_says_so(cluster: Cluster, as_viewer: Client) -> None:
    english = page(as_viewer, "30", "en")
    assert "asks for 2 CPUs; 1 more would be refused." in english
    assert ENGLISH in english
    assert CHINESE in page(as_viewer, "30", "zh-hans")


def test_rest_says_so(cluster: Cluster, as_viewer: Client) -> None:
    told = {}
    for cpu in ("30", "4"):
        body = msgspec.json.encode({"manifest": planned.job(cpu), "trace": True})
        answer = as_viewer.post("/api/v1/clusters/east/plan/", body, content_type="application/json").json()
        trace = answer["groups"][0]["nodes"][0]["trace"]
        told[cpu] = (trace["advice"][0]["value"], trace["advice_complete"])
    assert told == {"30": ("2", False), "4": ("2", True)}


def test_a_terminal_says_so(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(planned.job("30"))
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("plan", str(file), "--node", "vast", "--language", "zh-hans", stdout=out)
    assert CHINESE in out.getvalue()
