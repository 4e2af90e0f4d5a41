"""What the kubelet says is in force, and to whom the applier tells its token."""

from __future__ import annotations

from typing import Any

import pytest

from numaagent.applier import inforce
from numaagent.applier.inforce import InForce
from numaagent.applier.places import Host
from tests import servers
from tests.numaagent.applier import node as nodes
from tests.numaagent.applier.node import Node


async def restarted(node: Node) -> None:
    await node.systemd.kubelet.stop()
    await node.systemd.kubelet.start()
    await node.until_healthy()
    await nodes.until(lambda: servers.listens(node.port))


async def test_the_kubelets_own_word(node: Node) -> None:
    node.certified()
    await restarted(node)
    order = node.order(keys={**nodes.WISH, "reservedSystemCPUs": "0-1"})
    answer = await node.give(order, f"--token={node.folder / 'token'}")
    assert answer is not None
    assert (answer.outcome, answer.source) == ("applied", "configz")
    assert answer.in_force == {**nodes.WISH, "reservedSystemCPUs": "0-1"}


async def test_without_a_token_the_state_files_tell(node: Node) -> None:
    answer = await node.give(node.order())
    assert answer is not None
    assert (answer.source, answer.in_force) == ("state-files", {"cpuManagerPolicy": "static"})


@pytest.mark.parametrize(
    ("first", "tries", "source"),
    [
        (TimeoutError("timed out"), 2, "configz"),
        (ConnectionResetError("reset"), 2, "configz"),
        (ValueError("403 Forbidden"), 1, "state-files"),
    ],
)
async def test_a_kubelet_that_is_silent_at_first_is_asked_again_and_one_that_says_no_is_not(
    node: Node, monkeypatch: pytest.MonkeyPatch, first: Exception, tries: int, source: str
) -> None:
    asked: list[int] = []

    def configz(_host: Host, port: int, _token: str) -> dict[str, Any]:
        asked.append(port)
        if len(asked) == 1:
            raise first
        return {"topologyManagerPolicy": "none"}

    monkeypatch.setattr(inforce, "_configz", configz)
    found = inforce.read(host(node), node.order(), node.port, nodes.TOKEN)
    assert (len(asked), found.source) == (tries, source)
    assert (str(first) in found.why) == (source == "state-files")


async def test_a_change_that_the_kubelet_itself_did_not_confirm_says_why(node: Node) -> None:
    answer = await node.give(node.order(), f"--token={node.folder / 'token'}")
    assert answer is not None
    assert (answer.outcome, answer.source) == ("applied", "state-files")
    assert f":{node.port}/configz: " in answer.words


async def test_who_holds_no_certificate_of_the_kubelet_gets_no_token(node: Node) -> None:
    node.certified()
    await restarted(node)
    nodes.certificate(node.at("/var/lib/kubelet/pki"))  # the kubelet that runs answers with the one before
    found = inforce.read(host(node), node.order(), node.port, nodes.TOKEN)
    assert found.source == "state-files"
    assert "none of the kubelet's certificates" in found.why


async def test_a_file_that_says_so_already_and_a_kubelet_that_does_not(node: Node) -> None:
    node.certified()
    await restarted(node)
    text = node.config.read_text()
    node.config.write_text(text.replace("topologyManagerPolicy: none", "topologyManagerPolicy: restricted"))
    order = node.order(keys={"topologyManagerPolicy": "restricted"})
    answer = await node.give(order, f"--token={node.folder / 'token'}")
    assert answer is not None
    assert (answer.outcome, answer.cause.code) == ("refused", "not-in-force")


def host(node: Node) -> Host:
    return Host(str(node.tree))


SAME: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "an amount in other words": (
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1024Mi"}}]},
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}]},
        False,
    ),
    "an amount that the kubelet derives": (
        {"systemReserved": {"memory": "1Gi"}},
        {"systemReserved": {"memory": "1Gi", "cpu": "2"}, "reservedSystemCPUs": "0,4"},
        False,
    ),
    "a default for a field that goes": (
        {"topologyManagerScope": None},
        {"topologyManagerScope": "container"},
        False,
    ),
    "options that go": ({"cpuManagerPolicyOptions": None}, {}, False),
    "more beside a drop-in's": (
        {"kubeReserved": {"cpu": "1"}},
        {"kubeReserved": {"cpu": "1000m", "pid": "9"}},
        True,
    ),
}
OTHER: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "a misspelt policy": ({"topologyManagerPolicy": "restricted"}, {"topologyManagerPolicy": "none"}, False),
    "an option without effect": (
        {"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}},
        {},
        False,
    ),
    "another amount": (
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}]},
        {"reservedMemory": [{"numaNode": 1, "limits": {"memory": "1Gi"}}]},
        False,
    ),
    "a field that should go": ({"reservedSystemCPUs": None}, {"reservedSystemCPUs": "0"}, False),
    "an option that a drop-in takes away": (
        {"cpuManagerPolicyOptions": {"full-pcpus-only": None}},
        {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
        True,
    ),
    "more beside a file's": (
        {"kubeReserved": {"cpu": "1"}},
        {"kubeReserved": {"cpu": "1", "pid": "9"}},
        False,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_these_are_the_same(name: str) -> None:
    wanted, shown, drop_in = SAME[name]
    assert inforce.differences(wanted, InForce(shown, "configz"), drop_in=drop_in) == {}


@pytest.mark.parametrize("name", OTHER)
def test_these_are_not(name: str) -> None:
    wanted, shown, drop_in = OTHER[name]
    assert inforce.differences(wanted, InForce(shown, "configz"), drop_in=drop_in) == {
        name: shown.get(name) for name in wanted
    }


def test_what_nobody_tells_is_no_difference() -> None:
    assert inforce.differences({"cpuManagerPolicy": "static"}, InForce(None), drop_in=False) == {}
