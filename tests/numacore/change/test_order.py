"""What an applier takes, and what it may never be asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numacore.change import order
from numacore.change.order import ALLOWED, MAX_ANSWER, Answer, Order, OrderError, Signed

HASH = order.sha256("kind: KubeletConfiguration\n")
GOOD = Order(
    act="apply",
    node="worker-1",
    uid="6f6d",
    epoch=7,
    rollout="r1",
    path="/var/lib/kubelet/config.yaml",
    keys={
        "topologyManagerPolicy": "single-numa-node",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
    },
    removed=("reservedMemory",),
    before=HASH,
    after=order.sha256("x"),
    state_files=("cpu_manager_state",),
    expires=1_900_000_000,
)


def test_an_order_travels_as_the_same_bytes_whatever_its_order_of_keys() -> None:
    turned = msgspec.structs.replace(GOOD, keys=dict(reversed(GOOD.keys.items())))
    assert order.encode(GOOD) == order.encode(turned)
    assert order.decode(order.encode(GOOD)) == GOOD


def test_a_signature_of_something_else_is_none_of_an_order() -> None:
    document = order.encode(GOOD)
    assert order.signed_bytes(document) != document
    signed = Signed(document=document, signature=b"\x01" * 64, key="k1")
    assert order.decode_signed(order.encode_signed(signed)) == signed


def test_only_fields_of_placement_and_reservation_may_be_touched() -> None:
    assert ALLOWED == {
        "cpuManagerPolicy", "cpuManagerPolicyOptions", "kubeReserved", "memoryManagerPolicy", "reservedMemory",
        "reservedSystemCPUs", "systemReserved", "topologyManagerPolicy", "topologyManagerPolicyOptions", "topologyManagerScope",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("keys.staticPodPath", {"keys": {"staticPodPath": "/tmp"}}),
        ("keys.featureGates", {"keys": {"featureGates": {"A": True}}}),
        ("keys", {"keys": {"cpuManagerPolicyOptions": {"full-pcpus-only": True}}}),
        ("keys", {"keys": {"reservedMemory": [{"numaNode": "0", "limits": {}}]}}),
        ("keys", {"keys": {"reservedSystemCPUs": None}}),
        ("keys", {"keys": {"systemReserved": {"cpu": None}}}),
        ("removed", {"removed": ("authentication",)}),
        ("removed", {"removed": ("topologyManagerPolicy",)}),
        ("removed", {"drop_in": True}),
        ("path", {"path": "/var/lib/kubelet/../../etc/passwd"}),
        ("path", {"path": "var/lib/kubelet/config.yaml"}),
        ("path", {"path": "/var/lib/kubelet/$(id)"}),
        ("root", {"root": "/var/lib/./kubelet"}),
        ("unit", {"unit": "kubelet.service; reboot"}),
        ("unit", {"unit": "kubelet"}),
        ("before", {"before": "abc"}),
        ("after", {"after": HASH.upper()}),
        ("node", {"node": ""}),
        ("rollout", {"rollout": ""}),
        ("epoch", {"epoch": 0}),
        ("healthz_port", {"healthz_port": 70000}),
        ("healthy_within", {"healthy_within": 0}),
        ("dead_man", {"dead_man": 140}),
        ("version", {"version": 2}),
    ],
)
def test_what_no_order_may_ask_is_refused_by_its_field(field: str, changed: dict[str, Any]) -> None:
    wrong = msgspec.structs.replace(GOOD, **changed)
    with pytest.raises(OrderError) as made:
        order.encode(wrong)
    with pytest.raises(OrderError) as read:
        order.decode(msgspec.json.encode(wrong))
    assert made.value.field == read.value.field == field


def test_null_takes_away_in_a_drop_in() -> None:
    own = msgspec.structs.replace(
        GOOD,
        drop_in=True,
        path="/etc/kubernetes/kubelet.conf.d/90-numa.conf",
        removed=(),
        keys={"reservedSystemCPUs": None, "cpuManagerPolicyOptions": {"full-pcpus-only": None}},
    )
    assert order.decode(order.encode(own)) == own


@pytest.mark.parametrize(
    "document",
    [b"", b"{}", b"[]", b"null", order.encode(GOOD)[:-1], order.encode(GOOD).replace(b'"act"', b'"acts"'), b"[" * 100_000, b" " * (order.MAX_BYTES + 1)],
)  # fmt: skip
def test_what_is_no_order_is_refused(document: bytes) -> None:
    with pytest.raises(OrderError):
        order.decode(document)


def test_an_answer_fits_into_a_termination_message_whatever_a_program_said() -> None:
    answer = Answer(
        outcome="restored",
        node="worker-1",
        epoch=7,
        rollout="r1",
        words="é" * 20_000,
        in_force={f"field{at}": "x" * 50 for at in range(20)},
    )
    data = order.encode_answer(answer)
    assert len(data) <= MAX_ANSWER
    told = order.decode_answer(data)
    assert (told.outcome, told.epoch) == ("restored", 7)
    assert told.words.startswith("é" * 100)
    huge = msgspec.structs.replace(answer, in_force={"field": "x" * 10_000})
    assert len(order.encode_answer(huge)) <= MAX_ANSWER


def test_an_answer_of_a_newer_applier_is_understood() -> None:
    data = order.encode_answer(Answer(outcome="applied", node="a", epoch=1, rollout="r"))
    assert order.decode_answer(data[:-1] + b',"later":1}').outcome == "applied"
