"""Containers of a simulated node, read back by the real exporter, are the ones that run there."""

from pathlib import Path

import pytest

from numacore.cpuset import CpuSet
from numacore.workload import Container
from numasim import cgroups, managers, podresources, scenario, usage
from numasim.node import Node
from numasim.running import Running
from tests.numasim.conftest import Grow, Read, Reading

KINDS = {spec.name: spec for spec in scenario.cluster(8)}


def read_with_kubelet(root: Path, node: Node, read: Read) -> Reading:
    server = podresources.Server()
    try:
        server.add(root, node)
        return read(root)
    finally:
        server.close()


def meant(node: Node, each: Running) -> Container:
    """The container in the exporter's words."""
    want = each.want
    return Container(
        id=each.id,
        cgroup=f"/{cgroups.pod_path(node, each.pod)}/{cgroups.leaf(node, each.id)}",
        runtime=None if node.settings.driver == "cgroupfs" else node.spec.runtime,
        pod_uid=each.pod.uid,
        pod=each.pod.name,
        namespace=each.pod.namespace,
        name=want.name,
        qos=each.pod.qos,
        cpus=node.cpus_of(each),
        mems=node.mems_of(each),
        exclusive=each.place.cpus,
        cpu_limit=want.cpu_limit or "max",
        memory_limit=want.memory_limit or "max",
        devices=each.place.claims,
    )


@pytest.mark.parametrize("name", ["gpu-xeon-1", "npu-kunpeng-1", "npu-kunpeng-2", "cache-cxl-1", "edge-1"])
def test_it_shows_every_container_where_it_runs(name: str, grow: Grow, read: Read) -> None:
    tree = grow(KINDS[name])
    found = read_with_kubelet(tree.root, tree.node, read)
    assert found.problems == {}
    assert set(found.by_id) == {each.id for each in tree.node.containers()}
    for each in tree.node.containers():
        told, wanted = found.by_id[each.id], meant(tree.node, each)
        for field in (
            "cgroup",
            "runtime",
            "pod_uid",
            "pod",
            "namespace",
            "name",
            "qos",
            "cpus",
            "mems",
            "exclusive",
        ):
            assert getattr(told, field) == getattr(wanted, field), field
        assert (told.cpu_limit, told.memory_limit) == (wanted.cpu_limit, wanted.memory_limit)
        if tree.node.spec.cgroup == 1 or each.pod.qos == "BestEffort":
            assert told.cpu_request == each.want.cpu
        assert set(told.devices) == set(wanted.devices)
        blocks = {(block.kind, block.size, block.numa) for block in told.memory_blocks}
        assert blocks == {(block.kind, block.size, block.numa) for block in each.place.blocks}


@pytest.mark.parametrize("name", ["gpu-xeon-1", "npu-kunpeng-1"])
def test_its_kubelet_tells_every_device_used_or_not(name: str, grow: Grow, read: Read) -> None:
    tree = grow(KINDS[name])
    found = read_with_kubelet(tree.root, tree.node, read)
    told = found.kubelet.allocatable_devices
    assert told is not None
    every = {(claim.resource, each, claim.numa) for claim in told for each in claim.ids}
    kinds = {"accelerator": tree.node.spec.accelerator, "network": tree.node.spec.network}
    assert every == {
        (kinds[each.kind], each.address, () if each.numa is None else (each.numa,))
        for each in tree.node.spec.machine.attributes.devices
        if each.kind in kinds
    }
    used = {
        (claim.resource, each) for one in found.by_id.values() for claim in one.devices for each in claim.ids
    }
    assert used
    assert used <= {(name, each) for name, each, _ in every}


@pytest.mark.parametrize("name", ["gpu-grace-1", "cache-cxl-1"])
def test_no_service_of_the_system_has_its_memory_where_no_cpu_is(name: str) -> None:
    nodes = [Node(KINDS[name], seed) for seed in range(10)]
    homes = {service.home for node in nodes for service in node.services}
    assert homes <= set(nodes[0].spec.machine.with_cpus)


