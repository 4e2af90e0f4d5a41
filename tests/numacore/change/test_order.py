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
    assert order.signed_bytes(document) == b"numaweb order 1\n" + document
    signed = Signed(document=document, signature=b"\x01" * 64, key="k1")
    assert order.decode_signed(order.encode_signed(signed)) == signed


def test_hash_and_name_of_a_key_are_what_the_other_side_makes_of_them() -> None:
    assert (order.sha256(None), order.sha256("abc")[:16]) == ("", "ba7816bf8f01cfea")
    assert order.key_name(b"abc") == "ba7816bf8f01cfea"


def test_only_fields_of_placement_and_reservation_may_be_touched() -> None:
    assert ALLOWED == {
        "cpuManagerPolicy", "cpuManagerPolicyOptions", "kubeReserved", "memoryManagerPolicy", "reservedMemory",
        "reservedSystemCPUs", "systemReserved", "topologyManagerPolicy", "topologyManagerPolicyOptions", "topologyManagerScope",
    }  # fmt: skip


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("keys.staticPodPath", {"keys": {"staticPodPath": "/tmp"}}, "no order may touch this field of the kubelet's settings"),
    ("keys.a", {"keys": {"c": 1, "b": 1, "a": 1, "d": 1}}, "no order may touch this field of the kubelet's settings"),
    ("keys.featureGates", {"keys": {"featureGates": {"A": True}}}, "no order may touch this field of the kubelet's settings"),
    ("keys", {"keys": {"cpuManagerPolicyOptions": {"full-pcpus-only": True}}},
     "Expected `str | null`, got `bool` - at `$.cpuManagerPolicyOptions[...]`; give the value in KubeletConfiguration's type"),
    ("keys", {"keys": {"reservedMemory": [{"numaNode": "0", "limits": {}}]}},
     "Expected `int`, got `str` - at `$.reservedMemory[0].numaNode`; give the value in KubeletConfiguration's type"),
    ("keys", {"keys": {"reservedSystemCPUs": None}}, "null stands only in a drop-in; name the field in `removed`"),
    ("keys", {"keys": {"systemReserved": {"cpu": None}}}, "null stands only in a drop-in; name the field in `removed`"),
    ("removed", {"removed": ("authentication",)}, "no order may touch authentication"),
    ("removed", {"removed": ("d", "b", "a", "c")}, "no order may touch a"),
    ("removed", {"removed": ("topologyManagerPolicy", "cpuManagerPolicyOptions")},
     "cpuManagerPolicyOptions, topologyManagerPolicy cannot be set and removed"),
    ("removed", {"drop_in": True}, "a drop-in has only keys; null takes away what stands below"),
    ("path", {"path": "/var/lib/kubelet/../../etc/passwd"}, "'/var/lib/kubelet/../../etc/passwd' is no absolute path of plain names"),
    ("path", {"path": "var/lib/kubelet/config.yaml"}, "'var/lib/kubelet/config.yaml' is no absolute path of plain names"),
    ("path", {"path": "/var/lib/kubelet/$(id)"}, "'/var/lib/kubelet/$(id)' is no absolute path of plain names"),
    ("root", {"root": "/var/lib/./kubelet"}, "'/var/lib/./kubelet' is no absolute path of plain names"),
    ("unit", {"unit": "kubelet.service; reboot"}, "'kubelet.service; reboot' is no service of systemd"),
    ("unit", {"unit": "kubelet"}, "'kubelet' is no service of systemd"),
    ("before", {"before": "abc"}, "it is no SHA-256 in hexadecimal"),
    ("after", {"after": HASH.upper()}, "it is no SHA-256 in hexadecimal"),
    ("node", {"node": ""}, "it is empty"),
    ("rollout", {"rollout": ""}, "it is empty"),
    ("epoch", {"epoch": 0}, "0 is not from 1 to 9007199254740991"),
    ("healthz_port", {"healthz_port": 70000}, "70000 is not from 0 to 65535"),
    ("healthy_within", {"healthy_within": 4}, "4 is not from 5 to 3600"),
    ("dead_man", {"dead_man": 140}, "it must be longer than healthy_within and steady_for together"),
    ("version", {"version": 2}, "2 is not 1: bring applier and numaweb to the same version"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "changed", "words"), WRONG)
