"""A node's page: from a slow application to the reason in two clicks."""

import html
import json
import re
import time

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from monitoring.models import Cluster, Endpoint, Node, SourceView
from monitoring.views.node import TABS
from numacore import wire
from numacore.cpuset import CpuSet
from numacore.kubeletstate import CpuManagerState, Setting
from numacore.report import node_report
from tests.monitoring import planned
from tests.monitoring.pages import machines, seeds
from tests.monitoring.pages.conftest import CART, POSTGRES
from tests.numacore.whatif import nodes


def page(client: Client, node: str = "node-07", language: str = "en", **query: str) -> str:
    return client.get(f"/c/east/nodes/{node}/", query, headers={"Accept-Language": language}).content.decode()


def row(text: str, container: str) -> str:
    return text.split(f'<tbody data-container="{container}">')[1].split("</tbody>")[0]


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_it_answers_in_its_first_sentence(east: Cluster, as_viewer: Client) -> None:
    text = page(as_viewer)
    assert "2 containers reach across NUMA nodes." in text
    assert "Worst is ml-serve / ranker-5f7c / worker: its CPUs are on NUMA 2, 3." in text
    assert "67% of its memory lies on NUMA 0, 1." in text


def test_charts_wait_for_no_script_that_they_do_not_need(east: Cluster, as_viewer: Client) -> None:
    shown = {tab: page(as_viewer, tab=tab) for tab in TABS}
    loading = {tab for tab, text in shown.items() if "htmx.js" in text}
    assert {tab for tab, text in shown.items() if " hx-" in text} <= loading
    assert (
        loading
        == {tab for tab, text in shown.items() if "plotly.js" not in text}
        == TABS.keys() - {"history"}
    )


def test_it_says_that_nothing_can_cross_on_one_numa_node(east: Cluster, as_viewer: Client) -> None:
    assert "This machine has one NUMA node." in page(as_viewer, "solo")
    assert "there is no distance to show" in page(as_viewer, "solo", tab="distances")


def test_it_shows_where_a_container_is_and_why(east: Cluster, as_viewer: Client) -> None:
    found = plain(row(page(as_viewer, tab="containers"), POSTGRES))
    assert "2-16 (15)" in found
    assert "0: 100%" in found  # its CPUs
    assert "0: 62%" in found  # its memory
    assert "→ NUMA 3" in found  # its device
    assert "62%" in found
    assert "Pinned: the kubelet gave it 15 CPUs of its own." in found
    assert "memory manager policy of this node is None" in found


def test_it_says_why_a_container_is_not_pinned(east: Cluster, as_viewer: Client) -> None:
    found = plain(row(page(as_viewer, tab="containers"), CART))
    assert "Not pinned: it asks for 1.5 CPUs, and only whole CPUs can be owned." in found
    assert "Ask for a whole number of CPUs, as request and as limit." in found


def test_it_lists_all_containers_and_not_only_pinned_ones(east: Cluster, as_viewer: Client) -> None:
    assert page(as_viewer, tab="containers").count("<tbody data-container=") == 5


@pytest.mark.parametrize(
    ("order", "first"), [("cost", "ranker-5f7c"), ("name", "ranker-5f7c"), ("locality", "ranker-5f7c")]
)
def test_it_orders_containers(order: str, first: str, east: Cluster, as_viewer: Client) -> None:
    text = page(as_viewer, tab="containers", order=order)
    assert first in text.split("<tbody data-container=")[1]


def test_it_finds_containers_by_a_part_of_their_name(east: Cluster, as_viewer: Client) -> None:
    found = page(as_viewer, tab="containers", q="RANKER")
    assert found.count("<tbody data-container=") == 1
    assert "ranker-5f7c" in found
    none = page(as_viewer, tab="containers", q="no such")
    assert "No container on this node has such a name" in none


def test_it_names_what_the_kubelet_is_asked_for_and_by_whom(east: Cluster, as_viewer: Client) -> None:
    text = plain(page(as_viewer, tab="kubelet"))
    assert "topologyManagerPolicy" in text
    assert "single-numa-node drop-in file /etc/kubernetes/kubelet.conf.d/10-numa.conf" in text
    assert "0-1 command line --reserved-cpus" in text
    assert (
        "memoryManagerPolicy Static ties the memory of Guaranteed pods to NUMA nodes None default None"
        in text
    )


