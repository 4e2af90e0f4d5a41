"""What somebody sees when something is wrong: the cause and the remedy, in both languages."""

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client
from django.urls import include, path
from prometheus_client import REGISTRY
from pytest_django.fixtures import Settings

from numaweb import urls
from policies.models import AuditEntry
from tests.cast import signed_in


def failing(error: Exception) -> type:
    """An URL configuration with two addresses that fail."""

    def broken(_request: object) -> HttpResponse:
        raise error

    class Failing:
        handler500 = urls.handler500
        urlpatterns = [path("broken/", broken), path("api/v1/broken/", broken), path("", include(urls))]

    return Failing


def test_it_says_which_role_is_missing(as_viewer: Client) -> None:
    page = as_viewer.get("/audit/")
    assert page.status_code == 403
    assert "This needs the role “administrator”; yours is “viewer”." in page.content.decode()


def test_it_says_it_in_chinese(as_viewer: Client) -> None:
    page = as_viewer.get("/audit/", headers={"Accept-Language": "zh-CN"})
    assert page["Content-Language"] == "zh-hans"


def test_it_tells_somebody_without_a_role_so(as_stranger: Client) -> None:
    assert "your account has no role" in as_stranger.get("/audit/").content.decode()


def test_it_records_a_refusal(as_operator: Client) -> None:
    as_operator.get("/audit/")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.result) == ("forbidden", "otto", "refused")
    assert (entry.target, entry.detail) == ("GET /audit/", "needs the role administrator")


def test_it_refuses_the_administration_to_others(as_operator: Client) -> None:
    assert as_operator.get("/admin/", follow=True).status_code == 403


def test_it_leads_a_stranger_from_the_administration_to_the_one_form(client: Client, db: None) -> None:
    asked = client.get("/admin/auth/user/", follow=True)
    assert asked.redirect_chain[-1][0] == "/accounts/login/?next=/admin/auth/user/"


def test_it_finds_nothing_at_an_unknown_address(as_viewer: Client) -> None:
    page = as_viewer.get("/nothing/here/")
    assert page.status_code == 404
    assert "There is nothing at this address." in page.content.decode()


def test_it_refuses_and_records_a_form_from_elsewhere(viewer: User) -> None:
    client = signed_in(viewer)
    client.handler.enforce_csrf_checks = True
    page = client.post("/accounts/logout/", headers={"Origin": "https://evil.example"})
    assert page.status_code == 403
    assert "did not come from this site" in page.content.decode()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor) == ("forged request", "vera")
    assert "https://evil.example" in entry.detail


def test_it_hides_the_details_of_an_unexpected_error(as_viewer: Client, settings: Settings) -> None:
    settings.ROOT_URLCONF = failing(ValueError("password=hunter2"))
    as_viewer.raise_request_exception = False
    page = as_viewer.get("/broken/")
    assert page.status_code == 500
    assert "it has been logged" in page.content.decode()
    assert b"hunter2" not in page.content


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("database is locked", "The database is busy with other writes."),
        ("database or disk is full", "The disk of the database is full."),
        ("could not extend file: No space left on device", "The disk of the database is full."),
        ("connection to server at 10.0.0.5 failed: Connection refused", "The database cannot be reached."),
    ],
)
def test_it_says_what_is_wrong_with_the_database(
    as_viewer: Client, settings: Settings, error: str, said: str
) -> None:
    settings.ROOT_URLCONF = failing(OperationalError(error))
    as_viewer.raise_request_exception = False
    page = as_viewer.get("/broken/")
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert said in page.content.decode()
    assert "Nothing was changed." in page.content.decode()
    assert b"10.0.0.5" not in page.content
    answer = as_viewer.get("/api/v1/broken/")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert answer.json()["detail"].startswith(said)


def test_it_counts_what_failed(as_viewer: Client, settings: Settings) -> None:
    settings.ROOT_URLCONF = failing(OperationalError("database is locked"))
    as_viewer.raise_request_exception = False
    before = REGISTRY.get_sample_value("numaweb_database_errors_total") or 0
    as_viewer.get("/broken/")
    assert REGISTRY.get_sample_value("numaweb_database_errors_total") == before + 1


def test_it_refuses_and_answers_without_a_cache(as_viewer: Client, settings: Settings) -> None:
    away = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    settings.CACHES = {"default": away}
    assert as_viewer.get("/audit/").status_code == 403
    assert AuditEntry.objects.count() == 1
    assert as_viewer.get("/api/v1/clusters/").status_code == 200


def test_programs_get_problem_details(as_viewer: Client) -> None:
    answer = as_viewer.get("/api/v1/nothing/")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is nothing at this address.",
    }


def test_it_refuses_a_host_that_is_not_ours(client: Client, settings: Settings, db: None) -> None:
    settings.ALLOWED_HOSTS = ["numa.example.org"]
    assert client.get("/accounts/login/", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(("address", "status"), [("/broken/", 500), ("/nothing/here/", 404)])
def test_the_page_of_an_error_has_the_number_that_the_log_has(
    settings: Settings, viewer: User, address: str, status: int
) -> None:
    if status == 500:
        settings.ROOT_URLCONF = failing(ValueError("a defect"))
    browser = signed_in(viewer)
    browser.raise_request_exception = False
    page = browser.get(address)
    assert page.status_code == status
    assert f"<code>{page['X-Request-ID']}</code>" in page.content.decode()
