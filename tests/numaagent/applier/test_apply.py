"""none to single-numa-node and what stays of it."""

import json

import yaml

from tests.numaagent.applier.node import SERVICE, TIMER, Node


async def test_it_changes_the_settings_and_leaves_everything_else_of_the_file(node: Node) -> None:
    before = node.config.read_text()
    answer = await node.give(node.order())
    assert answer is not None
    assert (answer.outcome, answer.step, answer.words) == ("applied", "commit", "")
    text = node.config.read_text()
    assert yaml.safe_load(text) == {
        **yaml.safe_load(before),
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": "single-numa-node",
    }
    assert text.startswith("# The operator's own words\n")
    assert "topologyManagerPolicy: single-numa-node   # until the new machines come\n" in text
    assert node.config.stat().st_mode & 0o777 == 0o640
    assert json.loads(node.state())["policyName"] == "static"
    assert await node.healthy()
    assert answer.main_pid == node.systemd.kubelet.pid
    assert answer.removed_state == ("cpu_manager_state",)
    assert node.systemd.kubelet.starts == 2


async def test_it_leaves_nothing_on_the_node_but_copies(node: Node) -> None:
    before = node.files()
    state = node.state()
    order = node.order()
    await node.give(order)
    assert node.files().keys() == before.keys()
    assert not node.systemd.timers
    kept = node.at("/var/lib/numaweb")
    assert (kept / "original/var/lib/kubelet/config.yaml").read_bytes() == before[
        "var/lib/kubelet/config.yaml"
    ][0]
    assert (kept / f"changes/{order.epoch}/before").read_bytes() == before["var/lib/kubelet/config.yaml"][0]
    assert (kept / f"changes/{order.epoch}/cpu_manager_state").read_text() == state
    assert json.loads((kept / "answer.json").read_bytes())["outcome"] == "applied"
    assert not (kept / "undo/armed").exists()


async def test_the_dead_man_waits_before_the_kubelet_is_stopped(node: Node) -> None:
    await node.give(node.order())
    calls = node.systemd.calls
    stop = calls.index("StopUnit kubelet.service")
    for call in (
        f"LoadUnit {SERVICE}",
        f"LoadUnit {TIMER}",
        f"RestartUnit {TIMER}",
        "EnableUnitFiles ['" + TIMER + "']",
    ):
        assert calls.index(call) < stop


async def test_twice_it_does_nothing(node: Node) -> None:
    order = node.order()
    await node.give(order)
    files, starts, calls = node.files(), node.systemd.kubelet.starts, len(node.systemd.calls)
    answer = await node.give(order)
    assert answer is not None
    assert answer.outcome == "unchanged"
    assert node.files() == files
    assert node.systemd.kubelet.starts == starts
    assert not [
        call for call in node.systemd.calls[calls:] if call.startswith(("Stop", "Start", "Restart", "Enable"))
    ]


async def test_a_systemd_that_takes_long_to_read_its_units_is_waited_for(node: Node) -> None:
    """It starts every generator for it: on a busy node that outlasts any other call."""
    node.systemd.reload_seconds = 2.0
    answer = await node.give(node.order(), call=1.5, reload=30.0)
    assert answer is not None
    assert (answer.outcome, answer.words) == ("applied", "")
