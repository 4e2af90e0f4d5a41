"""What kubelets say is in force: kept beside their node; a kubelet that cannot be trusted, or refuses, is told and gets no token."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from monitoring.kube.rights import Right
from monitoring.models import Cluster, Connection, Endpoint, SourceView
from monitoring.services.watching import service, wanted
from tests.cluster.certificates import Authority, Pair
from tests.monitoring.kube.fake import FakeApiServer
from tests.monitoring.watching.running import WAITS, in_database, until, watcher

pytestmark = pytest.mark.django_db(transaction=True)
OFTEN = msgspec.structs.replace(WAITS, configz=0.2, service=0.1)
ALL = frozenset(msgspec.structs.replace(right, why="") for right in wanted.RIGHTS)
CONFIG = {"topologyManagerPolicy": "restricted", "cpuManagerPolicy": "static", "syncFrequency": "1m0s"}


class Kubelet:
    """A kubelet's port with `/configz` and nothing else."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.answer: dict[str, Any] | None = {"kubeletconfig": CONFIG}
        self.port = 0

    async def configz(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.answer is None:
            return web.Response(
                status=403, text="Forbidden (user=x, verb=get, resource=nodes, subresource(s)=[proxy])"
            )
        return web.json_response(self.answer)


def context(pair: Pair, folder: Path) -> ssl.SSLContext:
    file = folder / "pair.pem"
    file.write_text(pair.certificate + pair.key)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(file)
    return made


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def signed_by(authority: Authority) -> Authority:
    return authority


@pytest.fixture
async def kubelet(signed_by: Authority, tmp_path: Path) -> AsyncIterator[Kubelet]:
    made = Kubelet()
    app = web.Application()
    app.router.add_get("/configz", made.configz)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(
        runner, "127.0.0.1", 0, ssl_context=context(signed_by.server(["localhost"], ["127.0.0.1"]), tmp_path)
    ).start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.fixture
async def server(authority: Authority, tmp_path: Path, kubelet: Kubelet) -> AsyncIterator[FakeApiServer]:
    folder = tmp_path / "apiserver"
    folder.mkdir()
    tls = context(authority.server(["localhost"], ["127.0.0.1"]), folder)
    async with FakeApiServer(tls, authority.pem) as server:
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "n1"},
                "status": {
                    "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
                },
            }
        )
        yield server


async def connect(
    server: FakeApiServer, authority: Authority, rights: frozenset[Right] = ALL, **more: str
) -> None:
    access = server.identity(rights)

    def make() -> None:
        cluster = Cluster.objects.create(slug="lab", name="lab", kind=Cluster.Kind.KUBERNETES)
        Connection.objects.create(
            cluster=cluster,
            source=Connection.Source.TOKEN,
            server=access.server,
            ca=authority.pem,
            token=access.token,
            **more,
        )

    await in_database(make)


def said() -> dict[str, Any] | None:
    view = SourceView.objects.filter(source="configz").first()
    return None if view is None else dict(view.values)


async def test_it_keeps_what_decides_and_leaves_the_rest(
    server: FakeApiServer, kubelet: Kubelet, authority: Authority
) -> None:
    await connect(server, authority)
    async with watcher(OFTEN):
        await until(said, {"settings": {"topologyManagerPolicy": "restricted", "cpuManagerPolicy": "static"}})
        kubelet.answer = {"kubeletconfig": {"topologyManagerPolicy": "none"}}
        await until(said, {"settings": {"topologyManagerPolicy": "none"}})


async def test_a_kubelet_that_refuses_is_said_so(
    server: FakeApiServer, kubelet: Kubelet, authority: Authority
) -> None:
    kubelet.answer = None
    await connect(server, authority)
    async with watcher(OFTEN):
        await until(lambda: (said() or {}).get("remedy"), "grant-right")


async def test_without_the_right_no_kubelet_is_asked(
    server: FakeApiServer, kubelet: Kubelet, authority: Authority
) -> None:
    await connect(server, authority, ALL - {Right("get", "", "nodes", "configz")})
    async with watcher(OFTEN):
        missing = {
            "verb": "get",
            "group": "",
            "resource": "nodes",
            "subresource": "configz",
            "why": "configz",
        }
        await until(lambda: Connection.objects.get().missing, [missing])
        assert (kubelet.tokens, await in_database(said)) == ([], None)


class TestSignedByNobody:
    """Most kubelets make themselves a certificate that no authority knows."""

    @pytest.fixture
    def signed_by(self) -> Authority:
        return Authority()

    async def test_it_gets_no_token(
        self, server: FakeApiServer, kubelet: Kubelet, authority: Authority
    ) -> None:
        await connect(server, authority)
        async with watcher(OFTEN):
            await until(lambda: (said() or {}).get("remedy"), "check-api-server-ca")
        assert kubelet.tokens == []


# ---------------------------------------------------------------- exporters behind a Service


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("exporters.numaweb.svc:9200", ("exporters.numaweb.svc", 9200)), ("exporters", ("exporters", 9117))],
)
def test_it_reads_the_name_of_a_service(text: str, wanted: tuple[str, int]) -> None:
    assert service.parse(text) == wanted


@pytest.mark.parametrize(
    "text", ["", ":9117", "exporters:", "exporters:0", "exporters:many", "exporters:70000"]
)
def test_it_refuses_what_is_no_name_of_a_service(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        service.parse(text)


async def test_every_address_behind_a_service_is_an_exporter(
    server: FakeApiServer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [["10.0.0.1"], ["10.0.0.1", "10.0.0.2"], ["10.0.0.2"]]

    async def getaddrinfo(*_: object, **__: object) -> list[Any]:
        found = addresses[0] if len(addresses) == 1 else addresses.pop(0)
        return [(2, 1, 6, "", (address, 9117)) for address in found]

    monkeypatch.setattr(service, "resolve", getaddrinfo)
    await connect(
        server,
        authority,
        exporter_service="exporters:9117",
        exporter_token="secret",
        exporter_namespace="numaweb",
    )

    def urls() -> list[tuple[str, str]]:
        return list(Endpoint.objects.filter(origin="service").order_by("url").values_list("url", "token"))

    async with watcher(OFTEN):
        await until(urls, [("http://10.0.0.2:9117", "secret")])
