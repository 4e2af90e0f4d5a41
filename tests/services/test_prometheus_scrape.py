"""A real Prometheus scrapes a real exporter by the documented job, and the documented queries have answers.

Only the discovery is replaced: instead of asking Kubernetes for pods, the targets stand in the file with the labels that
it would have given them. The job's name and its relabelling are those of docs/prometheus/scrape-config.yaml.
"""

import json
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import servers, stack

SCRAPE = servers.ROOT / "docs" / "prometheus" / "scrape-config.yaml"
CHART = servers.ROOT / "charts" / "volcano-config-service"
DASHBOARD = json.loads((CHART / "files" / "grafana" / "dashboard.json").read_text(encoding="utf-8"))["panels"]
LABEL = "__meta_kubernetes_pod_label_app"
Query = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The exporter of a simulated server whose files move; its host and port."""
    folder = tmp_path_factory.mktemp("s")
    announced = folder / "announced.json"
    command = [sys.executable, "-m", "numasim", "run", "--nodes", "1", "--models", "epyc-nps4"]
    command += ["--dir", str(folder / "trees"), "--announce", str(announced), "--period", "0.5"]
    with servers.running(servers.Server(command, folder, lambda _: announced.exists())):
        [told] = json.loads(announced.read_text())["exporters"]
        yield told["url"].removeprefix("http://")


@pytest.fixture(scope="module")
def query(tmp_path_factory: pytest.TempPathFactory, exporter: str) -> Iterator[Query]:
    """Asks a Prometheus that scrapes the exporter, and would scrape a pod of another application if it were let."""
    configuration = yaml.safe_load(SCRAPE.read_text(encoding="utf-8"))
    configuration["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    del configuration["rule_files"]
    [job] = configuration["scrape_configs"]
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    job["static_configs"] = [
        {"targets": [exporter], "labels": {LABEL: "numa-exporter"}},
        {"targets": ["127.0.0.1:1"], "labels": {LABEL: "another-application"}},
    ]
    folder = tmp_path_factory.mktemp("prometheus")
    with stack.prometheus(folder, yaml.safe_dump(configuration)) as prometheus:

        def ask(expression: str) -> list[dict[str, Any]]:
            address = f"{prometheus.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
            with urllib.request.urlopen(address, timeout=5) as response:
                found: list[dict[str, Any]] = json.load(response)["data"]["result"]
            return found

        wait_for(lambda: bool(ask("numa_node_cpu_usage")))
        yield ask


def wait_for(there: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline, "the exporter's metrics did not arrive in Prometheus"
        time.sleep(0.2)


def values(found: list[dict[str, Any]], label: str) -> dict[str, float]:
    return {series["metric"][label]: float(series["value"][1]) for series in found}


def test_it_keeps_the_exporter_and_drops_other_pods(query: Query, exporter: str) -> None:
    assert values(query("up"), "instance") == {exporter: 1.0}
    assert query('up{job="numa-exporter"}')


def test_it_has_the_memory_of_each_numa_node(query: Query) -> None:
    total = values(query('numa_node_memory_usage{state="total"}'), "numa_node")
    assert sorted(total) == [str(node) for node in range(8)]
    parts = query('sum by (numa_node) (numa_node_memory_usage{state=~"used|free"})')
    assert values(parts, "numa_node") == total


def test_it_has_the_use_of_each_numa_node(query: Query) -> None:
    busy = values(query("numa_node_cpu_usage"), "numa_node")
    assert sorted(busy) == [str(node) for node in range(8)]
    assert all(0 < share <= 1 for share in busy.values())


def test_it_has_what_containers_were_given(query: Query) -> None:
    given = query('numa_container_allocation{resource="cpu"}')
    assert given
    for series in given:
        assert {"namespace", "pod", "container", "numa_node", "resource"} <= series["metric"].keys()
        assert 1 <= float(series["value"][1]) <= 48  # a NUMA node of this server has 48 CPUs
    assert query('numa_container_allocation{resource="memory"} > 0')


def test_it_names_the_node(query: Query) -> None:
    [node] = {series["metric"]["node"] for series in query("numa_node_memory_usage")}
    assert node
    assert query(f'numa_container_allocation{{node="{node}"}}')


def test_the_documented_questions_have_answers(query: Query) -> None:
    given = 'sum by (instance, numa_node) (numa_container_allocation{resource="cpu"})'
    [of_all] = query(f"sum({given})")
    assert float(of_all["value"][1]) > 0


@pytest.mark.parametrize("panel", DASHBOARD, ids=lambda panel: panel["title"])
def test_every_panel_of_the_dashboard_has_an_answer(query: Query, panel: dict[str, Any]) -> None:
    [asked] = panel["targets"]
    # A rate has an answer from the second scrape on.
    wait_for(lambda: bool(query(asked["expr"].replace("$node", ".*"))))
    labels = set(re.findall(r"\{\{(\w+)\}\}", asked["legendFormat"]))
    assert all(labels <= series["metric"].keys() for series in query(asked["expr"].replace("$node", ".*")))


def test_prometheus_agrees_with_the_exporter_about_its_format(exporter: str, tmp_path: Path) -> None:
    with urllib.request.urlopen(f"http://{exporter}/metrics", timeout=5) as response:
        text = response.read()
    checked = subprocess.run(
        [str(servers.program("promtool")), "check", "metrics"], input=text, capture_output=True, timeout=20
    )
    # Names that the documents fix carry no unit; nothing else may be wrong.
    said = [line for line in checked.stderr.decode().splitlines() if line]
    assert not said
