"""One API server over HTTP: whom it is told from others, what it is told, and what becomes of a bad answer."""

import asyncio
import contextlib
import gzip
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from monitoring.kube import client as client_module
from monitoring.kube.access import Access
from monitoring.kube.client import Client, Limits
from monitoring.kube.errors import (
    ApiError,
    Forbidden,
    Garbled,
    NotServed,
    TooLarge,
    TooMany,
    Unauthorized,
    Unreachable,
    Untrusted,
)
from monitoring.kube.resources import NODES
from tests.cluster.certificates import Authority, Pair
from tests.monitoring.kube.answers import as_json, breaking_off, endless, refusing, saying
from tests.monitoring.kube.fake import FakeApiServer


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as server:
        yield server


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def context(pair: Pair, folder: Path) -> ssl.SSLContext:
    file = folder / "server.pem"
    file.write_text(pair.certificate + pair.key)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(file)
    return made


@pytest.fixture
async def secure(authority: Authority, tmp_path: Path) -> AsyncIterator[FakeApiServer]:
    pair = authority.server(["kubernetes.default.svc"], ["127.0.0.1"])
    async with FakeApiServer(context(pair, tmp_path), authority.pem) as server:
        yield server


async def failure(access: Access, limits: Limits = Limits()) -> ApiError:  # noqa: B008
    async with Client(access, limits) as client:
        with pytest.raises(ApiError) as failed:
            await client.get(NODES.path)
    return failed.value


def having(access: Access, **changes: Any) -> Access:
    return msgspec.structs.replace(access, **changes)


# ---------------------------------------------------------------- whom it trusts


async def test_it_speaks_to_a_server_of_its_own_authority(secure: FakeApiServer) -> None:
    assert secure.access.server.startswith("https://")
    async with Client(secure.access) as client:
        assert (await client.version()).git_version == "v1.37.2"


async def test_it_says_nothing_to_a_server_of_another_authority(secure: FakeApiServer) -> None:
    for ca in (Authority().pem, None):
        failed = await failure(having(secure.access, ca=ca))
        assert isinstance(failed, Untrusted)
        assert failed.remedy == "check-api-server-ca"
        assert "certificate verify failed" in failed.message
    assert secure.asked == []


async def test_it_says_nothing_to_a_server_with_another_name(secure: FakeApiServer) -> None:
    failed = await failure(
        having(secure.access, server=secure.access.server.replace("127.0.0.1", "localhost"))
    )
    assert isinstance(failed, Untrusted)
    assert secure.asked == []
    for name, trusted in (("kubernetes.default.svc", True), ("other.default.svc", False)):
        async with Client(having(secure.access, tls_server_name=name)) as client:
            if trusted:
                await client.version()
            else:
                with pytest.raises(Untrusted):
                    await client.version()


async def test_a_server_without_tls_is_not_trusted(server: FakeApiServer) -> None:
    failed = await failure(having(server.access, server=server.access.server.replace("http:", "https:")))
    assert isinstance(failed, Untrusted)


