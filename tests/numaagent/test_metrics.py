"""`/metrics`: both formats are what Prometheus reads, the numbers are the node's, the unknown is left out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from numaagent.exporter import exposition, families
from numaagent.exporter.exposition import Family
from numaagent.exporter.metrics import Page
from numaagent.exporter.node import VERSION, Node
from tests.numaagent import trees
from tests.numaagent.conftest import Open
from tests.numaagent.test_containers import MACHINE, MOUNT_V2, NAMES, SLICE, STATE, SYSTEMD_V2, V2, WEB
from tests.servers import ROOT

NODE = "sys/devices/system/node"
WHO = {"node": "n", "namespace": "shop", "pod": "web-0", "container": "web"}
CONFIG = """
var/lib/kubelet/config.yaml <<
	kind: KubeletConfiguration
"""
MEMORY = f"""
{NODE}/node[0-1]/meminfo <<
	Node 0 MemTotal: 100 kB
	Node 0 MemFree: 60 kB
	Node 0 MemUsed: 40 kB
	Node 0 FilePages: 10 kB
	Node 0 AnonPages: 20 kB
{NODE}/node[0-1]/numastat <<
	numa_hit 11
	numa_miss 22
"""
PAGES = f"""
{SLICE}/cri-containerd-{WEB}.scope/cpu.stat = usage_usec 1000000
{SLICE}/cri-containerd-{WEB}.scope/memory.current = 4096
{SLICE}/cri-containerd-{WEB}.scope/memory.numa_stat <<
	anon N0=1000 N1=3000
	file N0=0 N1=0
