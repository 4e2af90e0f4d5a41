"""Signing in and out at the form."""

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from numaweb.models import FirstPassword
from policies.models import AuditEntry

PASSWORD = "correct horse battery staple"


@pytest.fixture
def someone(viewer: User) -> User:
    viewer.set_password(PASSWORD)
    viewer.save()
    return viewer


def sign_in(client: Client, password: str = PASSWORD, target: str = "/", username: str = "vera") -> object:
    return client.post("/accounts/login/", {"username": username, "password": password, "next": target})


def last_action() -> tuple[str, str, str]:
    entry = AuditEntry.objects.order_by("-sequence")[0]
    return entry.action, entry.actor, entry.result


def test_it_sends_a_stranger_to_the_form_and_back_to_the_address(client: Client, someone: User) -> None:
    asked = client.get("/audit/?actor=otto")
    assert asked.headers["Location"] == "/accounts/login/?next=/audit/%3Factor%3Dotto"
    done = sign_in(client, target="/audit/?actor=otto")
    assert (done.status_code, done.headers["Location"]) == (302, "/audit/?actor=otto")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_it_never_leads_to_another_site(client: Client, someone: User, target: str) -> None:
    assert sign_in(client, target=target).headers["Location"] == "/"  # type: ignore[attr-defined]


def test_it_gives_the_session_a_new_key(client: Client, someone: User) -> None:
    session = client.session
    session["planted"] = True
    session.save()
    before = session.session_key
    sign_in(client)
    assert client.cookies["numaweb_session"].value != before
    assert not Session.objects.filter(session_key=before).exists()


def test_it_says_the_same_about_a_wrong_password_and_an_unknown_name(client: Client, someone: User) -> None:
    wrong = sign_in(client, password="wrong").content.decode()  # type: ignore[attr-defined]
    unknown = sign_in(client, username="nobody", password="wrong").content.decode()  # type: ignore[attr-defined]
    assert "Please enter a correct username and password" in wrong
    assert "Please enter a correct username and password" in unknown


def test_it_records_signs_in_and_out(client: Client, someone: User) -> None:
    sign_in(client, password="wrong")
    assert last_action() == ("sign-in", "vera", "refused")
    sign_in(client)
    assert last_action() == ("sign-in", "vera", "done")
    assert client.post("/accounts/logout/").headers["Location"] == "/accounts/login/"
    assert last_action() == ("sign-out", "vera", "done")
    assert client.get("/audit/").headers["Location"].startswith("/accounts/login/")


def test_it_signs_out_only_by_post(as_viewer: Client) -> None:
    assert as_viewer.get("/accounts/logout/").status_code == 405


def test_it_never_writes_a_password_down(
    client: Client, someone: User, caplog: pytest.LogCaptureFixture
) -> None:
    sign_in(client, password="hunter2-hunter2")
    entry = AuditEntry.objects.order_by("-sequence")[0]
    assert "hunter2" not in f"{entry.detail} {entry.target} {entry.before} {entry.after}"
    assert "hunter2" not in caplog.text


def test_it_changes_a_password_and_ends_the_offer(client: Client, someone: User) -> None:
    FirstPassword.objects.create(user=someone)
    sign_in(client)
    assert b"generated password" in client.get("/accounts/password/").content
    new = "another staple for a horse"
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    page = client.post("/accounts/password/", form, follow=True)
    assert "Your password has been changed." in page.content.decode()
    assert b"generated password" not in page.content
    assert last_action() == ("change password", "vera", "done")
    someone.refresh_from_db()
    assert someone.check_password(new)


@pytest.mark.parametrize("new", ["short", "password1234"])
def test_it_refuses_a_weak_password(client: Client, someone: User, new: str) -> None:
    sign_in(client)
    form = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert client.post("/accounts/password/", form).status_code == 200
    someone.refresh_from_db()
    assert someone.check_password(PASSWORD)


def test_it_lets_nobody_guess_the_old_password_of_an_open_session(client: Client, someone: User) -> None:
    sign_in(client)
    new = "another staple for a horse"
    form = {"new_password1": new, "new_password2": new}
    answers = [
        client.post("/accounts/password/", form | {"old_password": f"guess {number}"}).status_code
        for number in range(5)
    ]
    assert answers == [200, 200, 200, 200, 429]
    assert last_action() == ("lock-out", "vera", "refused")
    assert client.post("/accounts/password/", form | {"old_password": PASSWORD}).status_code == 429
    someone.refresh_from_db()
    assert someone.check_password(PASSWORD)
