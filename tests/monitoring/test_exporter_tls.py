"""Exporters that speak TLS: whose certificate is believed, and that a token goes to nobody else."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from monitoring.sources.exporter import Asker, Limits, Trust
from monitoring.sources.failures import SourceError
from monitoring.sources.http1 import Answer
from tests.cluster.certificates import Authority

BODY = b'{"version": 1}'


class Exporter:
    """Answers everything with the same, and remembers what was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.heads: list[bytes] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
        await writer.drain()
        writer.close()


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def exporter(authority: Authority, tmp_path: Path) -> AsyncIterator[Exporter]:
    """Behind a certificate for `exporters.numaweb.svc`, at an address that is not in it."""
    pair = authority.server(["exporters.numaweb.svc"], [])
    (tmp_path / "pair.pem").write_text(pair.certificate + pair.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "pair.pem")
    made = Exporter()
    server = await asyncio.start_server(made.talk, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


async def ask(port: int, trust: Trust) -> Answer:
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Answer] = loop.create_future()

    def done(answer: Answer | None, error: SourceError | None) -> None:
        over.set_result(answer) if answer is not None else over.set_exception(error or AssertionError())

    asker = Asker(f"https://127.0.0.1:{port}", "secret", Limits(5.0, 4096, 8192), loop, trust)
    try:
        asker.ask({}, done)
        return await over
    finally:
        asker.close()


async def test_it_believes_the_authority_and_the_name_that_it_was_given(
    exporter: Exporter, authority: Authority
) -> None:
    answer = await ask(exporter.port, Trust(authority.pem, "exporters.numaweb.svc"))
    assert answer.body == BODY
    assert b"Authorization: Bearer secret" in exporter.heads[0]


@pytest.mark.parametrize("name", ["", "another.name"])
async def test_a_certificate_for_somebody_else_gets_no_token(
    exporter: Exporter, authority: Authority, name: str
) -> None:
    with pytest.raises(SourceError, match="TLS") as refused:
        await ask(exporter.port, Trust(authority.pem, name))
    assert (refused.value.remedy, exporter.heads) == ("check-certificate", [])


@pytest.mark.parametrize("other", [True, False])
async def test_a_certificate_of_another_authority_gets_no_token(exporter: Exporter, other: bool) -> None:
    trust = Trust(Authority().pem if other else "", "exporters.numaweb.svc")
    with pytest.raises(SourceError, match="TLS") as refused:
        await ask(exporter.port, trust)
    assert (refused.value.remedy, exporter.heads) == ("check-certificate", [])


async def test_an_authority_that_is_none_is_said_so(exporter: Exporter) -> None:
    with pytest.raises(SourceError, match="no certificate in PEM form"):
        await ask(exporter.port, Trust("-----BEGIN NOTHING-----"))
