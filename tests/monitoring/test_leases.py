"""Work that only one may do: taken, kept, lost and taken over without ever comparing two clocks."""

import os
import threading
from collections.abc import Iterator

import pytest
from django.db import connections, transaction

from monitoring.models import Lease
from monitoring.services import leases

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _strangers() -> Iterator[None]:
    """Nothing is remembered of the leases of other tests."""
    leases._seen.clear()
    yield
    leases._seen.clear()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def elsewhere(name: str = "work") -> None:
    """The lease is held by a process of another machine."""
    Lease.objects.filter(name=name).update(holder="other/boot/17")


def test_it_gives_the_lease_to_one() -> None:
    assert leases.take("work", 10) is not None
    assert leases.take("work", 10) is None


def test_it_gives_a_freed_lease_at_once() -> None:
    held = leases.take("work", 10)
    assert held is not None
    leases.give_up(held)
    assert leases.take("work", 10) is not None


def test_it_takes_over_what_stood_still_for_long_enough() -> None:
    clock = Clock()
    assert leases.take("work", 10, clock)
    elsewhere()
    for _ in range(5):
        assert leases.take("work", 10, clock) is None
        clock.now += 2.1
    assert leases.take("work", 10, clock) is not None


def test_it_waits_while_the_holder_renews() -> None:
    clock = Clock()
    held = leases.take("work", 10, clock)
    assert held is not None
    elsewhere()
    for _ in range(20):
        assert leases.take("work", 10, clock) is None
        clock.now += 4
        leases.renew(held)


def test_it_does_not_count_time_in_which_it_did_not_look() -> None:
    clock = Clock()
    assert leases.take("work", 10, clock)
    elsewhere()
    assert leases.take("work", 10, clock) is None
    clock.now += 600  # asleep, or the database was away: the holder may have been as well
    assert leases.take("work", 10, clock) is None


def test_it_takes_over_from_a_dead_process_of_this_machine_at_once() -> None:
    assert leases.take("work", 10) is not None
    host, boot, _ = leases.holder().split("/")
    Lease.objects.update(holder=f"{host}/{boot}/4194304")
    assert leases.take("work", 10) is not None


def test_it_takes_over_what_an_earlier_process_of_its_own_number_held() -> None:
    assert leases.take("work", 10) is not None
    Lease.objects.update(token="an-earlier-life")
    assert leases.take("work", 10) is not None
    assert Lease.objects.get().holder.endswith(f"/{os.getpid()}")


def test_it_refuses_the_writes_of_a_holder_that_was_replaced() -> None:
    slow = leases.take("work", 10)
    assert slow is not None
    Lease.objects.update(token="faster")
    with pytest.raises(leases.LeaseLostError), transaction.atomic():
        leases.fence(slow)
    leases.give_up(slow)
    assert Lease.objects.get().token == "faster"


def test_it_gives_one_of_many_that_ask_at_once() -> None:
    Lease.objects.create(name="work")
    won: list[bool] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        won.append(leases.take("work", 10) is not None)
        connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(won) == 1
