"""Where the web process listens, and what it says when it cannot."""

import socket
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from numaweb import server


@pytest.fixture
def taken() -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def test_it_says_that_a_port_is_in_use_and_what_to_do(taken: int) -> None:
    with pytest.raises(server.AddressError, match=f"Port {taken} is in use") as caught:
        server.ensure_free("127.0.0.1", taken)
    assert f"NUMAWEB_PORT={taken + 1}" in str(caught.value)


def test_it_says_that_an_address_is_not_ours() -> None:
    with pytest.raises(server.AddressError, match="Set NUMAWEB_LISTEN and NUMAWEB_PORT"):
        server.ensure_free("192.0.2.1", 30881)


@pytest.mark.parametrize("command", ["local", "serve"])
def test_the_commands_start_nothing_when_the_port_is_in_use(
    taken: int, command: str, settings: Settings
) -> None:
    settings.NUMAWEB_LISTEN, settings.NUMAWEB_PORT = "127.0.0.1", taken
    with pytest.raises(CommandError, match="is in use"):
        call_command(command)


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [("127.0.0.1:8000", "127.0.0.1", 8000), ("[::1]:8000", "::1", 8000), ("8000", "0.0.0.0", 8000)],
)
def test_it_listens_where_the_command_line_says(given: str, host: str, port: int, settings: Settings) -> None:
    settings.NUMAWEB_LISTEN, settings.NUMAWEB_PORT = "0.0.0.0", 30881
    server.listen(given)
    made = server.configuration()
    assert (made.host, made.port) == (host, port)


@pytest.mark.parametrize("given", ["localhost", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999", "a:b"])
def test_it_refuses_what_is_no_address(given: str) -> None:
    with pytest.raises(server.AddressError, match="is not an address to listen on"):
        server.listen(given)


def test_it_bounds_what_a_browser_may_send_and_believes_no_headers_by_itself() -> None:
    made = server.configuration()
    assert made.ws_max_size == 65536
    assert made.ws_per_message_deflate is False
    assert made.proxy_headers is False
    assert made.timeout_graceful_shutdown is not None
    assert made.timeout_graceful_shutdown < 10
