"""What every answer carries, in both profiles."""

import logging
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings


def test_it_allows_nothing_inline_and_nothing_from_elsewhere(client: Client, db: None) -> None:
    policy = client.get("/accounts/login/")["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in policy


def test_it_protects_every_page(client: Client, db: None) -> None:
    page = client.get("/accounts/login/")
    assert page["X-Frame-Options"] == "DENY"
    assert page["X-Content-Type-Options"] == "nosniff"
    assert page["Referrer-Policy"] == "same-origin"
    assert "camera=()" in page["Permissions-Policy"]
    assert "no-store" in page["Cache-Control"]


@pytest.mark.parametrize(
    ("path", "host", "status"), [("/accounts/login", "testserver", 301), ("/accounts/login/", "a b<c>", 400)]
)
def test_it_protects_the_answers_that_come_before_any_view(
    client: Client, db: None, path: str, host: str, status: int
) -> None:
    answer = client.get(path, headers={"host": host})
    assert answer.status_code == status
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]


def test_plain_http_promises_no_tls(client: Client, db: None) -> None:
    page = client.get("/accounts/login/")
    assert "Strict-Transport-Security" not in page
    assert "Cross-Origin-Opener-Policy" not in page
    assert not page.cookies["numaweb_csrf"]["secure"]


def test_it_gives_each_request_an_id_of_its_own(
    client: Client, db: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        first = client.get("/accounts/login/", headers={"X-Request-ID": "planted"})["X-Request-ID"]
    second = client.get("/accounts/login/")["X-Request-ID"]
    assert first != second
    assert "planted" not in caplog.text
    assert first in caplog.text


@pytest.mark.parametrize("given", ["0123456789abcdef" * 2, "3f2504e0-4f89-11d3-9a0c-0305e82c3301"])
def test_a_proxys_id_is_taken(client: Client, db: None, given: str) -> None:
    assert client.get("/accounts/login/", headers={"X-Request-ID": given})["X-Request-ID"] == given


@pytest.mark.parametrize(
    "given", ["short", "a" * 65, "0123456789abcdef\n", "0123456789abcdef ", "0123456789abc<b>", "\u0661" * 20]
)
def test_what_is_no_id_is_not(client: Client, db: None, given: str) -> None:
    assert len(client.get("/accounts/login/", headers={"X-Request-ID": given})["X-Request-ID"]) == 32
    assert client.get("/accounts/login/", headers={"X-Request-ID": given})["X-Request-ID"] != given


def test_it_serves_static_files_without_sign_in_and_lets_them_be_kept(client: Client) -> None:
    file = client.get("/static/admin/css/base.css")
    assert file.status_code == 200
    assert file["Content-Type"] == 'text/css; charset="utf-8"'
    assert "no-store" not in file["Cache-Control"]
    again = client.get("/static/admin/css/base.css", headers={"If-None-Match": file["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert not file.streaming


def test_it_serves_a_file_that_was_built_anew_while_it_runs(
    client: Client, tmp_path: Path, settings: Settings
) -> None:
    settings.STATICFILES_DIRS = [tmp_path]
    for content in (b"body{}", b"body{color:red}"):
        (tmp_path / "app-of-a-test.css").write_bytes(content)
        file = client.get("/static/app-of-a-test.css")
        assert (file.content, file["Content-Length"]) == (content, str(len(content)))


def test_it_names_hashed_files_that_browsers_keep_for_ever(tmp_path: Path, settings: Settings) -> None:
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "app.0123456789ab.css").write_text("body{}")
    (tmp_path / "staticfiles.json").write_text(
        '{"version": "1.1", "paths": {"app.css": "app.0123456789ab.css"}}'
    )
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": settings.STATIC_STORE}}
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = False
    file = Client().get("/static/app.0123456789ab.css")
    assert file["Cache-Control"] == "max-age=315360000, public, immutable"


def test_it_ends_an_idle_session(as_viewer: Client, settings: Settings) -> None:
    with time_machine.travel(timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE + 1), tick=False):
        assert as_viewer.get("/accounts/password/").status_code == 302


def test_it_keeps_a_session_in_use(as_viewer: Client, settings: Settings) -> None:
    start = timezone.now()
    for part in (0.4, 0.8, 1.2, 1.6):
        with time_machine.travel(start + timedelta(seconds=settings.SESSION_COOKIE_AGE * part), tick=False):
            assert as_viewer.get("/accounts/password/").status_code == 200


def test_it_ends_even_a_busy_session_in_the_end(as_viewer: Client, settings: Settings) -> None:
    settings.NUMAWEB_SESSION_LONGEST = settings.SESSION_COOKIE_AGE
    start = timezone.now()
    as_viewer.get("/accounts/password/")
    with time_machine.travel(start + timedelta(seconds=settings.SESSION_COOKIE_AGE * 0.9), tick=False):
        assert as_viewer.get("/accounts/password/").status_code == 200
    with time_machine.travel(start + timedelta(seconds=settings.SESSION_COOKIE_AGE * 1.1), tick=False):
        assert as_viewer.get("/accounts/password/").status_code == 302


def test_it_does_not_write_the_session_at_each_request(as_viewer: Client, viewer: User) -> None:
    as_viewer.get("/accounts/password/")
    before = Session.objects.get().session_data
    as_viewer.get("/accounts/password/")
    assert Session.objects.get().session_data == before


@pytest.mark.parametrize(
    ("asked", "language"), [("zh-CN,zh;q=0.9", "zh-hans"), ("fr", "en"), ("de,en;q=0.5", "en")]
)
def test_it_speaks_the_language_that_the_browser_asks_for(
    client: Client, db: None, asked: str, language: str
) -> None:
    assert client.get("/accounts/login/", headers={"Accept-Language": asked})["Content-Language"] == language


def test_it_remembers_a_chosen_language(client: Client, db: None) -> None:
    client.post("/language/", {"language": "zh-hans", "next": "/accounts/login/"})
    page = client.get("/accounts/login/", headers={"Accept-Language": "en"})
    assert page["Content-Language"] == "zh-hans"
