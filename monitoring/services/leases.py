"""Work that only one process may do at a time.

A lease is a row. Its holder raises a number in it every few seconds; whoever wants it watches that number and takes the
lease when it stood still for long enough, by the watcher's own monotonic clock. No two clocks are ever compared, so a
clock that jumps, on either side, takes nothing from a holder that works. Every write of the holder's work checks the
lease's token in the same transaction: what comes from a holder that was thought dead and was only slow is refused.

Watching takes seconds, so it is only done on suspicion: `suspect` looks once, and remembers in the row what it saw.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
from django.db import transaction
from django.db.models import F

from monitoring.models import Lease

LOOKS = 10
"""In the time after which a holder counts as dead."""
FROZEN_SECONDS = 6
"""Without a statement within a transaction that holds a lease's row: who needs longer for his own part is as good as dead."""


class LeaseLostError(Exception):
    """Somebody else does this work now; what was about to be written was not."""


class Tenure(msgspec.Struct, frozen=True):
    """A lease that was taken: its name and the token of this tenure."""

    name: str
    token: str


_mine: set[str] = set()
_lock = threading.Lock()


def suspect(name: str) -> bool:
    """Whether the lease may be free: nobody has it, its number is what it was at the look before, or somebody holds its row, who may be frozen."""
    lease, _ = Lease.objects.get_or_create(name=name)
    still = lease.seen == lease.beats
    with transaction.atomic():
        free = Lease.objects.select_for_update(skip_locked=True).filter(name=name)
        held = not Lease.objects.filter(pk__in=free).update(seen=lease.beats)
    return not lease.token or _dead(lease) or still or held


def take(
    name: str,
    patience: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Tenure | None:
    """Takes the lease if it is free, was given up, or its holder is dead; None while somebody works.

    Watches until the number moves, or has stood still for `patience` seconds.
    """
    lease, _ = Lease.objects.get_or_create(name=name)
    if lease.token and not _dead(lease) and not _stands_still(lease, patience, clock, sleep):
        return None
    token = secrets.token_hex(16)
    with _lock:
        _mine.add(
            token
        )  # before anybody can read it: a token of this process that is not ours counts as a dead one's
    won = Lease.objects.filter(name=name, token=lease.token, beats=lease.beats).update(
        token=token, holder=holder(), beats=F("beats") + 1
    )
    if not won:
        with _lock:
            _mine.discard(token)
        return None
    return Tenure(name, token)


def _stands_still(
    lease: Lease, patience: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> bool:
    since = last = clock()
    while last - since < patience:
        sleep(patience / LOOKS)
        now = Lease.objects.filter(name=lease.name).first()
        if now is None or (now.beats, now.token) != (lease.beats, lease.token):
            return False
        before, last = last, clock()
        if last - before > patience:
            since = last  # we stood still ourselves, and the holder may have with us
    return True


def renew(tenure: Tenure) -> None:
    """Shows that the holder works. Raises LeaseLostError."""
    if not Lease.objects.filter(name=tenure.name, token=tenure.token).update(beats=F("beats") + 1):
        raise LeaseLostError(f"{tenure.name} was taken over")


def fence(tenure: Tenure) -> None:
    """Within the transaction of a write: it only counts while the lease is held. Raises LeaseLostError.

    It holds the lease's row. A process that freezes within such a transaction would hold it for ever, so PostgreSQL ends the transaction.
    """
    connection = transaction.get_connection()
    assert connection.in_atomic_block, "a fence stands in the transaction that it guards"
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = %s", [f"{FROZEN_SECONDS}s"])
    renew(tenure)


def give_up(tenure: Tenure) -> None:
    """Frees the lease, so that the next holder need not wait; where the database is away at least one of this process need not."""
    try:
        Lease.objects.filter(name=tenure.name, token=tenure.token).update(token="", holder="")
    finally:
        with _lock:
            _mine.discard(tenure.token)


def holder() -> str:
    """Who holds: host, boot and process."""
    return f"{socket.gethostname()}/{_boot()}/{os.getpid()}"[:200]


def _dead(lease: Lease) -> bool:
    """Whether the holder was a process of this very machine that is gone: then nobody need wait."""
    host, _, rest = lease.holder.partition("/")
    boot, _, pid = rest.partition("/")
    if host != socket.gethostname() or boot != _boot() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        with _lock:
            return lease.token not in _mine  # an earlier process had our number, or a fork forgot
    return not Path(f"/proc/{pid}").exists()


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "unknown"
