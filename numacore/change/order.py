"""What the applier is given and what it answers: one change of one node's kubelet as a document that somebody signed.

The web side writes and signs orders, `numaagent.applier` checks and carries them out. Signing itself is theirs; here is what is signed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final, Literal, TypeVar

import msgspec

from numacore.diagnosis import Reason

VERSION = 1
MAX_BYTES = 64 * 1024
"""Of an order, signature and all."""
MAX_ANSWER = 4096
"""Bytes that the kubelet keeps of a termination message (Kubernetes, pkg/kubelet/types/constants.go)."""
CPU_STATE: Final = "cpu_manager_state"
MEMORY_STATE: Final = "memory_manager_state"
StateFile = Literal["cpu_manager_state", "memory_manager_state"]
Act = Literal["apply", "restore"]
"""restore: back to what stood there before the product's first change; `keys`, `after` and `state_files` say what that is."""
Outcome = Literal["applied", "unchanged", "restored", "refused", "failed"]
"""restored: the change was made, something failed, and the node went back by itself. failed: it did not come back, the dead-man will try."""
T = TypeVar("T")
_DOMAIN = b"numaweb order 1\n"
_SHA256 = re.compile(r"(?:[0-9a-f]{64})?", re.ASCII)
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[\w.@:+-]+)+", re.ASCII)
_UNIT = re.compile(r"[\w.@:-]+\.service", re.ASCII)


