"""What rooms plug into the pages, and who gets to see it."""

import re

from django.contrib.auth.models import AnonymousUser, User
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from numaweb import context, roles, slots
from numaweb.models import FirstPassword

PAGES = ["overview", "monitoring", "containers", "policies", "planner", "failures"]


def opened(user: object) -> list[str]:
    return [entry.slot.url_name for entry in slots.menu(user) if not entry.needs]


def test_everybody_sees_every_entry_and_which_role_opens_it(
    viewer: User, administrator: User, stranger: User
) -> None:
    for person in (viewer, administrator, stranger):
        assert [entry.slot.url_name for entry in slots.menu(person)] == [*PAGES, "audit"]
    assert opened(viewer) == PAGES
    assert opened(administrator) == [*PAGES, "audit"]
    assert opened(stranger) == []
    needed = {entry.slot.url_name: str(entry.needs) for entry in slots.menu(viewer)}
    assert needed["audit"] == "needs the role administrator"


def test_an_entry_that_one_may_not_open_is_switched_off_and_says_why(as_viewer: Client) -> None:
    page = as_viewer.get("/clusters/").content.decode()
    (entry,) = re.findall(r'<a class="nav-link disabled"[^>]*>.*?</a>', page)
    assert "href" not in entry
    assert 'aria-disabled="true"' in entry
    assert ">Audit<" in entry
    assert "needs the role administrator" in entry
    assert "/audit/" not in page


def test_each_entry_names_the_least_role_that_has_its_permission(groups: object) -> None:
    for slot in slots.GATHERED:
        assert roles.least_with(slot.permission) == slot.role, slot.label


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
