"""Wrong passwords: who is locked out, for how long, and who is not."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from numaweb import refusals
from policies.models import AuditEntry

PASSWORD = "correct horse battery staple"
HERE, ELSEWHERE = "192.0.2.1", "198.51.100.7"


@pytest.fixture
def ada(administrator: User) -> User:
    administrator.set_password(PASSWORD)
    administrator.save()
    return administrator


def attempt(password: str, address: str, client: Client | None = None, username: str = "ada") -> int:
    form = {"username": username, "password": password}
    return (client or Client()).post("/accounts/login/", form, REMOTE_ADDR=address).status_code


def guess(address: str, times: int = 5, username: str = "ada") -> list[int]:
    return [attempt("wrong", address, username=username) for _ in range(times)]


def test_it_locks_a_name_out_at_one_address_after_five_failures(ada: User) -> None:
    assert guess(HERE) == [200, 200, 200, 200, 429]
    assert attempt(PASSWORD, HERE) == 429


def test_it_says_what_happened_and_what_to_do(ada: User) -> None:
    guess(HERE)
    form = {"username": "ada", "password": PASSWORD}
    page = Client().post("/accounts/login/", form, REMOTE_ADDR=HERE).content.decode()
    assert "nobody may sign in for 15 minutes" in page
    assert "ask an administrator" in page


def test_it_cannot_be_used_to_lock_an_administrator_out_from_elsewhere(ada: User) -> None:
    guess(ELSEWHERE, 20)
    assert attempt(PASSWORD, HERE) == 302


def test_it_knows_a_browser_that_signed_in_before_at_the_attacked_address(ada: User) -> None:
    known = Client()
    assert attempt(PASSWORD, HERE, known) == 302
    known.post("/accounts/logout/")
    guess(HERE, 20)
    assert attempt(PASSWORD, HERE) == 429
    assert attempt(PASSWORD, HERE, known) == 302


def test_it_locks_out_a_known_browser_that_guesses_itself(ada: User) -> None:
    known = Client()
    attempt(PASSWORD, HERE, known)
    known.post("/accounts/logout/")
    assert [attempt("wrong", HERE, known) for _ in range(5)][-1] == 429
    assert attempt(PASSWORD, HERE, known) == 429


def test_it_does_not_believe_a_mark_of_another_user_or_a_forged_one(ada: User, viewer: User) -> None:
    viewer.set_password(PASSWORD)
    viewer.save()
    other, forger = Client(), Client()
    attempt(PASSWORD, HERE, other, username="vera")
    other.post("/accounts/logout/")
    forger.cookies["numaweb_browser"] = "8c69:abc:1xXvJj:forged"
    guess(HERE)
    assert attempt(PASSWORD, HERE, other) == 429
    assert attempt(PASSWORD, HERE, forger) == 429


def test_it_forgives_after_the_cool_off(ada: User) -> None:
    start = timezone.now()
    with time_machine.travel(start, tick=False):
        guess(HERE)
    with time_machine.travel(start + timedelta(minutes=14), tick=False):
        assert attempt(PASSWORD, HERE) == 429
    with time_machine.travel(start + timedelta(minutes=16), tick=False):
        assert attempt(PASSWORD, HERE) == 302


def test_it_records_the_failures_and_one_lock_out(ada: User) -> None:
    guess(HERE, 12)
    actions = list(AuditEntry.objects.order_by("sequence").values_list("action", flat=True))
    assert actions == ["sign-in"] * 4 + ["lock-out"]
    assert set(AuditEntry.objects.values_list("address", flat=True)) == {HERE}


def test_it_bounds_what_a_stranger_can_write_into_the_audit_log(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "PER_MINUTE", 3)
    for number in range(5):
        attempt("wrong", HERE, username=f"name{number}")
    attempt("wrong", ELSEWHERE)
    assert AuditEntry.objects.filter(address=HERE).count() == 3
    assert AuditEntry.objects.filter(address=ELSEWHERE).count() == 1
