"""Back to what stood there before the product's first change, to the byte; and a drop-in that is ours goes."""

from __future__ import annotations

import os

import pytest

from numacore.change import editing
from numacore.change import order as orders
from tests.numaagent.applier.node import WISH, Node

DROP_IN = "/etc/kubernetes/kubelet.conf.d/90-numa.conf"


async def test_after_several_changes_the_first_file_is_back(node: Node) -> None:
    first = node.config.read_text()
    await node.give(node.order())
    await node.give(node.order(keys={"topologyManagerPolicy": "restricted"}, state_files=()))
    assert "topologyManagerPolicy: restricted" in node.config.read_text()
    answer = await node.give(node.order(act="restore", keys={}, after=orders.sha256(first)))
    assert answer is not None
    assert answer.outcome == "applied", answer.words
    assert node.config.read_text() == first
    assert node.config.stat().st_mode & 0o777 == 0o640
    assert await node.healthy()
    assert node.at("/var/lib/numaweb/original/var/lib/kubelet/config.yaml").read_text() == first


async def test_an_owner_an_attribute_and_a_mode_stay(node: Node) -> None:
    if os.geteuid() != 0:
        pytest.skip("This machine lacks root, so no file can have another owner")
    os.chown(node.config, 12, 34)
    os.setxattr(node.config, "user.note", b"kept")
    node.config.chmod(0o604)
    first = node.config.read_text()
    for order in ({}, {"act": "restore", "keys": {}, "after": orders.sha256(first)}):
        answer = await node.give(node.order(**order))
        assert answer is not None
        assert answer.outcome == "applied"
        found = node.config.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12, 34, 0o604)
        assert os.getxattr(node.config, "user.note") == b"kept"


async def test_a_drop_in_is_made_and_goes(node: Node) -> None:
    node.at(DROP_IN).parent.mkdir()
    files = node.files()
    text = editing.drop_in(WISH)
    made = node.order(path=DROP_IN, drop_in=True, before="", after=orders.sha256(text))
    answer = await node.give(made)
    assert answer is not None
    assert answer.outcome == "applied", answer.words
    assert node.at(DROP_IN).read_text() == text
    gone = node.order(
        act="restore", path=DROP_IN, drop_in=True, keys={}, before=orders.sha256(text), after=""
    )
    answer = await node.give(gone)
    assert answer is not None
    assert answer.outcome == "applied", answer.words
    assert not node.at(DROP_IN).exists()
    assert node.files().keys() == files.keys()
    assert node.config.read_bytes() == files["var/lib/kubelet/config.yaml"][0]


async def test_a_drop_in_that_does_not_work_out_goes_too(node: Node) -> None:
    node.at(DROP_IN).parent.mkdir()
    (node.tree / "doomed").touch()
    files = node.files()
    made = node.order(path=DROP_IN, drop_in=True, before="", after=orders.sha256(editing.drop_in(WISH)))
    answer = await node.give(made, hurry=1)
    assert answer is not None
    assert answer.outcome == "restored"
    assert node.files() == files


async def test_a_sick_kubelet_may_be_restored(node: Node) -> None:
    first = node.config.read_text()
    await node.give(node.order())
    (node.tree / "doomed").touch()
    node.systemd.kubelet.crash()
    answer = await node.give(node.order(act="restore", keys={}, after=orders.sha256(first)))
    assert answer is not None
    assert answer.outcome == "applied", answer.words
    assert node.config.read_text() == first


async def test_a_damaged_copy_is_not_put_back(node: Node) -> None:
    first = node.config.read_text()
    await node.give(node.order())
    changed = node.config.read_text()
    with node.at("/var/lib/numaweb/original/var/lib/kubelet/config.yaml").open("a") as file:
        file.write("# by somebody\n")
    answer = await node.give(node.order(act="restore", keys={}, after=orders.sha256(first)))
    assert answer is not None
    assert (answer.outcome, answer.cause.code) == ("refused", "original-damaged")
    assert node.config.read_text() == changed


async def test_an_edit_after_the_restore_is_the_next_original(node: Node) -> None:
    first = node.config.read_text()
    await node.give(node.order())
    await node.give(node.order(act="restore", keys={}, after=orders.sha256(first)))
    node.config.write_text(first + "maxPods: 64\n")
    await node.give(node.order())
    kept = node.at("/var/lib/numaweb/original/var/lib/kubelet/config.yaml")
    assert kept.read_text() == first + "maxPods: 64\n"
