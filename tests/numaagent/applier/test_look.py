"""`--look` says what would be done, and does nothing."""

from numacore.change import order as orders
from tests.numaagent.applier.node import Node


async def look(here: Node, /, **changes: object) -> tuple[int, str]:
    said = here.folder / "said"
    everything = {path: path.read_bytes() for path in sorted(here.tree.rglob("*")) if path.is_file()}
    calls = len(here.systemd.calls)
    status = await here.run(here.order(**changes), "--look", said=str(said))
    assert {path: path.read_bytes() for path in sorted(here.tree.rglob("*")) if path.is_file()} == everything
    assert not (here.folder / "termination-log").exists()
    assert {call.split()[0] for call in here.systemd.calls[calls:]} <= {"Subscribe", "LoadUnit", "GetAll"}
    return status, said.read_text()


async def test_it_shows_the_change_the_state_files_and_the_units(node: Node) -> None:
    status, text = await look(node, state_files=("cpu_manager_state", "memory_manager_state"))
    assert status == 0
    for line in (
        "file      changes as below",
        f"kubelet   kubelet.service: loaded, active/running, process {node.systemd.kubelet.pid}",
        "state     /var/lib/kubelet/cpu_manager_state: goes",
        "state     /var/lib/kubelet/memory_manager_state: is not there",
        "dead-man  would be armed for 240 s",
        "verdict   would be carried out",
        "-topologyManagerPolicy: none   # until the new machines come",
        "+topologyManagerPolicy: single-numa-node   # until the new machines come",
        "+cpuManagerPolicy: static",
    ):
        assert line in text.splitlines()


async def test_it_needs_nothing_of_an_earlier_run(node: Node) -> None:
    node.at("/var/lib/numaweb").rmdir()
    status, text = await look(node)
    assert status == 0
    assert "verdict   would be carried out" in text.splitlines()
    assert not node.at("/var/lib/numaweb").exists()


async def test_it_says_why_not(node: Node) -> None:
    status, text = await look(node, node="other")
    assert (status, text[:41]) == (1, "refused: node: the order is for other, th")


async def test_it_says_that_there_is_nothing_to_do(node: Node) -> None:
    same = {"topologyManagerPolicy": "none"}
    before = orders.sha256(node.config.read_text())
    status, text = await look(node, keys=same, after=before)
    assert status == 0
    assert "verdict   nothing to do" in text.splitlines()
