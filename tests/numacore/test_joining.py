"""What a node could not tell of its containers, from the pods of the API server: names, uids, one container where two were told."""

import msgspec

from numacore import joining
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.joining import Pod
from numacore.kubeletstate import CpuManagerState, Kubelet
from numacore.report import node_report
from numacore.usage import ContainerUse, Usage
from numacore.workload import Container, DeviceClaim
from tests.numacore import machines

MAIN, PROXY, SANDBOX = "a" * 64, "b" * 64, "c" * 64
POD = Pod("u1", "shop", "web-0", {MAIN: "main", PROXY: "proxy"})


def group(id: str, uid: str = "u1", **more: object) -> Container:  # noqa: A002 - as its field is called
    made = Container(
        id=id, cgroup=f"/kubepods/pod{uid}/{id}", pod_uid=uid, qos="Guaranteed", cpus=CpuSet.parse("2-3")
    )
    return msgspec.structs.replace(made, **more)


def told(name: str, pod: str = "web-0", **more: object) -> Container:
    """As the kubelet's socket alone tells it."""
    made = Container(
        id=f"shop/{pod}/{name}", namespace="shop", pod=pod, name=name, exclusive=CpuSet.parse("2-3")
    )
    return msgspec.structs.replace(made, **more)


def facts(*containers: Container, kubelet: Kubelet | None = None, usage: Usage | None = None) -> Facts:
    topology = machines.topology({0: "0-3", 1: "4-7"})
    return Facts(topology=topology, kubelet=kubelet, containers=containers, usage=usage)


def names(found: Facts) -> list[str]:
    return [
        "/".join(str(part) for part in (each.namespace, each.pod, each.name)) for each in found.containers
    ]


def test_nothing_is_wanted_where_the_node_told_everything() -> None:
    whole = group(MAIN, namespace="shop", pod="web-0", name="main")
    service = Container(id="/system.slice/x.service", kubernetes=False, name="x.service")
    assert not joining.wanted((whole, service))
    assert joining.wanted((group(MAIN), told("main"), whole)) == joining.Wanted(
        frozenset({"u1"}), frozenset({("shop", "web-0")})
    )


def test_a_group_without_names_gets_them_by_its_uid_and_id() -> None:
    found = joining.joined(facts(group(MAIN)), [POD])
    assert names(found) == ["shop/web-0/main"]
    assert found.containers[0].told_by_api == ("namespace", "pod", "name")


def test_what_the_node_says_itself_stays() -> None:
    mine = group(MAIN, namespace="shop", pod="as-the-node-says")
    (found,) = joining.joined(facts(mine), [POD]).containers
    assert (found.pod, found.name, found.told_by_api) == ("as-the-node-says", "main", ("name",))


def test_an_id_that_the_api_server_does_not_know_has_no_name_and_stays() -> None:
    found = joining.joined(facts(group("d" * 64)), [POD])
    assert names(found) == ["shop/web-0/None"]


def test_nobodys_pod_changes_nothing() -> None:
    before = facts(group(MAIN, "other"), told("main", "other"))
    assert joining.joined(before, [POD]) is before


def test_names_without_a_uid_get_it_from_the_pod() -> None:
    (found,) = joining.joined(facts(told("main")), [POD]).containers
    assert (found.pod_uid, found.told_by_api) == ("u1", ("pod_uid",))


def test_what_socket_and_groups_told_apart_becomes_one() -> None:
    nic = DeviceClaim("example.com/nic", ("eth1",), (1,))
    found = joining.joined(facts(group(MAIN), group(PROXY), told("main", devices=(nic,))), [POD])
    main, proxy = found.containers
    assert names(found) == ["shop/web-0/main", "shop/web-0/proxy"]
    assert (main.id, main.exclusive, main.devices, main.cpu_request) == (
        MAIN,
        CpuSet.parse("2-3"),
        (nic,),
        2.0,
    )
    assert (proxy.exclusive, proxy.devices) == (None, ())


def test_what_a_container_owns_is_looked_up_once_its_name_is_known() -> None:
    state = CpuManagerState("static", CpuSet.parse("0-1"), {"u1": {"main": CpuSet.parse("2-3")}})
    kubelet = Kubelet(present=True, cpu_state=state)
    main, proxy = joining.joined(facts(group(MAIN), group(PROXY), kubelet=kubelet), [POD]).containers
    assert (main.exclusive, main.cpu_request) == (CpuSet.parse("2-3"), 2.0)
    assert (proxy.exclusive, proxy.cpu_request) == (CpuSet(), None)


def test_the_sandbox_of_a_pod_whose_containers_are_all_here_goes_with_its_figures() -> None:
    use = ContainerUse(cpu_time=(1, 2, 3), memory=(10, 20, 30), pages={0: (4, 5, 6), 1: (7, 8, 9)})
    seen = facts(group(MAIN), group(SANDBOX), group(PROXY), usage=Usage(containers_of="h", containers=use))
    found = joining.joined(seen, [POD])
    assert [each.id for each in found.containers] == [MAIN, PROXY]
    assert found.usage is not None
    assert found.usage.containers == ContainerUse(
        cpu_time=(1, 3), memory=(10, 30), pages={0: (4, 6), 1: (7, 9)}
    )
    assert [each.memory for each in node_report(found).containers] == [10, 30]


def test_a_nameless_group_stays_while_a_container_of_its_pod_is_missing() -> None:
    found = joining.joined(facts(group(MAIN), group(SANDBOX)), [POD])
    assert [each.id for each in found.containers] == [MAIN, SANDBOX]
    assert names(found)[1] == "shop/web-0/None"


def test_sixty_containers_of_one_pod_keep_their_names() -> None:
    ids = {f"{i:064x}": f"c{i}" for i in range(60)}
    found = joining.joined(facts(*map(group, ids)), [Pod("u1", "shop", "web-0", ids)])
    assert [each.name for each in found.containers] == list(ids.values())


def test_joining_again_changes_nothing() -> None:
    once = joining.joined(facts(group(MAIN), told("main"), group(PROXY)), [POD])
    assert joining.joined(once, [POD]) is once
