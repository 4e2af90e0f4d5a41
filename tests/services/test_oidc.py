"""Sign-in by an OpenID Connect provider, against the real web process and a provider that checks what it is asked."""

import contextlib
import re
import sqlite3
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from tests import servers, stack
from tests.services.provider import CLIENT, SECRET, Provider

KEY = "only-for-tests-" * 5


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as running:
        running.start()
        yield running
        running.shutdown()


@pytest.fixture(scope="module")
def surroundings(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    settings = stack.environment(
        NUMAWEB_STATE_DIR=str(tmp_path_factory.mktemp("state")),
        NUMAWEB_SECRET_KEY=KEY,
        NUMAWEB_OIDC_URL=provider.url,
        NUMAWEB_OIDC_CLIENT_ID=CLIENT,
        NUMAWEB_OIDC_CLIENT_SECRET=SECRET,
        NUMAWEB_OIDC_ROLES="numa-ops=operator,numa-admins=administrator",
    )
    stack.manage(settings, "migrate", "--verbosity=0")
    stack.manage(settings, "bootstrap")
    return settings


@pytest.fixture(scope="module")
def web(surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with stack.web(tmp_path_factory.mktemp("web"), surroundings) as part:
        yield part.url


class Browser:
    """Keeps cookies and follows redirects, as a browser does; an error page is an answer like any other."""

    def __init__(self, web: str) -> None:
        self.web = web
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def open(self, address: str, body: bytes | None = None) -> tuple[int, str, str]:
        headers = {"Referer": f"{self.web}/accounts/login/"}
        request = urllib.request.Request(f"{self.web}{address}", data=body, headers=headers)
        try:
            with self.opener.open(request, timeout=10) as answer:
                return answer.status, answer.url, answer.read().decode()
        except HTTPError as error:
            return error.code, error.url, error.read().decode()

    def sign_in(self, target: str = "/accounts/password/") -> tuple[int, str, str]:
        _status, _url, page = self.open("/accounts/login/")
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page))
        form = f"csrfmiddlewaretoken={token}".encode()
        return self.open(f"/accounts/oidc/login/?next={target}", form)


@pytest.fixture
def browser(web: str, provider: Provider) -> Browser:
    provider.reset()
    return Browser(web)


class Person(NamedTuple):
    roles: list[str]
    is_staff: int
    is_superuser: int


def rows(surroundings: dict[str, str], query: str) -> list[Any]:
    with contextlib.closing(
        sqlite3.connect(f"{surroundings['NUMAWEB_STATE_DIR']}/numaweb.sqlite3")
    ) as database:
        return database.execute(query).fetchall()


def people(surroundings: dict[str, str]) -> dict[str, Person]:
    query = """SELECT username, is_staff, is_superuser, auth_group.name FROM auth_user
        LEFT JOIN auth_user_groups ON user_id = auth_user.id LEFT JOIN auth_group ON group_id = auth_group.id"""
    found: dict[str, Person] = {}
    for name, staff, superuser, role in rows(surroundings, query):
        found.setdefault(name, Person([], staff, superuser)).roles.append(role)
    return found


def test_it_signs_in_with_the_mapped_role_and_lands_where_it_pointed(
    browser: Browser, provider: Provider, surroundings: dict[str, str]
) -> None:
    status, url, _page = browser.sign_in()
    assert (status, urlsplit(url).path) == (200, "/accounts/password/")
    assert provider.asked["code_challenge_method"] == "S256"
    assert people(surroundings)["olga"] == (["operator"], False, False)
    query = "SELECT action, actor, result FROM policies_auditentry ORDER BY sequence DESC LIMIT 1"
    assert rows(surroundings, query) == [("sign-in", "olga", "done")]


def test_it_follows_the_provider_at_each_sign_in(
    browser: Browser, provider: Provider, surroundings: dict[str, str]
) -> None:
    provider.claims |= {"sub": "2", "preferred_username": "petra"}
    browser.sign_in()
    assert people(surroundings)["petra"].roles == ["operator"]
    provider.claims["groups"] = ["numa-admins", "numa-ops"]
    Browser(browser.web).sign_in()
    assert people(surroundings)["petra"] == (["administrator"], True, False)
    provider.claims["groups"] = ["others"]
    assert Browser(browser.web).sign_in()[0] == 403


@pytest.mark.parametrize("groups", [[], ["others"], None, [{"odd": 1}], "numa-opsx"])
def test_it_lets_nobody_in_without_a_mapped_group(
    browser: Browser, provider: Provider, surroundings: dict[str, str], groups: object
) -> None:
    provider.claims |= {"sub": "3", "preferred_username": "nora", "groups": groups}
    status, _url, page = browser.sign_in()
    assert status == 403
    assert "did not vouch for a role" in page
    assert "nora" not in people(surroundings)


def test_it_does_not_become_a_local_user_of_the_same_name_or_address(
    browser: Browser, provider: Provider, surroundings: dict[str, str]
) -> None:
    provider.claims |= {"sub": "4", "preferred_username": "admin", "email": "admin@example.org"}
    assert browser.sign_in()[0] == 200
    known = people(surroundings)
    assert known["admin"].roles == ["administrator"]
    (other,) = [name for name in known if name.startswith("admin") and name != "admin"]
    assert known[other].roles == ["operator"]


@pytest.mark.parametrize("token", [{"iss": "https://evil.example"}, {"aud": "another-client"}, {"exp": 1}])
def test_it_refuses_a_token_that_is_not_for_us(
    browser: Browser, provider: Provider, token: dict[str, Any]
) -> None:
    provider.token = token
    assert browser.sign_in()[0] == 403


def test_it_refuses_when_the_provider_refuses(browser: Browser, provider: Provider) -> None:
    provider.broken = True
    assert browser.sign_in()[0] == 403


def test_it_refuses_an_answer_that_it_did_not_ask_for(browser: Browser, provider: Provider) -> None:
    provider.codes["planted"] = {}
    assert browser.open("/accounts/oidc/login/callback/?code=planted&state=made-up")[0] == 403
    assert provider.codes  # the code was not even tried


def test_it_accepts_an_answer_once(browser: Browser, provider: Provider) -> None:
    browser.sign_in()
    again = f"/accounts/oidc/login/callback/?code=used&state={provider.asked['state']}"
    assert browser.open(again)[0] == 403


def test_it_starts_only_by_post(browser: Browser) -> None:
    assert browser.open("/accounts/oidc/login/")[0] == 405


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example"])
def test_it_never_leads_to_another_site(browser: Browser, target: str) -> None:
    _status, url, _page = browser.sign_in(target)
    assert url.startswith(browser.web)


def test_it_says_when_the_provider_cannot_be_reached(
    surroundings: dict[str, str], tmp_path: Path, provider: Provider
) -> None:
    away = {**surroundings, "NUMAWEB_OIDC_URL": f"http://127.0.0.1:{servers.free_port()}"}
    with stack.web(tmp_path, away) as part:
        status, _url, page = Browser(part.url).sign_in()
    assert status == 502
    assert "cannot be reached" in page