@pytest.mark.parametrize("name", ["db-epyc-1", "npu-kunpeng-1"])
def test_it_counts_what_containers_use(name: str, grow: Grow, read: Read) -> None:
    tree = grow(KINDS[name])
    tree.node.advance(12.0)
    tree.update()
    found = read(tree.root)
    columns = found.usage.containers
    assert columns is not None
    running = {each.id: each for each in tree.node.containers()}
    for row, container in enumerate(found.containers):
        if container.id in running:
            each = running[container.id]
            assert columns.cpu_time[row] == int(each.account.seconds(12.0) * 1e6)
            pages = usage.pages_of(tree.node, each)
            size = tree.node.spec.machine.page_size
            assert {n: column[row] for n, column in columns.pages.items() if column[row]} == {
                n: count * size for n, count in pages.items() if count
            }
            assert columns.memory[row] == sum(pages.values()) * size
    assert found.usage.cpu == usage.cpu_times(tree.node)
    assert found.usage.memory == usage.memory(tree.node)


def test_the_first_cgroups_tell_cpu_time_by_numa_node(grow: Grow, read: Read) -> None:
    tree = grow(KINDS["npu-kunpeng-1"])
    tree.node.advance(300.0)
    tree.update()
    found = read(tree.root)
    columns = found.usage.containers
    assert columns is not None
    rows = {container.id: row for row, container in enumerate(found.containers)}
    wide = next(each for each in tree.node.containers() if each.want.name == "clickhouse")
    spent = [columns.cpu_time_by_numa[node][rows[wide.id]] or 0 for node in (0, 1, 2, 3)]
    # CPUs 2-41: 30 of them on NUMA node 0, 10 on node 1, none elsewhere.
    assert spent[0] > spent[1] > 0
    assert spent[2:] == [0, 0]
    assert abs(sum(spent) - (columns.cpu_time[rows[wide.id]] or 0)) < 100


def test_it_lists_the_services_of_the_system(grow: Grow, read: Read) -> None:
    found = read(grow(KINDS["cache-cxl-1"]).root)
    services = {each.name for each in found.containers if not each.kubernetes}
    assert services == {
        "kubelet.service",
        "crio.service",
        "systemd-journald.service",
        "sshd.service",
        "chronyd.service",
    }


def test_it_tells_how_the_kubelet_is_set_and_what_it_wrote(grow: Grow, read: Read) -> None:
    tree = grow(KINDS["gpu-xeon-1"])
    found = read_with_kubelet(tree.root, tree.node, read).kubelet
    assert found.asked("topologyManagerPolicy", "none") == "single-numa-node"
    assert found.asked("memoryManagerPolicy", "None") == "Static"
    assert found.asked("reservedSystemCPUs", "") == "0-1,56-57"
    assert found.allocatable_cpus == CpuSet.parse("2-55,58-111")
    assert found.cpu_state is not None
    assert found.cpu_state.default == tree.node.pool
    assert found.cpu_state.entries == managers.cpu_entries(tree.node)
    assert found.memory_state is not None
    assert found.memory_state.policy == "Static"
    for node, tables in managers.memory_tables(tree.node).items():
        row = found.memory_state.nodes[node]["memory"]
        assert (row.allocatable, row.free) == (
            tables.tables["memory"].allocatable,
            tables.tables["memory"].free,
        )
        assert row.free + row.reserved == row.allocatable


def test_a_drop_in_that_waits_for_a_restart_differs_from_the_state(grow: Grow, read: Read) -> None:
    found = read(grow(KINDS["cache-cxl-1"]).root).kubelet
    setting = found.settings["cpuManagerPolicy"]
    assert (setting.value, setting.source) == ("static", "drop-in")
    assert found.cpu_state is not None
    assert found.cpu_state.policy == "none"


def test_what_is_missing_on_a_node_is_unknown_with_its_cause(grow: Grow, read: Read) -> None:
    found = read(grow(KINDS["sap-power-1"]).root)
    assert found.machine.topology.distance(8, 0) is None
    assert found.machine.topology.distance(0, 8) == 40
    assert found.kubelet.cpu_state is None
    assert "/var/lib/kubelet/cpu_manager_state" in found.problems
    assert "/sys/devices/system/node/node8/distance" in found.problems
