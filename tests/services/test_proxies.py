"""The TLS profile behind a proxy, in the real web process: whom it believes, what it promises, where it leads."""

import contextlib
import http.client
import sqlite3
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import stack

HOST = "numa.example.org"
Answer = tuple[int, Message]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


def surroundings(state: Path, **more: str) -> dict[str, str]:
    settings = {"NUMAWEB_SECRET_KEY": "only-for-tests-" * 5, "NUMAWEB_STATE_DIR": str(state)}
    return stack.environment(**settings, NUMAWEB_TLS="1", NUMAWEB_ALLOWED_HOSTS=HOST, **more)


@pytest.fixture(scope="module")
def web(state: Path) -> Iterator[str]:
    """The process behind a proxy on this machine."""
    settings = surroundings(state, NUMAWEB_TRUSTED_PROXIES="127.0.0.0/8")
    stack.manage(settings, "migrate", "--verbosity=0")
    stack.manage(settings, "bootstrap")
    with stack.web(state, settings) as part:
        yield part.url


def get(web: str, path: str, host: str = HOST, **headers: str) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(web).netloc, timeout=10)
    with contextlib.closing(connection):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers={"Host": host, **named})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers


def test_it_leads_plain_http_to_tls(web: str) -> None:
    status, headers = get(web, "/accounts/login/")
    assert (status, headers["Location"]) == (301, f"https://{HOST}/accounts/login/")


def test_it_promises_tls_to_whoever_came_by_it(web: str) -> None:
    status, headers = get(web, "/accounts/login/", X_Forwarded_Proto="https")
    assert status == 200
    assert headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "; Secure" in headers["Set-Cookie"]
    assert "Server" not in headers


def test_it_answers_probes_without_tls_and_by_any_name(web: str) -> None:
    assert get(web, "/healthz", host="10.0.0.7:30881")[0] == 200
    assert get(web, "/readyz", host="10.0.0.7:30881")[0] == 200


def test_it_refuses_another_name(web: str) -> None:
    assert get(web, "/accounts/login/", host="evil.example", X_Forwarded_Proto="https")[0] == 400


def test_it_records_the_address_that_the_proxy_names(web: str, state: Path) -> None:
    forged = {
        "Origin": "https://evil.example",
        "X_Forwarded_Proto": "https",
        "X_Forwarded_For": "198.51.100.9",
    }
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    status, _headers = get(
        web, "/ws/c/x/overview/", **forged, **upgrade, Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA=="
    )
    assert status == 403
    with contextlib.closing(sqlite3.connect(state / "numaweb.sqlite3")) as database:
        query = "SELECT action, address FROM policies_auditentry ORDER BY sequence DESC LIMIT 1"
        assert database.execute(query).fetchone() == ("forged origin", "198.51.100.9")


def test_it_believes_nobody_who_is_not_a_named_proxy(web: str, state: Path) -> None:
    with stack.web(state, surroundings(state)) as direct:
        assert get(direct.url, "/accounts/login/", X_Forwarded_Proto="https")[0] == 301