def test_what_no_order_may_ask_is_refused_by_its_field_with_cause_and_remedy(
    field: str, changed: dict[str, Any], words: str
) -> None:
    wrong = msgspec.structs.replace(GOOD, **changed)
    with pytest.raises(OrderError) as made:
        order.encode(wrong)
    with pytest.raises(OrderError) as read:
        order.decode(msgspec.json.encode(wrong))
    assert made.value.field == read.value.field == field
    assert str(made.value) == str(read.value) == f"{field}: {words}"


@pytest.mark.parametrize(
    "changed",
    [
        {"epoch": 1, "expires": 1, "healthz_port": 0, "healthy_within": 5, "steady_for": 1, "dead_man": 10},
        {"epoch": (1 << 53) - 1, "healthz_port": 65535, "healthy_within": 3600, "steady_for": 600, "dead_man": 86400},
        {"dead_man": 141},
    ],
)  # fmt: skip
def test_numbers_at_their_bounds_are_taken(changed: dict[str, Any]) -> None:
    edge = msgspec.structs.replace(GOOD, **changed)
    assert order.decode(order.encode(edge)) == edge


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
    [b"", b"{}", b"[]", b"null", order.encode(GOOD)[:-1], order.encode(GOOD).replace(b'"act"', b'"acts"'), b"[" * 60_000],
)  # fmt: skip
def test_what_is_no_order_is_refused(document: bytes) -> None:
    with pytest.raises(OrderError, match=r"^it cannot be read: .*; make the order again$"):
        order.decode(document)


def test_an_order_that_is_too_long_is_refused_whatever_it_says() -> None:
    longest = order.encode(GOOD).ljust(order.MAX_BYTES)
    assert order.decode(longest) == GOOD
    with pytest.raises(OrderError, match=r"^it has 65537 bytes, more than 65536$"):
        order.decode(longest + b" ")


def answer(words: str = "", in_force: dict[str, str] | None = None) -> Answer:
    return Answer(outcome="restored", node="worker-1", epoch=7, rollout="r1", words=words, in_force=in_force)


FEW, SOME, MUCH = {"a": "x" * 100}, {f"field{at}": "x" * 50 for at in range(20)}, {"a": "x" * 10_000}
BARE = len(order.encode_answer(answer("x"))) - 1


@pytest.mark.parametrize(
    ("made", "words", "in_force"),
    [
        (answer("é" * 1000, SOME), "é" * 1000, SOME),
        (answer("a" * (MAX_ANSWER - BARE)), "a" * (MAX_ANSWER - BARE), None),
        (answer("a" * 5000 + "b" * 5000, SOME), "a" * 500 + " … " + "b" * 450, SOME),
        (answer("é" * 1000, MUCH), "", None),
        (answer("\N{SUSHI}" * 1000, FEW), "", FEW),
        (answer("\N{SUSHI}" * 1001, FEW), "\N{SUSHI}" * 500 + " … " + "\N{SUSHI}" * 450, FEW),
    ],
)
def test_an_answer_fits_into_a_termination_message_whatever_a_program_said(
    made: Answer, words: str, in_force: dict[str, str] | None
) -> None:
    """What the system said is cut in its middle, then left out, then what is in force."""
    data = order.encode_answer(made)
    assert len(data) <= MAX_ANSWER
    told = order.decode_answer(data)
    assert (told.outcome, told.epoch) == ("restored", 7)
    assert (told.words, told.in_force) == (words, in_force)


def test_an_answer_of_a_newer_applier_is_understood() -> None:
    data = order.encode_answer(Answer(outcome="applied", node="a", epoch=1, rollout="r"))
    assert order.decode_answer(data[:-1] + b',"later":1}').outcome == "applied"