def test_it_says_why_nobody_knows_what_is_in_force(east: Cluster, as_viewer: Client) -> None:
    of = machines.topology(sockets=2, numa=2, cores=32, threads=1)
    silent = machines.kubelet(of.online - CpuSet([0, 1]), cpu_state=None, memory_state=None)
    facts = machines.replaced(machines.server(of), kubelet=silent)
    problem = wire.Problem("kubelet", "/var/lib/kubelet/cpu_manager_state", "permission denied", 7)
    seeds.live(Node.objects.get(name="node-07"), facts, node_report(facts), seeds.now(), (problem,))
    text = plain(page(as_viewer, tab="kubelet"))
    assert "unknown cpu_manager_state: permission denied" in text
    assert "unknown memory_manager_state was not found" in text
    assert "unknown no file on the node tells it" in text.split("topologyManagerScope")[1]


def test_it_says_when_something_else_is_in_force(east: Cluster, as_viewer: Client) -> None:
    of = machines.topology(sockets=2, numa=1, cores=4, threads=1)
    facts = machines.server(of)
    kubelet = machines.kubelet(of.online - CpuSet([0, 1]), cpu_state=CpuManagerState("none", of.online, {}))
    seeds.node(east, "odd", machines.replaced(facts, kubelet=kubelet))
    text = plain(page(as_viewer, "odd", tab="kubelet"))
    assert "asked for the CPU manager policy static, but none is in force" in text
    assert "not what is asked for" in text


def word_of_the_kubelet(**values: object) -> None:
    node = Node.objects.get(name="node-07")
    SourceView.objects.create(node=node, source="configz", changed=timezone.now(), values=values)


def test_it_takes_the_kubelets_own_word_for_what_is_in_force(east: Cluster, as_viewer: Client) -> None:
    word_of_the_kubelet(settings={"topologyManagerPolicy": "none"})
    text = plain(page(as_viewer, tab="kubelet"))
    assert (
        "single-numa-node drop-in file /etc/kubernetes/kubelet.conf.d/10-numa.conf none not what is asked for"
        in text
    )
    assert "the kubelet's own word (/configz), asked" in html.unescape(text)
    assert "unknown the kubelet does not tell it" in text


def test_it_says_why_the_kubelet_itself_could_not_be_asked(east: Cluster, as_viewer: Client) -> None:
    word_of_the_kubelet(cause="certificate verify failed", remedy="check-api-server-ca")
    text = plain(page(as_viewer, tab="kubelet"))
    assert "What is in force comes from the kubelet's state files." in html.unescape(text)
    assert "The kubelet itself could not be asked: certificate verify failed." in text


def test_it_says_that_the_kubelet_would_not_start_again_and_why(east: Cluster, as_viewer: Client) -> None:
    of = machines.topology(sockets=2, numa=1, cores=4, threads=1)
    facts = machines.server(of)
    kubelet = machines.kubelet(of.online - CpuSet([0, 1]), cpu_state=CpuManagerState("none", of.online, {}))
    seeds.node(east, "odd", machines.replaced(facts, kubelet=kubelet))
    text = plain(page(as_viewer, "odd", tab="kubelet"))
    assert "If this kubelet restarted now, it would not start; the node would become NotReady." in text
    assert 'configured policy "static" differs from state checkpoint policy "none"' in html.unescape(text)


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("it is damaged: it has no policyname", "drain the node, remove this file and restart the kubelet"),
        ("permission denied", "Let the exporter read the state files in /var/lib/kubelet."),
    ],
)
def test_it_names_the_state_file_that_cannot_be_used(
    cause: str, remedy: str, east: Cluster, as_viewer: Client
) -> None:
    of = machines.topology(sockets=2, numa=1, cores=4, threads=1)
    kubelet = machines.kubelet(of.online - CpuSet([0, 1]), cpu_state=None)
    facts = machines.replaced(machines.server(of), kubelet=kubelet)
    node = seeds.node(east, "odd", facts, heard=0)
    problems = (wire.Problem("cpu-state", "/var/lib/kubelet/cpu_manager_state", cause),)
    seeds.live(node, facts, node_report(facts), time.time(), problems)
    said = html.unescape(plain(page(as_viewer, "odd", tab="kubelet")))
    assert "Whether this kubelet would survive a restart now cannot be told." in said
    assert f"/var/lib/kubelet/cpu_manager_state cannot be used: {cause}." in said
    assert remedy in said
    told = as_viewer.get("/api/v1/clusters/east/nodes/odd/kubelet/").content.decode()
    assert f"/var/lib/kubelet/cpu_manager_state cannot be used: {cause}." in told


def test_it_says_that_the_kubelet_would_survive(east: Cluster, as_viewer: Client) -> None:
    seeds.node(east, "fine", planned.facts())
    text = plain(page(as_viewer, "fine", tab="kubelet"))
    assert "If this kubelet restarted now, it would start and keep its 1 pod." in text


