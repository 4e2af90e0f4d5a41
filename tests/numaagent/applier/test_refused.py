"""Orders that are not carried out: each names the field, the cause and the remedy, and nothing was touched."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from numacore.change import order as orders
from numacore.change.order import Answer, Order
from tests import servers
from tests.numaagent.applier import node as nodes
from tests.numaagent.applier.node import SERVICE, TIMER, Node

MUTATIONS = ("StopUnit kubelet", "StartUnit", "RestartUnit kubelet")


async def refused(node: Node, order: Order | bytes, **how: Any) -> Answer:
    files, starts, process = node.files(), node.systemd.kubelet.starts, node.systemd.kubelet.pid
    answer = await node.give(order, **how)
    assert answer is not None
    assert answer.outcome == "refused", answer
    assert node.files() == files
    assert (node.systemd.kubelet.starts, node.systemd.kubelet.pid) == (starts, process)
    assert not [call for call in node.systemd.calls if call.startswith(MUTATIONS)]
    assert not node.at("/var/lib/numaweb/undo/armed").exists()
    return answer


def unsafe(order: Order, **fields: Any) -> bytes:
    """A document that `encode` would not make."""
    table = json.loads(orders.encode(order))
    table |= fields
    return json.dumps(table, sort_keys=True).encode()


ORDERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "another node": ({"node": "other"}, "wrong-node", "node: the order is for other"),
    "another machine": ({"machine_id": "f" * 32}, "wrong-node", "machine_id: the order is for machine fff"),
    "too late": ({"expires": 1_700_000_000}, "expired", "expires: the order was good until 2023-11-14"),
    "another file than planned": ({"before": "0" * 64}, "file-changed", "before: /var/lib/kubelet/config.yaml is not"),
    "another outcome than planned": ({"after": "0" * 64}, "outcome-differs", "after: /var/lib/kubelet/config.yaml would"),
    "a folder elsewhere": ({"root": "/data/kubelet"}, "place", "root: the kubelet's folder is /data/kubelet"),
    "another service": ({"unit": "sshd.service"}, "place", "unit: the kubelet runs as sshd.service"),
    "a file elsewhere": ({"path": "/etc/passwd.conf"}, "place", "path: /etc/passwd.conf is no"),
    "a manifest": ({"path": "/etc/kubernetes/manifests/etcd.yaml"}, "place", "path: /etc/kubernetes/manifests/etcd.yaml is no"),
    "the kubeconfig": ({"path": "/etc/kubernetes/admin.conf"}, "place", "path: /etc/kubernetes/admin.conf is no"),
    "too little time": ({"dead_man": 7}, "order", "dead_man: 7 is not from 10"),
    "no time to start": ({"dead_man": 170}, "dead-man-short", "dead_man: 170 s are not 30 s longer"),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
async def test_an_order_that_does_not_fit(node: Node, name: str) -> None:
    changes, code, words = ORDERS[name]
    good = node.order()
    answer = await refused(node, nodes.envelope(node.key, unsafe(good, **changes)))
    assert answer.cause.code == code
    assert answer.words.startswith(words)


async def test_a_field_that_no_order_may_touch(node: Node) -> None:
    document = unsafe(node.order(), keys={"staticPodPath": "/tmp"})
    answer = await refused(node, nodes.envelope(node.key, document))
    assert (answer.cause.code, answer.words[:28]) == ("order", "keys.staticPodPath: no order")


async def test_a_changed_document_under_a_good_signature(node: Node) -> None:
    good = orders.decode_signed(node.signed(node.order()))
    forged = nodes.changed(good, document=good.document.replace(b"single-numa-node", b"restricted"))
    answer = await refused(node, orders.encode_signed(forged))
    assert answer.cause.code == "signature"


async def test_a_key_that_this_node_does_not_believe(node: Node) -> None:
    document = orders.encode(node.order())
    answer = await refused(node, nodes.envelope(Ed25519PrivateKey.generate(), document))
    assert answer.cause.code == "key-unknown"


async def test_the_signature_of_something_else(node: Node) -> None:
    document = orders.encode(node.order())
    good = orders.decode_signed(nodes.envelope(node.key, document))
    answer = await refused(node, orders.encode_signed(nodes.changed(good, signature=node.key.sign(document))))
    assert answer.cause.code == "signature"


async def test_any_of_several_keys(node: Node) -> None:
    other = Ed25519PrivateKey.generate()
    (node.folder / "keys.pem").write_bytes(nodes.public(other) + nodes.public(node.key))
    answer = await node.give(node.order())
    assert answer is not None
    assert answer.outcome == "applied"


async def test_a_lower_epoch_and_another_order_with_the_same(node: Node) -> None:
    order = node.order()
    await node.give(order)
    for epoch, code in ((order.epoch - 1, "epoch"), (order.epoch, "epoch-twice")):
        answer = await node.give(node.order(epoch=epoch, keys={"topologyManagerPolicy": "restricted"}))
        assert answer is not None
        assert (answer.outcome, answer.cause.code) == ("refused", code)
    assert "single-numa-node" in node.config.read_text()


async def test_while_another_applier_is_at_work(node: Node) -> None:
    first = node.start(node.order(steady_for=12))
    await nodes.until(lambda: node.systemd.kubelet.starts == 2)
    (node.folder / "termination-log").unlink(missing_ok=True)
    text = node.config.read_text()
    answer = await node.give(node.order(keys={"topologyManagerPolicy": "restricted"}))
    assert answer is not None
    assert answer.cause.code == "busy"
    assert node.config.read_text() == text
    await nodes.until(lambda: not first.is_alive())
    assert first.exitcode == 0
    first.close()


async def test_no_bus(node: Node) -> None:
    await node.stop_bus()
    assert (await refused(node, node.order())).cause.code == "no-dbus"


async def test_a_bus_without_systemd(node: Node) -> None:
    node.systemd.vanish()
    assert (await refused(node, node.order())).cause.code == "no-systemd"


async def test_a_node_without_the_unit(node: Node) -> None:
    node.systemd.kubelet.load = "not-found"
    answer = await refused(node, node.order())
    assert answer.cause.code == "no-kubelet"
    assert "change it there" in answer.words


async def test_a_kubelet_that_is_not_well_before(node: Node) -> None:
    answer = await refused(node, node.order(healthz_port=servers.free_port()))
    assert answer.cause.code == "kubelet-unwell"


@pytest.mark.parametrize(
    "call", ["Subscribe", "LoadUnit", "GetAll", "Reload", "EnableUnitFiles", "RestartUnit"]
)
async def test_systemd_that_does_not_answer_before_anything_is_changed(node: Node, call: str) -> None:
    files = node.files()
    node.systemd.silent = {call}
    answer = await node.give(node.order(), call=1.5)
    assert answer is not None
    assert (answer.outcome, answer.cause.code) == ("refused", "dbus-silent")
    assert node.systemd.kubelet.starts == 1
    kubelet = {name: each for name, each in files.items() if name.startswith("var")}
    assert {name: each for name, each in node.files().items() if name.startswith("var")} == kubelet


async def test_systemd_that_refuses(node: Node) -> None:
    node.systemd.refuses = {"EnableUnitFiles"}
    answer = await refused(node, node.order())
    assert answer.cause.code == "dbus-refused"
    assert "Permission denied" in answer.words


async def test_a_dead_man_that_somebody_overrides(node: Node) -> None:
    node.systemd.overrides[SERVICE] = [f"/etc/systemd/system/{SERVICE}.d/off.conf"]
    answer = await refused(node, node.order())
    assert (answer.cause.code, answer.cause.values) == ("dead-man", {"unit": SERVICE})
    assert "off.conf" in answer.words


async def test_a_dead_man_that_would_not_fire(node: Node) -> None:
    async def nothing(name: str) -> None:
        pass

    node.systemd._enable = nothing  # type: ignore[method-assign]
    answer = await refused(node, node.order())
    assert (answer.cause.code, answer.cause.values) == ("dead-man", {"unit": TIMER})


def _link(node: Node) -> None:
    node.config.rename(node.config.with_suffix(".real"))
    node.config.symlink_to("config.real")


def _linked_folder(node: Node) -> None:
    node.at("/etc/kubernetes").rmdir()
    node.at("/etc/kubernetes").symlink_to("/etc")


def _folder(node: Node) -> None:
    node.config.unlink()
    node.config.mkdir()


@pytest.mark.parametrize("make", [_link, _folder])
async def test_a_file_that_is_none(node: Node, make: Callable[[Node], None]) -> None:
    order = node.order()
    make(node)
    assert (await refused(node, order)).cause.code == "unreadable"


async def test_a_folder_that_is_a_link(node: Node) -> None:
    _linked_folder(node)
    answer = await refused(node, node.order(path="/etc/kubernetes/kubelet.yaml"))
    assert answer.cause.code == "unreadable"
    assert "link" in answer.words


async def test_a_file_that_is_no_kubelets_settings(node: Node) -> None:
    node.config.write_text(node.config.read_text().replace("KubeletConfiguration", "Config"))
    assert (await refused(node, node.order())).cause.code == "not-settings"


async def test_an_original_that_was_never_kept(node: Node) -> None:
    answer = await refused(node, node.order(act="restore", after="1" * 64))
    assert answer.cause.code == "no-original"


async def test_a_write_that_fails_before_anything_is_changed(node: Node) -> None:
    answer = await refused(node, node.order(), largest=900)
    assert answer.cause.code == "system"
    assert "File too large" in answer.words


@pytest.fixture
def mounted(node: Node) -> Callable[[str, str], None]:
    """Mounts a small file system over a folder of the node, with what the folder holds."""
    if os.geteuid() != 0:
        pytest.skip("This machine lacks root, so nothing can be mounted")

    def mount(folder: str, options: str) -> None:
        place = node.at(folder)
        held = {path.name: path.read_bytes() for path in place.iterdir()}
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], capture_output=True)
        if done.returncode:
            pytest.skip(f"This machine lacks the right to mount: {done.stderr.decode()}")
        for name, data in held.items():
            (place / name).write_bytes(data)
        node.mounts.append(place)
        if options:
            subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)

    return mount


async def test_a_full_disk(node: Node, mounted: Callable[[str, str], None]) -> None:
    mounted("/var/lib/kubelet", "")
    answer = await refused(node, node.order())
    assert answer.cause.code == "no-room"
    assert answer.words.startswith("/var/lib/kubelet: there are ")


@pytest.mark.parametrize("folder", ["/var/lib/kubelet", "/var/lib/numaweb"])
async def test_a_disk_that_may_only_be_read(
    node: Node, mounted: Callable[[str, str], None], folder: str
) -> None:
    mounted(folder, "ro,size=4m")
    answer = await refused(node, node.order())
    assert answer.cause.code == "system"
    assert "Read-only file system" in answer.words


async def test_every_answer_fits_into_a_termination_message(node: Node) -> None:
    node.systemd.overrides[SERVICE] = [
        f"/etc/systemd/system/{SERVICE}.d/{'x' * 200}{n}.conf" for n in range(40)
    ]
    answer = await refused(node, node.order())
    assert answer.cause.code == "dead-man"
    assert len((node.folder / "termination-log").read_bytes()) <= 4096
