"""A rollout's plan: which nodes in which order and batches, what becomes of each, and a hash by which it is confirmed.

Made once from previews, then never altered: what is confirmed is what was looked at.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal
from zoneinfo import available_timezones

import msgspec

from numacore.change.order import StateFile
from numacore.change.wish import Wish
from numacore.diagnosis import Reason

CANARY = 0
"""The batch that goes first."""
_SHARE = re.compile(r"(\d{1,3})%", re.ASCII)
_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Window(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a node may be begun. `start`, `end`: HH:MM in `zone` (IANA); an end before the start is on the next day, whose window belongs
    to the day on which it began."""

    start: str
    end: str
    zone: str = "UTC"
    days: tuple[Day, ...] = DAYS


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a rollout goes through its nodes. Spans in seconds; `batch` and `max_unavailable`: a number, or a share such as "10%"."""

    canary: int = 1
    batch: str = "1"
    max_unavailable: str = "1"
    """Of the rollout's nodes that may be away at once; nodes of the target that are down or cordoned by others count, also those left out."""
    pause_between: int = 0
    drain: bool = True
    drain_within: int = 900
    control_plane: bool = False
    """Whether nodes of the control plane are taken along."""
    window: Window | None = None


class PlannedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node and what is to become of it; hashes and fields as `numacore.change.order.Order` has them."""

    name: str
    uid: str
    batch: int
    act: Literal["apply", "restore"] = "apply"
    machine_id: str = ""
    path: str
    drop_in: bool = False
    before: str
    after: str
    keys: dict[str, Any] = {}
    removed: tuple[str, ...] = ()
    intended: dict[str, Any] = {}
    """Fields that change, as they are to be in force; None = the default."""
    present: dict[str, Any] = {}
    """The same fields as they are in force now; None = the default."""
    state_files: tuple[StateFile, ...] = ()
    lost: tuple[str, ...] = ()
    """Pods (`namespace/name`) that would not be admitted again if they ran on."""
    moved: int = 0
    """Pods that a drain moves."""
    stays: tuple[Reason, ...] = ()
    """Pods that a drain does not move, with why."""
    topology: str = ""
    """Hash of the machine's topology, which the gate compares."""
    last: bool = False
    """It runs numaweb or its database, so it comes last."""


class LeftOut(msgspec.Struct, frozen=True):
    """A node of the target that the rollout does not touch, and why."""

    name: str
    reason: Reason


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a confirmation is about."""

    cluster: str
    rollout: int
    wish: Wish | None
    """None = back to what was before the product's first change."""
    options: Options
    nodes: tuple[PlannedNode, ...]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[Reason, ...] = ()
    """Of the whole: one node only, capacity that is missing while a batch is away, and the like."""


def read(stored: Any) -> Plan:
    """A plan from what JSON was decoded to, where every key is a text."""
    return msgspec.convert(stored, Plan, str_keys=True)


class OptionFault(msgspec.Struct, frozen=True):
    """What is wrong with options: the field, and a code with a sentence in `policies.words.rollout`."""

    field: str
    code: str


def digest(plan: Plan) -> str:
    """SHA-256 of the plan's canonical JSON, in hexadecimal."""
    return hashlib.sha256(msgspec.json.encode(plan, order="sorted")).hexdigest()


def faults(options: Options) -> tuple[OptionFault, ...]:
    """What cannot be about these options; empty = they can be used."""
    found = [
        OptionFault(field, code)
        for field, code, wrong in (
            ("canary", "below-zero", options.canary < 0),
            ("batch", "no-amount", not _is_amount(options.batch)),
            ("max_unavailable", "no-amount", not _is_amount(options.max_unavailable)),
            ("pause_between", "span", not 0 <= options.pause_between <= 7 * 86400),
            ("drain_within", "span", not 10 <= options.drain_within <= 86400),
        )
        if wrong
    ]
    return (*found, *_window_faults(options.window))


def _window_faults(window: Window | None) -> Iterable[OptionFault]:
    if window is None:
        return
    for field in ("start", "end"):
        if not _CLOCK.fullmatch(getattr(window, field)):
            yield OptionFault(f"window.{field}", "no-clock")
    if window.start == window.end:
        yield OptionFault("window.end", "empty-window")
    if not window.days:
        yield OptionFault("window.days", "no-days")
    if not _is_zone(window.zone):
        yield OptionFault("window.zone", "no-zone")


def _is_zone(name: str) -> bool:
    return name in available_timezones()


def _is_amount(text: str) -> bool:
    share = _SHARE.fullmatch(text)
    if share:
        return 1 <= int(share[1]) <= 100
    return bool(re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII))


def amount(text: str, of: int) -> int:
    """A number, or a share of `of` nodes, rounded down but never below 1: more than was asked for is never away."""
    share = _SHARE.fullmatch(text)
    return max(1, math.floor(of * int(share[1]) / 100)) if share else int(text)


def batches(names: Sequence[str], options: Options) -> dict[str, int]:
    """The batch of each node in the order given: first the canary (batch 0), then equal batches; without a canary they count from 1."""
    canary = min(options.canary, len(names))
    size = amount(options.batch, len(names))
    return {
        name: CANARY if position < canary else 1 + (position - canary) // size
        for position, name in enumerate(names)
    }