def test_it_names_the_pods_that_would_not_be_taken_on_again(east: Cluster, as_viewer: Client) -> None:
    state = CpuManagerState("static", CpuSet.parse("0,2-6"), {"u1": {"web": CpuSet.parse("1,7")}})
    told = nodes.kubelet(cpu_state=state, topologyManagerPolicy=Setting("single-numa-node", "file"))
    known = msgspec.structs.replace(planned.facts(), kubelet=told)
    web = msgspec.structs.replace(
        known.containers[0], namespace="shop", pod="web-0", exclusive=CpuSet.parse("1,7")
    )
    seeds.node(east, "stricter", msgspec.structs.replace(known, containers=(web,)))
    text = plain(page(as_viewer, "stricter", tab="kubelet"))
    assert "If this kubelet restarted now, it would start and not take on 1 pod again." in text
    assert "shop/web-0" in text
    assert "TopologyAffinityError: Resources cannot be allocated with Topology locality" in text


def test_it_shows_distances_as_a_table(east: Cluster, as_viewer: Client) -> None:
    table = page(as_viewer, tab="distances").split('<table class="nw-distances">')[1].split("</table>")[0]
    cells = re.findall(r"<td class=[^>]*>([^<]*)</td>", table)
    assert [cells[i : i + 4] for i in range(0, 16, 4)] == [
        ["10", "12", "20", "20"],
        ["12", "10", "20", "20"],
        ["20", "20", "10", "12"],
        ["20", "20", "12", "10"],
    ]


def test_it_shows_an_unknown_distance_as_such(east: Cluster, as_viewer: Client) -> None:
    of = machines.topology(sockets=2, numa=1, cores=4, threads=1)
    blind = machines.replaced(of, nodes=tuple(machines.replaced(node, distances=None) for node in of.nodes))
    seeds.node(east, "blind", machines.server(blind))
    assert page(as_viewer, "blind", tab="distances").count(">?</td>") == 4


def test_it_tells_the_age_and_cause_of_old_data_with_a_remedy(east: Cluster, as_viewer: Client) -> None:
    Endpoint.objects.filter(node__name="silent").update(
        state="failing", error="connection refused", remedy="check-exporter-runs"
    )
    text = plain(page(as_viewer, "silent"))
    assert "The exporter of this node does not answer: connection refused" in text
    assert "Check that numa-exporter runs on that node and listens at this address." in text
    assert "What is shown is" in text


def test_it_names_what_cannot_be_read_where_the_person_looks(east: Cluster, as_viewer: Client) -> None:
    row = Node.objects.get(name="node-07")
    facts = machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1))
    damaged = "it is damaged: JSON is malformed: invalid character (byte 0)"
    problems = (
        wire.Problem("cpu-state", "/var/lib/kubelet/cpu_manager_state", damaged, 7),
        wire.Problem("topology", "/sys/devices/system/node/node8/distance", "it does not exist", 2),
        wire.Problem("tomorrow", "/sys/new", "a cause of tomorrow", 1),
    )
    seeds.live(row, facts, node_report(facts), seeds.now(), problems)
    text = plain(page(as_viewer))
    assert "3 things on this node cannot be read" in text
    assert (
        f"State of the CPU manager /var/lib/kubelet/cpu_manager_state {damaged} A kubelet does not start"
        in text
    )
    assert "drain the node, remove this file and restart the kubelet" in text
    assert (
        "Topology /sys/devices/system/node/node8/distance it does not exist Check that the exporter sees"
        in text
    )
    assert "tomorrow /sys/new a cause of tomorrow Look at the exporter&#x27;s log" in text
    chinese = plain(page(as_viewer, language="zh-hans"))
    assert (
        "CPU 管理器的状态 /var/lib/kubelet/cpu_manager_state 它已损坏：JSON 格式有误（第 0 字节：无效字符）"
        in chinese
    )
    assert "拓扑 /sys/devices/system/node/node8/distance 它不存在" in chinese
    assert "请先驱逐该节点上的 Pod，删除此文件，再重启 kubelet" in chinese
    assert "a cause of tomorrow" in chinese  # in the words of the exporter that said it


