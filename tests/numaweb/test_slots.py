"""What rooms plug into the pages, and who gets to see it."""

from django.contrib.auth.models import AnonymousUser, User
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from numaweb import context, slots
from numaweb.models import FirstPassword


def names(user: object) -> list[str]:
    return [slot.url_name for slot in slots.menu(user)]


def test_it_shows_the_entries_that_somebody_may_open(
    viewer: User, administrator: User, stranger: User
) -> None:
    pages = ["overview", "monitoring", "containers", "policies", "planner", "failures"]
    assert names(viewer) == pages
    assert names(administrator) == [*pages, "audit"]
    assert names(stranger) == []


def test_it_gives_pages_who_looks_and_what_to_warn_of(administrator: User, settings: Settings) -> None:
    FirstPassword.objects.create(user=administrator)
    request = RequestFactory().get("/")
    request.user = administrator
    given = context.page(request)
    assert (given["role"], given["http_warning"], given["first_password"]) == ("administrator", True, True)
    settings.NUMAWEB_TLS = True
    assert context.page(request)["http_warning"] is False


def test_only_administrators_are_warned_of_plain_http(as_viewer: Client, as_administrator: Client) -> None:
    assert "NUMAWEB_TLS" not in as_viewer.get("/accounts/password/").content.decode()
    assert "NUMAWEB_TLS" in as_administrator.get("/accounts/password/").content.decode()


def test_it_gives_nothing_away_to_nobody() -> None:
    request = RequestFactory().get("/")
    assert context.page(request)["menu"] == []
    request.user = AnonymousUser()
    given = context.page(request)
    assert (given["menu"], given["role"], given["first_password"]) == ([], None, False)