class _Reservation(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    numa_node: int
    limits: dict[str, str | int]


class _Keys(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Fields of KubeletConfiguration v1beta1 that an order may touch, with their JSON types. Null: only in a drop-in, where it takes
    away what the file before it sets."""

    cpu_manager_policy: str | None = None
    cpu_manager_policy_options: dict[str, str | None] | None = None
    kube_reserved: dict[str, str | None] | None = None
    memory_manager_policy: str | None = None
    reserved_memory: list[_Reservation] | None = None
    reserved_system_cpus: str | None = msgspec.field(default=None, name="reservedSystemCPUs")
    system_reserved: dict[str, str | None] | None = None
    topology_manager_policy: str | None = None
    topology_manager_policy_options: dict[str, str | None] | None = None
    topology_manager_scope: str | None = None


ALLOWED = frozenset(field.encode_name for field in msgspec.structs.fields(_Keys))
"""What an order may touch; nothing else of a kubelet's settings is ever written."""


class OrderError(ValueError):
    """An order or answer that cannot be used. `field` at fault, "" = the document itself; the message tells cause and remedy."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change of one node. Times are seconds since 1970, spans seconds, hashes SHA-256 in hexadecimal.

    `keys` are whole new values of fields, `removed` fields that go. Of a drop-in `keys` are its whole content and `removed` is empty.
    """

    version: int = VERSION
    kind: Literal["kubelet"] = "kubelet"
    act: Act
    node: str
    machine_id: str = ""
    """As in /etc/machine-id; "" = not known, then the name alone decides."""
    uid: str = ""
    """Of the Kubernetes Node; "" on a plain machine."""
    epoch: int
    """Counts up with each order for this node: the applier takes none lower than it has seen."""
    rollout: str
    path: str
    """Absolute, as on the host: the kubelet's file, or the drop-in that is ours."""
    drop_in: bool = False
    keys: dict[str, Any] = {}
    removed: tuple[str, ...] = ()
    before: str
    """Hash of the file as it stands; "" = there is none."""
    after: str
    """Hash of the file as it will be; "" = there will be none."""
    state_files: tuple[StateFile, ...] = ()
    root: str = "/var/lib/kubelet"
    """The kubelet's folder (`--root-dir`), where its state files are."""
    unit: str = "kubelet.service"
    healthz_port: int = 10248
    """At the node's own address; 0 = the kubelet has none, then its unit and state files alone tell."""
    expires: int
    healthy_within: int = 120
    """For the kubelet to answer after its start."""
    steady_for: int = 20
    """That the same process must live then: one that cannot go on answers first and ends after."""
    dead_man: int = 600
    """After which the node goes back by itself if nobody reports success."""


class Signed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An order as it travels. `document`: the bytes of `encode`; `signature`: Ed25519 over `signed_bytes(document)`; both base64 in JSON."""

    document: bytes
    signature: bytes
    key: str
    """Which key signed."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of an order. `step`: the last that was begun; `in_force`: the order's fields as the kubelet says that they are now."""

    outcome: Outcome
    node: str
    epoch: int
    rollout: str
    version: int = VERSION
    step: str = ""
    cause: Reason | None = None
    words: str = ""
    """What the system said, as it said it."""
    before: str = ""
    after: str = ""
    """Hash of the file as it is now."""
    removed_state: tuple[StateFile, ...] = ()
    main_pid: int | None = None
    took: float | None = None
    """Seconds."""
    in_force: dict[str, Any] | None = None
    """None = nobody could tell."""
    source: str = ""
    """Who told: `configz`, or `state-files`, which know only the policies of CPU and memory manager."""


_order_decoder = msgspec.json.Decoder(Order)
_signed_decoder = msgspec.json.Decoder(Signed)
_answer_decoder = msgspec.json.Decoder(Answer)


def sha256(text: str | None) -> str:
    """The hash of a file's text as orders name it; "" = no file."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def encode(order: Order) -> bytes:
    """The document of an order: the same bytes for the same order. Raises OrderError if it asks for what no order may."""
    _check(order)
    return msgspec.json.encode(order, order="sorted")


def decode(document: bytes) -> Order:
    """Reads and checks a document. Raises OrderError."""
    order = _decoded(_order_decoder, document, MAX_BYTES)
    _check(order)
    return order


def signed_bytes(document: bytes) -> bytes:
    """What a signature of an order is over: no signature of anything else is one of an order."""
    return _DOMAIN + document


def key_name(public: bytes) -> str:
    """How the key with these 32 public bytes is named in orders."""
    return hashlib.sha256(public).hexdigest()[:16]


def encode_signed(signed: Signed) -> bytes:
    return msgspec.json.encode(signed, order="sorted")


def decode_signed(data: bytes) -> Signed:
    """Reads the envelope and not yet the document, whose signature comes first. Raises OrderError."""
    return _decoded(_signed_decoder, data, MAX_BYTES)


def encode_answer(answer: Answer) -> bytes:
    """At most MAX_ANSWER bytes: what the system said is cut in its middle, then left out, then what is in force."""
    replace = msgspec.structs.replace
    data = msgspec.json.encode(answer, order="sorted")
    if len(data) > MAX_ANSWER and len(answer.words) > 1000:
        answer = replace(answer, words=f"{answer.words[:500]} … {answer.words[-450:]}")
        data = msgspec.json.encode(answer, order="sorted")
    for less in ({"words": ""}, {"in_force": None}):
        if len(data) > MAX_ANSWER:
            answer = replace(answer, **less)
            data = msgspec.json.encode(answer, order="sorted")
    return data


def decode_answer(data: bytes) -> Answer:
    """Unknown fields are left aside: an applier may be newer. Raises OrderError."""
    return _decoded(_answer_decoder, data, MAX_BYTES)


def _decoded(decoder: msgspec.json.Decoder[T], data: bytes, most: int) -> T:
    if len(data) > most:
        raise OrderError("", f"it has {len(data)} bytes, more than {most}")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise OrderError("", f"it cannot be read: {error}; make the order again") from error


def check_keys(keys: dict[str, Any], *, drop_in: bool) -> None:
    """Raises OrderError for a field that no order may touch, or a value of another type than KubeletConfiguration gives it."""
    for name in sorted(keys.keys() - ALLOWED):
        raise OrderError(f"keys.{name}", "no order may touch this field of the kubelet's settings")
    try:
        msgspec.convert(keys, _Keys)
    except msgspec.ValidationError as error:
        raise OrderError("keys", f"{error}; give the value in KubeletConfiguration's type") from error
    if not drop_in and _has_null(keys):
        raise OrderError("keys", "null stands only in a drop-in; name the field in `removed`")


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return value is None


def _check(order: Order) -> None:
    if order.version != VERSION:
        raise OrderError(
            "version", f"{order.version} is not {VERSION}: bring applier and numaweb to the same version"
        )
    check_keys(order.keys, drop_in=order.drop_in)
    for name in sorted(set(order.removed) - ALLOWED):
        raise OrderError("removed", f"no order may touch {name}")
    if both := set(order.removed) & order.keys.keys():
        raise OrderError("removed", f"{', '.join(sorted(both))} cannot be set and removed")
    if order.drop_in and order.removed:
        raise OrderError("removed", "a drop-in has only keys; null takes away what stands below")
    for field in ("path", "root"):
        if not _PATH.fullmatch(getattr(order, field)):
            raise OrderError(field, f"{getattr(order, field)!r} is no absolute path of plain names")
    if not _UNIT.fullmatch(order.unit):
        raise OrderError("unit", f"{order.unit!r} is no service of systemd")
    for field in ("before", "after"):
        if not _SHA256.fullmatch(getattr(order, field)):
            raise OrderError(field, "it is no SHA-256 in hexadecimal")
    if not order.node or not order.rollout:
        raise OrderError("rollout" if order.node else "node", "it is empty")
    for field, (least, most) in _BOUNDS.items():
        if not least <= getattr(order, field) <= most:
            raise OrderError(field, f"{getattr(order, field)} is not from {least} to {most}")
    if order.dead_man <= order.healthy_within + order.steady_for:
        raise OrderError("dead_man", "it must be longer than healthy_within and steady_for together")


_BOUNDS = {
    "epoch": (1, (1 << 53) - 1),
    "healthz_port": (0, 65535),
    "expires": (1, (1 << 53) - 1),
    "healthy_within": (5, 3600),
    "steady_for": (1, 600),
    "dead_man": (10, 24 * 3600),
}