async def test_it_shows_its_certificate(authority: Authority, tmp_path: Path) -> None:
    demanding = context(authority.server(["localhost"], ["127.0.0.1"]), tmp_path)
    demanding.verify_mode = ssl.CERT_REQUIRED
    demanding.load_verify_locations(cadata=authority.pem)
    pair = authority.client("numaweb", ["readers"])
    async with FakeApiServer(demanding, authority.pem) as server:
        shown: list[Any] = []

        async def look(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            shown.append(request.transport.get_extra_info("peercert")["subject"])
            return as_json({"major": "1", "minor": "37", "gitVersion": "v"})

        server.always = look
        access = Access(server.access.server, authority.pem, certificate=pair.certificate, key=pair.key)
        async with Client(access) as client:
            await client.version()
    assert (("commonName", "numaweb"),) in shown[0]


async def test_a_name_may_not_lead_to_the_clouds_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged when it is resolved, so that nothing can lie in between."""

    def resolve(*_: object, **__: object) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 443))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", _later(resolve))
    failed = await failure(Access("https://metadata.example:443", token="t"))
    assert isinstance(failed, Unreachable)
    assert failed.remedy == "check-api-server-address"
    assert "which numaweb never asks" in failed.message


def _later(answer: Any) -> Any:
    async def later(*_: object, **__: object) -> Any:
        return answer()

    return later


async def test_it_uses_no_proxy_and_follows_no_redirect(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Client(server.access) as client:
        await client.version()
    server.always = saying(b"", 307, Location="http://127.0.0.1:1/elsewhere")
    failed = await failure(server.access)
    assert isinstance(failed, Garbled)
    assert (failed.reason, failed.remedy) == ("Redirect", "check-api-server-address")


# ---------------------------------------------------------------- who it is


async def test_a_token_that_is_replaced_in_its_file_is_used(server: FakeApiServer, tmp_path: Path) -> None:
    now = [0.0]
    file = tmp_path / "token"
    file.write_text("admin\n")
    access = Access(server.access.server, token_file=str(file))
    async with Client(access, Limits(token_age=60.0), ticks=lambda: now[0]) as client:
        await client.version()
        server._users["newer"] = server._users["admin"]
        file.write_text("newer\n")
        now[0] = 59.0
        await client.version()
        now[0] = 60.0
        await client.version()
        # A file that is just being replaced is no reason to stop.
        file.unlink()
        now[0] = 200.0
        await client.version()
    sent = [each.headers["Authorization"] for each in server.asked]
    assert sent == ["Bearer admin", "Bearer admin", "Bearer newer", "Bearer newer"]


async def test_a_refused_token_is_read_again_at_once(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("older")
    async with Client(Access(server.access.server, token_file=str(file))) as client:
        with pytest.raises(Unauthorized) as refused:
            await client.version()
        assert refused.value.remedy == "renew-credentials"
        file.write_text("admin")
        await client.version()


async def test_a_token_that_cannot_be_read_is_said_so(server: FakeApiServer, tmp_path: Path) -> None:
    failed = await failure(Access(server.access.server, token_file=str(tmp_path / "none")))
    assert isinstance(failed, Unauthorized)
    assert "holds no token" in failed.message
    assert server.asked == []


async def test_an_error_never_repeats_the_token(server: FakeApiServer) -> None:
    server.always = refusing(500, "InternalError", "you sent Bearer admin, and 'admin' is bad")
    failed = await failure(server.access)
    assert failed.message == "you sent Bearer ***, and '***' is bad"


# ---------------------------------------------------------------- what it is told


@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (401, Unauthorized, "renew-credentials"),
        (403, Forbidden, "grant-right"),
        (404, NotServed, "check-api-server-address"),
        (429, TooMany, "wait"),
        (500, ApiError, "see-api-server-log"),
    ],
)
async def test_a_refusal_has_a_name_and_a_remedy(
    server: FakeApiServer, code: int, kind: type[ApiError], remedy: str
) -> None:
    server.always = refusing(code, "Reason", "what the server says", retry_after=7)
    failed = await failure(server.access)
    assert type(failed) is kind
    said = (failed.status, failed.reason, failed.message, failed.remedy, failed.after)
    assert said == (code, "Reason", "what the server says", remedy, 7.0)


async def test_a_refusal_of_no_kubernetes_is_told_without_its_words(server: FakeApiServer) -> None:
    for body in (b"<script>alert(1)</script>", b'{"message":"<script>"}', b"x" * 1_000_000):
        server.always = saying(body, 502)
        failed = await failure(server.access)
        assert failed.message == "HTTP 502, without a word of Kubernetes about it"
    server.always = refusing(500, "InternalError", "line\n\x1b[31mred" + "x" * 10_000)
    failed = await failure(server.access)
    assert failed.message.isprintable()
    assert len(failed.message) == 500


async def test_a_refusal_without_a_right_in_its_words_names_none(server: FakeApiServer) -> None:
    server.always = refusing(403, "Forbidden", "no")
    failed = await failure(server.access)
    assert isinstance(failed, Forbidden)
    assert failed.right is None


async def test_another_server_is_no_api_server(server: FakeApiServer) -> None:
    for body in (b"<html>", b"{}", b'{"major":1}'):
        server.always = saying(body)
        async with Client(server.access) as client:
            with pytest.raises(Garbled) as failed:
                await client.version()
        assert failed.value.remedy == "check-api-server-address"


# ---------------------------------------------------------------- bad answers


async def test_an_endless_answer_is_cut_off(server: FakeApiServer) -> None:
    server.always = endless(b" " * 65_536)
    failed = await failure(server.access, Limits(body=1_000_000))
    assert isinstance(failed, TooLarge)
    assert failed.message == "the answer is longer than 1000000 bytes"


async def test_a_packed_answer_is_not_unpacked(server: FakeApiServer) -> None:
    """Nobody asked for it, and a small one could become a large one."""
    packed = gzip.compress(b" " * 1_000_000)
    server.always = saying(packed, 200, **{"Content-Encoding": "gzip"})
    async with Client(server.access, Limits(body=10_000)) as client:
        assert await client.get(NODES.path) == packed
    assert server.asked[0].headers["Accept-Encoding"] == "identity"


async def test_a_cut_answer_is_no_answer(server: FakeApiServer) -> None:
    server.always = breaking_off(b'{"items":[')
    failed = await failure(server.access)
    assert isinstance(failed, Unreachable)
    assert failed.message.startswith("the connection ended in the middle")


async def test_what_does_not_speak_http_is_named() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        port = listening.sockets[0].getsockname()[1]
        failed = await failure(Access(f"http://127.0.0.1:{port}"))
    finally:
        listening.close()
        await listening.wait_closed()
    assert isinstance(failed, Garbled)
    assert failed.remedy == "check-api-server-address"


async def test_nobody_at_the_address_is_unreachable(server: FakeApiServer) -> None:
    access = server.access
    await server.stop()
    failed = await failure(access)
    assert isinstance(failed, Unreachable)
    assert failed.remedy == "check-api-server-runs"
    assert "refused" in failed.message.lower()


async def test_a_stream_leaves_no_connection_behind(secure: FakeApiServer) -> None:
    """Nor does it wait for the other side's goodbye."""
    async with Client(secure.access) as client:
        for _ in range(3):
            with contextlib.suppress(KeyError):
                async with client.stream(NODES.path, {"watch": "true", "resourceVersion": "1000"}):
                    raise KeyError
    for _ in range(2000):
        if not secure.watching:
            break
        await asyncio.sleep(0.005)
    assert secure.watching == 0


async def test_it_watches_connections_for_their_end(server: FakeApiServer) -> None:
    async with (
        Client(server.access) as client,
        client.stream(NODES.path, {"watch": "true", "resourceVersion": "1000"}) as stream,
    ):
        connection = stream._response.connection
        assert connection is not None
        assert connection.transport is not None
        wire = connection.transport.get_extra_info("socket")
        assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


class Stubborn(threading.Thread):
    """A TLS server that begins an answer and then neither reads nor goes, whatever the other side says."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.over = threading.Event()
        self._tls = tls
        self.start()

    def run(self) -> None:
        raw, _ = self.listening.accept()
        with self._tls.wrap_socket(raw, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.over.wait(10)
        self.listening.close()


async def test_it_leaves_no_socket_behind(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch over TLS ends in the middle, and nobody waits for the other side's goodbye."""
    made: list[socket.socket] = []
    alive = client_module._alive_socket

    def counted(place: tuple[Any, ...]) -> socket.socket:
        made.append(alive(place))
        return made[-1]

    monkeypatch.setattr(client_module, "_alive_socket", counted)
    server = Stubborn(context(authority.server(["localhost"], ["127.0.0.1"]), tmp_path))
    try:
        async with Client(Access(f"https://127.0.0.1:{server.port}", authority.pem)) as client:
            async with client.stream(NODES.path, {"watch": "true"}):
                pass
            assert [each.fileno() > 0 for each in made] == [True]
        assert [each.fileno() for each in made] == [-1]
    finally:
        server.over.set()
        server.join()
