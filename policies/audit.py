"""The audit log: `record` writes an entry, `verify` proves that nobody altered one. Any door may call both.

Each entry's hash covers its content and the hash before it, so an entry cannot be altered, removed or put in between
without breaking the chain from there on. Writers queue at the one row of AuditHead: two at once get two numbers.
"""

import hashlib
import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from policies.models import AuditEntry, AuditHead

START = "0" * 64
HEAD = 1
LONGEST = {"actor": 254, "address": 64, "action": 64, "target": 254, "detail": 4000}
EXACT_FLOAT = 1e15  # beyond it databases write a number in their own way, and the hash would not hold

Result = AuditEntry.Result


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written: who (a user name, "" for a stranger), from where, what, on what, with what outcome."""

    action: str
    actor: str = ""
    address: str = ""
    target: str = ""
    before: Any = None
    after: Any = None
    result: str = Result.DONE
    detail: str = ""


class Break(msgspec.Struct, frozen=True):
    """The first place where the chain does not hold."""

    sequence: int
    reason: str


def record(event: Event, *, now: datetime | None = None) -> AuditEntry:
    """Append one entry. It is part of the caller's transaction: undone with it, and then nothing happened either."""
    with transaction.atomic():
        head, _created = AuditHead.objects.select_for_update().get_or_create(
            pk=HEAD, defaults={"hash": START}
        )
        entry = AuditEntry(
            sequence=head.sequence + 1,
            at=now or timezone.now(),
            previous_hash=head.hash,
            before=plain(event.before),
            after=plain(event.after),
            result=event.result,
            **{name: clean(getattr(event, name))[:length] for name, length in LONGEST.items()},
        )
        entry.hash = digest(entry)
        entry.save(force_insert=True)
        head.sequence, head.hash = entry.sequence, entry.hash
        head.save()
    return entry


def record_request(request: HttpRequest, action: str, **rest: Any) -> AuditEntry:
    """`record` with who and from where taken from a request."""
    rest.setdefault("actor", actor(request))
    return record(Event(action=action, address=request.META.get("REMOTE_ADDR", ""), **rest))


def actor(request: HttpRequest) -> str:
    user = getattr(request, "user", None)
    return user.get_username() if user is not None and user.is_authenticated else ""


def clean(text: str) -> str:
    """Text that every database stores: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def plain(value: Any) -> Any:
    """A value that reads back from the database as it was written."""
    if isinstance(value, dict):
        return {clean(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) and abs(value) < EXACT_FLOAT else str(value)
    return value if value is None or isinstance(value, (bool, int)) else clean(str(value))


def digest(entry: AuditEntry) -> str:
    content = {
        "sequence": entry.sequence,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "before": entry.before,
        "after": entry.after,
        "result": str(entry.result),
        "previous": entry.previous_hash,
        **{name: getattr(entry, name) for name in LONGEST},
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def verify() -> Break | None:
    """Walk the whole chain, oldest first; None when it holds."""
    head = AuditHead.objects.filter(pk=HEAD).first()
    entries = AuditEntry.objects.order_by("sequence")
    return first_break(entries.iterator(chunk_size=2000), head)


def first_break(entries: Iterable[AuditEntry], head: AuditHead | None) -> Break | None:
    sequence, previous = 0, START
    for entry in entries:
        reason = fault(entry, sequence, previous)
        if reason:
            return Break(sequence + 1, reason)
        sequence, previous = entry.sequence, entry.hash
    known = (head.sequence, head.hash) if head else (0, START)
    if known != (sequence, previous):
        return Break(sequence + 1, f"the log ends here but should reach entry {known[0]}")
    return None


def fault(entry: AuditEntry, sequence: int, previous: str) -> str | None:
    if entry.sequence != sequence + 1:
        return f"an entry is missing: {entry.sequence} follows {sequence}"
    if entry.previous_hash != previous:
        return "it does not follow the entry before it"
    if entry.hash != digest(entry):
        return "its content was altered after it was written"
    return None