"""


def stat(busy: int, idle: int) -> str:
    return "cpu  0 0 0 0\n" + "".join(f"cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 0 0\n" for cpu in range(8))


class Metrics:
    """A page as Prometheus reads it."""

    def __init__(self, node: Node, now: float) -> None:
        page = Page(node, 1_600_000_000.0)
        self.text = page.text(now, 1_700_000_000.0 + now, False).decode()
        self.open = page.text(now, 1_700_000_000.0 + now, True).decode()
        self.families: dict[str, Metric] = {family.name: family for family in parse(self.text)}

    def value(self, name: str, **labels: str) -> float | None:
        """A sample's value; None if there is no such sample."""
        wanted = {"node": "n", **{label.rstrip("_"): value for label, value in labels.items()}}
        found = [
            sample.value
            for family in self.families.values()
            for sample in family.samples
            if sample.name == name and sample.labels == wanted
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def of_web(self, name: str, **labels: str) -> float | None:
        return self.value(name, **WHO, **labels)


@pytest.fixture
def measured(open_node: Open, tmp_path: Path) -> Metrics:
    """Two readings 10 s apart: CPUs 0 to 3 and 4 to 7 a quarter busy."""
    root = trees.build(SYSTEMD_V2 + NAMES + STATE + CONFIG + MEMORY + PAGES, tmp_path)
    (root / "proc" / "stat").write_text(stat(1000, 1000))
    node = open_node(root, NODE_NAME="n")
    node.adopt(node.survey(100, 0))
    node.sample(100, 0)
    (root / "proc" / "stat").write_text(stat(1250, 1750))
    node.adopt(node.survey(110, 0))
    node.sample(110, 10)
    return Metrics(node, 110)


def test_it_shows_the_documents_three_metrics(measured: Metrics) -> None:
    assert measured.value("numa_node_cpu_usage", numa_node="0") == 0.25
    assert measured.value("numa_node_memory_usage", numa_node="1", state="total") == 100 * 1024
    assert measured.value("numa_node_memory_usage", numa_node="1", state="used") == 40 * 1024
    assert measured.value("numa_node_memory_usage", numa_node="1", state="free") == 60 * 1024
    assert measured.of_web("numa_container_allocation", numa_node="1", resource="cpu") == 2
    assert measured.of_web("numa_container_allocation", numa_node="0", resource="memory") == 1000
    assert measured.of_web("numa_container_allocation", numa_node="1", resource="memory") == 3000


def test_it_shows_their_companions(measured: Metrics) -> None:
    assert measured.value("numa_node_cpu_seconds_total", numa_node="0", mode="user") == 4 * 12.5
    assert measured.value("numa_node_cpu_seconds_total", numa_node="0", mode="steal") == 0
    assert measured.value("numa_node_memory_bytes", numa_node="0", state="anonymous") == 20 * 1024
    assert measured.value("numa_node_distance", from_="0", to="1") == 21
    assert measured.value("numa_node_cpus", numa_node="1", state="exclusive") == 2
    assert measured.value("numa_node_numastat_pages_total", numa_node="0", counter="numa_miss") == 22
    assert measured.of_web("numa_container_locality_ratio") == 0.75
    assert measured.of_web("numa_container_access_cost_ratio") == pytest.approx(0.75 + 0.25 * 2.1)
    assert measured.of_web("numa_container_cross_numa", kind="memory") == 1
    assert measured.of_web("numa_container_cross_numa", kind="cpu") == 0
    assert measured.value("numa_topology_policy_info", policy="none", scope="container") == 1
    assert measured.value("numa_exporter_scrape_errors_total", reader="memory") == 0


def test_it_shows_no_allocation_of_containers_that_float(measured: Metrics) -> None:
    side = {**WHO, "container": "side-car"}
    assert measured.value("numa_container_allocation", **side, numa_node="0", resource="cpu") is None


def test_it_shows_itself(measured: Metrics) -> None:
    found = {sample.name: sample for family in measured.families.values() for sample in family.samples}
    assert found["numa_exporter_build_info"].labels["version"] == VERSION
    assert found["process_start_time_seconds"].value == 1_600_000_000.0
    assert found["process_resident_memory_bytes"].value > 10_000_000
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text()


def test_it_leaves_out_ratios_before_the_first_interval(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(SYSTEMD_V2 + NAMES, tmp_path)
    (root / "proc" / "stat").write_text(stat(1, 1))
    node = open_node(root, NODE_NAME="n")
    node.adopt(node.survey(100, 0))
    before = Metrics(node, 100)
    assert "numa_node_cpu_usage" not in before.families
    assert "numa_container_locality_ratio" not in before.families
    node.sample(100, 0)
    once = Metrics(node, 101)
    assert "numa_node_cpu_usage" not in once.families
    assert once.value("numa_node_distance", from_="0", to="1") == 21


def test_it_leaves_out_what_cannot_be_read(open_node: Open, tmp_path: Path) -> None:
    node = open_node(trees.build(SYSTEMD_V2 + NAMES, tmp_path), NODE_NAME="n")
    for now in (100, 110):
        node.adopt(node.survey(now, 0))
        node.sample(now, now)
    found = Metrics(node, 110)
    for absent in ("numa_node_cpu_usage", "numa_node_memory_usage", "numa_node_cpu_seconds", "numa_node_memory_bytes",
                   "numa_node_numastat_pages", "numa_container_locality_ratio", "numa_topology_policy"):  # fmt: skip
        assert not [name for name in found.families if name.startswith(absent)], absent
    assert found.value("numa_exporter_scrape_errors_total", reader="cpu-times") == 2


def test_it_leaves_out_distances_that_are_unknown(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(SYSTEMD_V2 + NAMES + PAGES, tmp_path)
    (root / NODE / "node0" / "distance").write_text("10 20 30\n")
    node = open_node(root, NODE_NAME="n")
    node.adopt(node.survey(100, 0))
    node.sample(100, 0)
    found = Metrics(node, 100)
    assert found.value("numa_node_distance", from_="0", to="1") is None
    assert found.value("numa_node_distance", from_="1", to="0") == 21
    assert found.of_web("numa_container_access_cost_ratio") is not None  # its CPUs are on NUMA node 1


ODD = f"""
{MACHINE}
{MOUNT_V2}
{V2}/cgroup.controllers = cpuset cpu memory
{V2}/cpuset.cpus.effective = 0-7
{V2}/we"ird\\x5cname/cgroup.procs = 1
{V2}/a/same/cgroup.procs = 1
{V2}/b/same/cgroup.procs = 1
{V2}/we"ird\\x5cname/memory.numa_stat <<
	anon N0=1 N1=1
	file N0=1 N1=1
"""


def test_it_escapes_names_and_repeats_no_series(open_node: Open, tmp_path: Path) -> None:
    node = open_node(trees.build(ODD, tmp_path), NODE_NAME='n"\\')
    node.adopt(node.survey(100, 0))
    node.sample(100, 0)
    found = Metrics(node, 100)
    series = [
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in found.families.values()
        for sample in family.samples
    ]
    assert len(series) == len(set(series))
    containers = {
        sample.labels["container"] for sample in found.families["numa_container_cross_numa"].samples
    }
    assert containers == {'/we"ird\\x5cname', "/a/same", "/b/same"}
    assert {sample.labels["node"] for sample in found.families["numa_container_cross_numa"].samples} == {
        'n"\\'
    }


def test_it_speaks_openmetrics(measured: Metrics) -> None:
    found = {family.name: family for family in openmetrics.text_string_to_metric_families(measured.open)}
    assert measured.open.endswith("\n# EOF\n")
    assert (found["numa_node_cpu_seconds"].type, found["numa_node_cpu_seconds"].unit) == (
        "counter",
        "seconds",
    )
    assert found["numa_topology_policy"].type == "info"
    assert found["numa_node_cpu_usage"].unit == ""  # its name has no unit, so it may not tell one
    values = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in found.values()
        for sample in family.samples
        if not sample.name.startswith("process_")
    }
    plain = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in measured.families.values()
        for sample in family.samples
        if not sample.name.startswith("process_")
    }
    assert values == plain


def test_it_explains_every_metric(measured: Metrics) -> None:
    told = [value for value in vars(families).values() if isinstance(value, Family)]
    for family in told:
        if family.name in measured.text:
            assert f"# HELP {family.sample} {family.help}" in measured.text
            assert f"# TYPE {family.sample} " in measured.text
        assert family.help.endswith(".")
    assert {family.name for family in told if family.sample not in measured.text} == set()


def test_it_passes_promtool(measured: Metrics) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("not here: promtool")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=measured.text, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5",
            True,
        ),
        ("application/openmetrics-text;q=0.3,text/plain;q=0.9", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=many", False),
    ],
)
def test_it_gives_the_format_that_is_asked_for(accept: str, wanted: bool) -> None:
    assert exposition.wants_open(accept) is wanted


def test_it_makes_figures_of_containers_once_for_each_interval(
    measured: Metrics, open_node: Open, tmp_path: Path
) -> None:
    node = open_node(tmp_path, NODE_NAME="n")
    page = Page(node, 1.0)
    node.adopt(node.survey(100, 0))
    node.sample(100, 0)
    page.text(100, 0, False)
    made = page._slow[False]
    page.text(105, 0, False)
    assert page._slow[False] is made
    node.sample(110, 10)
    page.text(110, 0, False)
    assert page._slow[False] is not made
