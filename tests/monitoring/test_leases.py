"""Work that only one may do: taken, kept, lost and taken over without ever comparing two clocks."""

import os
import threading
from collections.abc import Callable
from typing import NoReturn

import pytest
from django.db import OperationalError, connections, transaction
from django.db.models import QuerySet

from monitoring.models import Lease
from monitoring.services import leases
from monitoring.services.leases import Tenure

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """Time that passes when somebody sleeps; what happens meanwhile is said in `meanwhile`."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.now = 1000.0
        self.meanwhile = meanwhile

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


def take(clock: Clock | None = None) -> Tenure | None:
    clock = clock or Clock()
    return leases.take("work", 10, clock, clock.sleep)


def elsewhere(name: str = "work") -> None:
    """The lease is held by a process of another machine."""
    Lease.objects.filter(name=name).update(holder="other/boot/17")


def test_it_gives_a_freed_lease_at_once() -> None:
    held = take()
    assert held is not None
    leases.give_up(held)
    clock = Clock()
    assert take(clock) is not None
    assert clock.now == 1000.0


def test_it_takes_over_what_stood_still_for_long_enough() -> None:
    assert take()
    elsewhere()
    clock = Clock()
    assert take(clock) is not None
    assert 1010.0 <= clock.now <= 1011.0


def test_it_leaves_it_to_a_holder_that_renews() -> None:
    held = take()
    assert held is not None
    elsewhere()
    clock = Clock(lambda: leases.renew(held))
    assert take(clock) is None
    assert clock.now < 1002.0  # and knows it after the first look that shows it


def test_it_does_not_count_time_in_which_it_stood_still_itself() -> None:
    assert take()
    elsewhere()
    clock = Clock()
    jumps = [600.0]

    def freeze() -> None:
        clock.now += jumps.pop() if jumps else 0.0

    clock.meanwhile = freeze
    assert take(clock) is not None
    assert clock.now >= 1611.0


def test_it_suspects_only_who_does_not_move() -> None:
    assert leases.suspect("work")
    held = take()
    assert held is not None
    elsewhere()
    assert not leases.suspect("work")
    leases.renew(held)
    assert not leases.suspect("work")
    assert leases.suspect("work")


def test_it_takes_over_from_a_dead_process_of_this_machine_at_once() -> None:
    assert take() is not None
    host, boot, _ = leases.holder().split("/")
    Lease.objects.update(holder=f"{host}/{boot}/4194304")
    assert take() is not None


def test_it_takes_over_what_an_earlier_process_of_its_own_number_held() -> None:
    assert take() is not None
    Lease.objects.update(token="an-earlier-life")
    assert take() is not None
    assert Lease.objects.get().holder.endswith(f"/{os.getpid()}")


def test_it_waits_for_none_of_its_own_process_that_the_database_kept_from_giving_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = leases.take("shard/1", 5.0)
    assert held is not None
    with monkeypatch.context() as away:
        away.setattr(QuerySet, "update", refuse)
        with pytest.raises(OperationalError):
            leases.give_up(held)
    assert Lease.objects.get(name="shard/1").token == held.token
    assert leases.take("shard/1", 5.0, sleep=refuse) is not None


def refuse(*_: object, **__: object) -> NoReturn:
    raise OperationalError("the database is away")


def test_it_refuses_the_writes_of_a_holder_that_was_replaced() -> None:
    slow = take()
    assert slow is not None
    Lease.objects.update(token="faster")
    with pytest.raises(leases.LeaseLostError), transaction.atomic():
        leases.fence(slow)
    leases.give_up(slow)
    assert Lease.objects.get().token == "faster"


def test_it_belongs_to_its_holder_from_the_moment_that_others_can_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread of the same process looks right after the row was written: it must not think the holder dead."""
    seen: list[leases.Tenure | None] = []
    written = QuerySet.update

    def update(rows: QuerySet[Lease], **values: object) -> int:
        changed = written(rows, **values)
        if values.get("token"):
            monkeypatch.setattr(QuerySet, "update", written)
            seen.append(take(Clock(lambda: leases.renew(tenure()))))
        return changed

    def tenure() -> leases.Tenure:
        return leases.Tenure("work", Lease.objects.get().token)

    monkeypatch.setattr(QuerySet, "update", update)
    held = take()
    assert held is not None
    assert seen == [None]
    leases.renew(held)


def test_it_gives_one_of_many_that_ask_at_once() -> None:
    Lease.objects.create(name="work")
    refused: list[bool] = []
    start, over = threading.Barrier(6), threading.Event()

    def ask() -> None:
        start.wait()
        held = leases.take("work", 1.0)
        if held is None:
            refused.append(True)
        while held is not None and not over.wait(0.05):
            leases.renew(held)
        connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        if len(refused) == 5:
            break
        over.wait(0.05)
    over.set()
    for thread in threads:
        thread.join()
    assert len(refused) == 5
