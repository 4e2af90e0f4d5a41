"""A change that does not work out: the node goes back by itself, and the old kubelet is well."""

from __future__ import annotations

from typing import Any

from numacore.change.order import Answer
from tests.numaagent.applier import node as nodes
from tests.numaagent.applier.node import SERVICE, TIMER, Node


async def back(node: Node, **changes: Any) -> Answer:
    """Gives an order and asserts that the node is as before to the byte, with a kubelet that lasts."""
    files = node.files()
    answer = await node.give(node.order(**changes), hurry=1)
    assert answer is not None
    assert answer.outcome == "restored", answer.words
    assert node.files() == files
    assert await node.healthy()
    assert answer.main_pid == node.systemd.kubelet.pid
    assert not node.at("/var/lib/numaweb/undo/armed").exists()
    return answer


async def test_a_kubelet_that_does_not_start(node: Node) -> None:
    answer = await back(
        node,
        keys={
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "single-numa-node",
            "systemReserved": {},
        },
    )
    assert answer.cause.code == "kubelet-dies"
    assert answer.step == "back"


async def test_a_kubelet_that_says_ok_and_dies_later(node: Node) -> None:
    (node.tree / "doomed").touch()
    answer = await back(node)
    assert answer.cause.code == "kubelet-dies"
    assert "journalctl -u kubelet" in answer.words


async def test_a_state_file_that_had_to_go_and_was_left(node: Node) -> None:
    assert (await back(node, state_files=())).cause.code == "kubelet-dies"


async def test_a_kubelet_that_runs_and_is_never_well(node: Node) -> None:
    (node.tree / "silent").touch()
    answer = await back(node, healthy_within=5)
    assert answer.cause.code == "kubelet-silent"
    assert "500 [-]syncloop failed" in answer.words


async def test_a_kubelet_that_runs_with_another_value_than_asked(node: Node) -> None:
    node.certified()
    await node.systemd.kubelet.stop()
    await node.systemd.kubelet.start()
    (node.tree / "flag").touch()
    answer = await back_with_token(node)
    assert (answer.cause.code, answer.cause.values) == (
        "not-in-force",
        {"field": "topologyManagerPolicy", "value": "none"},
    )


async def back_with_token(node: Node) -> Answer:
    answer = await node.give(node.order(), f"--token={node.folder / 'token'}", hurry=1)
    assert answer is not None
    assert answer.outcome == "restored", answer.words
    return answer


async def test_when_the_old_kubelet_does_not_come_back_either_it_says_that_somebody_is_needed(
    node: Node,
) -> None:
    order = node.order()
    process = node.start(order)
    await nodes.until(lambda: node.systemd.kubelet.starts == 2)
    (node.tree / "broken").touch()
    node.systemd.kubelet.crash()
    await nodes.until(lambda: not process.is_alive(), 60)
    assert process.exitcode == 3
    process.close()
    (node.tree / "broken").unlink()
    assert node.config.read_text().count("single-numa-node") == 0
    answer = await node.give(order)
    assert answer is not None
    assert (answer.outcome, answer.cause.code) == ("restored", "kubelet-dies")


async def test_the_same_order_is_not_tried_twice(node: Node) -> None:
    (node.tree / "doomed").touch()
    order = node.order()
    first = await node.give(order, hurry=1)
    (node.tree / "doomed").unlink()
    starts = node.systemd.kubelet.starts
    again = await node.give(order)
    assert again == first
    assert node.systemd.kubelet.starts == starts
    later = await node.give(node.order())
    assert later is not None
    assert later.outcome == "applied"


async def test_a_disk_that_is_full_once_the_kubelet_is_stopped(node: Node) -> None:
    files = node.files()
    answer = await node.give(node.order(), full="take")
    assert answer is not None
    assert answer.outcome == "restored", answer.words
    assert "No space left on device" in answer.words
    assert node.files() == files
    assert await node.healthy()


async def test_systemd_that_never_answers_the_stop(node: Node) -> None:
    node.systemd.silent = {"StopUnit"}
    files = node.files()
    answer = await node.give(node.order(), call=1.5)
    assert answer is not None
    assert (answer.outcome, answer.cause.code) == ("restored", "dbus-silent")
    kubelet = {name: each for name, each in files.items() if name.startswith("var")}
    assert {name: each for name, each in node.files().items() if name.startswith("var")} == kubelet
    assert await node.healthy()


async def test_systemd_that_does_not_answer_any_start_any_more_leaves_it_to_the_dead_man(node: Node) -> None:
    node.systemd.silent = {"StartUnit"}
    order = node.order()
    state = node.state()
    answer = await node.give(order, call=1.5)
    assert answer is not None
    assert answer.outcome == "failed"
    assert f"{TIMER} will try again" in answer.words
    await node.systemd.fire(TIMER)
    assert await node.healthy()
    assert node.config.read_text().count("single-numa-node") == 0
    assert node.state() == state
    node.systemd.silent = set()
    answer = await node.give(order)
    assert answer is not None
    assert (answer.outcome, answer.cause.code) == ("restored", "dead-man")


async def test_a_bus_that_goes_away_once_the_kubelet_is_stopped(node: Node) -> None:
    order = node.order()
    process = node.start(order, job=3)
    await nodes.until(lambda: "StopUnit kubelet.service" in node.systemd.calls)
    await node.stop_bus()
    await nodes.until(lambda: not process.is_alive(), 60)
    assert process.exitcode == 3
    process.close()
    await node.systemd.fire(TIMER)
    assert await node.healthy()
    assert node.config.read_text().count("single-numa-node") == 0


async def test_going_back_is_the_dead_mans_service(node: Node) -> None:
    (node.tree / "doomed").touch()
    await back(node)
    assert f"StartUnit {SERVICE}" in node.systemd.calls