def test_ownership_that_a_hanging_socket_told_long_ago_looks_old(east: Cluster, as_viewer: Client) -> None:
    row = Node.objects.get(name="node-07")
    facts = machines.server(machines.topology(sockets=2, numa=2, cores=32, threads=1))
    assert facts.kubelet is not None
    now = seeds.now()
    old = machines.replaced(facts.kubelet, stale_since=now - 300)
    hangs = "the kubelet did not answer within 2 s; see whether it is busy or stuck"
    problem = wire.Problem("podresources", "/var/lib/kubelet/pod-resources/kubelet.sock", hangs, 30)
    facts = machines.replaced(facts, kubelet=old)
    seeds.live(row, facts, node_report(facts), now, (problem,))
    for tab in ("topology", "containers"):
        text = plain(page(as_viewer, tab=tab))
        assert "Who owns which CPUs, memory and devices here is 5 min old." in text
        assert "did not answer within 2 s" in text
        assert "journalctl -u kubelet" in text
    assert "此处 CPU、内存和设备的归属信息是 5 分钟前的。" in plain(page(as_viewer, language="zh-hans"))
    told = as_viewer.get("/api/v1/clusters/east/nodes/node-07/").json()
    assert 300 <= told["data"]["ownership_age"] < 360
    assert told["data"]["stale"] is False
    fresh = machines.replaced(facts, kubelet=machines.replaced(old, stale_since=None))
    seeds.live(row, fresh, node_report(fresh), now, ())
    assert "Who owns which CPUs" not in plain(page(as_viewer))


def test_why_an_exporter_fails_is_said_in_the_readers_language(east: Cluster, as_viewer: Client) -> None:
    Endpoint.objects.filter(node__name="silent").update(
        state="failing", error="10.0.0.7:9797: Connection refused", remedy="check-exporter-runs"
    )
    text = plain(page(as_viewer, "silent", language="zh-hans"))
    assert "10.0.0.7:9797: 连接被拒绝" in text


def test_it_shows_unknown_use_as_unknown(east: Cluster, as_viewer: Client) -> None:
    facts = machines.server(machines.topology(sockets=2, numa=1, cores=4, threads=1))
    seeds.node(east, "dark", facts, heard=0)
    found = as_viewer.get("/c/east/nodes/dark/drawing.json").json()
    assert set(found["cpus"]["busy"]) == {None}
    assert found["nodes"][0]["memory"]["used"] is None
    assert "unknown" in plain(page(as_viewer, "dark"))


def test_it_sends_a_document_that_can_be_read_back(east: Cluster, as_viewer: Client) -> None:
    found = json.loads(as_viewer.get("/c/east/nodes/node-07/document.json").content)
    assert found["facts"]["topology"]["nodes"][0]["cpus"] == "0-31"
    assert found["report"]["crossing"] == 2
    yaml = as_viewer.get("/c/east/nodes/node-07/document.yaml").content.decode()
    assert "  crossing: 2\n" in yaml


def test_it_escapes_what_a_node_tells(east: Cluster, as_viewer: Client) -> None:
    of = machines.topology(sockets=1, numa=2, cores=4, threads=1)
    facts = machines.server(of)
    evil = machines.replaced(facts.containers[0], pod="<script>alert(1)</script>")
    seeds.node(east, "evil", machines.replaced(facts, containers=(evil, *facts.containers[1:])))
    for tab in ("topology", "containers", "document"):
        assert "<script>alert" not in page(as_viewer, "evil", tab=tab)


def test_it_takes_an_unknown_tab_for_the_first(east: Cluster, as_viewer: Client) -> None:
    assert 'data-drawing="full"' in page(as_viewer, tab="nonsense", order="x", range="y", page="z")


def test_it_says_that_history_has_not_begun(east: Cluster, as_viewer: Client) -> None:
    charts = as_viewer.get("/c/east/nodes/node-07/history.json?range=10m").json()["charts"]
    assert set(charts) == {"busy", "memory_used", "remote_pages_rate", "crossing"}
    assert charts["busy"]["figure"] is None
    assert charts["busy"]["empty"].startswith("Nothing is stored for this range yet.")
    assert charts["busy"]["note"].startswith("from numaweb, a value every")


@pytest.mark.parametrize(
    ("query", "notice"),
    [
        ({"tab": "nonsense"}, "“nonsense” is none of: topology, distances"),
        ({"tab": "containers", "order": "colour"}, "“colour” is none of: cost, name, class, locality."),
        ({"tab": "events", "page": "0"}, "“0” is no page of this list, which has 1 to 1. Shown instead: 1."),
    ],
)
def test_it_says_what_of_an_address_it_did_not_understand(
    query: dict[str, str], notice: str, east: Cluster, as_viewer: Client
) -> None:
    assert f":</strong> {notice}" in as_viewer.get("/c/east/nodes/node-07/", query).content.decode()
