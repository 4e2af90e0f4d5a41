"""A simulated cluster depends on its seed and the simulated time, and on nothing else."""

from collections.abc import Iterable
from pathlib import Path

from numasim import managers, scenario, usage
from numasim.node import Node
from numasim.spec import Spec
from numasim.trees import NodeTree
from tests.numasim.conftest import EPOCH

SPECS = {spec.name: spec for spec in scenario.cluster(8)}
EDGE, KUNPENG, GPU = SPECS["edge-1"], SPECS["npu-kunpeng-1"], SPECS["gpu-xeon-1"]


def contents(root: Path) -> dict[str, str | bytes]:
    """Every file with its bytes and every link with its target."""
    found: dict[str, str | bytes] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def lived(spec: Spec, seed: int, root: Path, moments: Iterable[float]) -> dict[str, str | bytes]:
    tree = NodeTree(root, Node(spec, seed), EPOCH)
    tree.write()
    for moment in moments:
        tree.node.advance(moment)
        tree.update()
    return contents(root)


def test_the_same_seed_gives_the_same_bytes_however_often_it_moved(place: Path) -> None:
    for spec, step in ((EDGE, 45), (KUNPENG, 148)):
        often = lived(spec, 7, place / f"{spec.name}-a", range(1, 901, step))
        seldom = lived(spec, 7, place / f"{spec.name}-b", [400.5, max(range(1, 901, step))])
        assert often == seldom


def test_another_seed_gives_another_node(place: Path) -> None:
    assert lived(EDGE, 1, place / "a", []) != lived(EDGE, 2, place / "b", [])


def test_pods_come_and_go_with_all_their_traces(place: Path) -> None:
    tree = NodeTree(place / "n", Node(GPU, 3), EPOCH)
    tree.write()
    before = set(tree.node.running)
    tree.node.advance(900.0)
    tree.update()
    after = set(tree.node.running)
    assert len(before - after) >= 5
    assert len(after - before) >= 5
    text = "\n".join(contents(tree.root))
    for uid in before - after:
        assert uid not in text
        assert uid.replace("-", "_") not in text
    for uid in after:
        assert uid.replace("-", "_") in text
    assert len(list((tree.root / "var/log/containers").iterdir())) == tree.node.containers_now
    assert list((tree.root / ".staging").iterdir()) == []


def test_a_node_gives_out_what_it_has_and_takes_it_back() -> None:
    node = Node(GPU, 5)
    for moment in range(0, 7200, 40):
        node.advance(float(moment))
        owned = [each.place.cpus for each in node.containers() if each.place.cpus]
        assert sum(map(len, owned)) == len(node.exclusive)
        assert not node.exclusive & node.settings.reserved
        assert node.free.cpus == node.allocatable - node.exclusive
        held = [device.address for each in node.containers() for device in each.devices]
        assert len(held) == len(set(held))
        for table in managers.memory_tables(node).values():
            assert all(
                row.reserved + row.free == row.allocatable and row.free >= 0 for row in table.tables.values()
            )


def test_policies_place_pods_as_they_promise() -> None:
    for name, most in (("gpu-xeon-1", 1), ("npu-kunpeng-1", 2)):
        node = Node(SPECS[name], 2)
        node.advance(1800.0)
        for each in node.containers():
            assert len(node.topology.numa_of(each.place.cpus)) <= most
    assert not Node(SPECS["cache-cxl-1"], 2).exclusive


def test_the_cluster_has_something_to_explain() -> None:
    """CPUs, memory and devices across NUMA nodes, each somewhere from the first minute on."""
    kinds = set()
    for spec in SPECS.values():
        node = Node(spec, 1)
        for each in node.containers():
            home = set(node.topology.numa_of(each.place.cpus))
            kinds |= {"cpu"} if len(home) > 1 else set()
            kinds |= {"memory"} if home and set(each.pages) - home else set()
            kinds |= {"device"} if home and any(d.numa not in home for d in each.devices) else set()
    assert kinds == {"cpu", "memory", "device"}


def test_every_cpu_stays_between_idle_and_full_and_something_moves_each_second() -> None:
    node = Node(KUNPENG, 4)
    before, pictures = usage.cpu_times(node), set()
    for second in range(1, 300):
        node.advance(float(second))
        now = usage.cpu_times(node)
        busy = [b - a for a, b in zip(before.busy, now.busy, strict=True)]
        idle = [b - a for a, b in zip(before.idle, now.idle, strict=True)]
        # One tick of rounding: counters are cut to whole ticks.
        assert all(0 <= ticks <= 101 for ticks in busy)
        assert all(-1 <= ticks <= 100 for ticks in idle)
        pictures.add(tuple(busy))
        before = now
    assert len(pictures) == 299


def test_no_two_nodes_of_a_cluster_share_a_pod() -> None:
    nodes = [Node(spec, 1) for spec in SPECS.values()]
    for node in nodes:
        node.advance(600.0)
    names = [(r[0].pod.namespace, r[0].pod.name) for node in nodes for r in node.running.values()]
    assert len(names) == len(set(names))
