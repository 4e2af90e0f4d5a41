"""Exporters behind a headless Service, beside a real API server: found by its name, asked over TLS with their token, and joined to the Node."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitoring.models import Connection, Endpoint, Node
from tests.cluster import things
from tests.cluster.controlplane import ControlPlane
from tests.cluster.test_watching import WAITS, connect
from tests.monitoring.exporters import collect_until
from tests.monitoring.watching.running import in_database, until, watcher
from tests.numaagent import trees
from tests.numaagent.test_containers import SYSTEMD_V2
from tests.numaagent.test_server import serving

pytestmark = pytest.mark.django_db(transaction=True)
NAME, TOKEN = "exporters.numaweb.svc", "long-enough-and-random"


@pytest.fixture
def exporter(plane: ControlPlane, tmp_path: Path) -> Iterator[int]:
    """The port of a real exporter of the node `a`, behind TLS and a token."""
    pair = plane.authority.server([NAME, "localhost"], [])
    for name, text in (("crt", pair.certificate), ("key", pair.key), ("token", TOKEN)):
        (tmp_path / name).write_text(text)
    files = {
        "NUMAAGENT_TLS_CERT_FILE": str(tmp_path / "crt"),
        "NUMAAGENT_TLS_KEY_FILE": str(tmp_path / "key"),
        "NUMAAGENT_TOKEN_FILE": str(tmp_path / "token"),
    }
    tls = ssl.create_default_context(cadata=plane.authority.pem)
    with serving(trees.build(SYSTEMD_V2, tmp_path / "root"), tls, NODE_NAME="a", **files) as found:
        yield found.port


async def connected(plane: ControlPlane, port: int, token: str) -> None:
    await connect(plane)
    told = {"exporter_https": True, "exporter_ca": plane.authority.pem, "exporter_name": NAME}
    # A field that is sealed is written by its row.
    connection = await in_database(Connection.objects.get)
    connection.exporter_service, connection.exporter_token = f"localhost:{port}", token
    for name, value in told.items():
        setattr(connection, name, value)
    await in_database(connection.save)


def at(port: int) -> Endpoint | None:
    return Endpoint.objects.filter(origin=Endpoint.Origin.SERVICE, url=f"https://127.0.0.1:{port}").first()


async def test_exporters_behind_a_name_are_asked_over_tls_with_their_token(
    plane: ControlPlane, exporter: int
) -> None:
    plane.api.create(things.node("a"))
    uid = plane.api.get("/api/v1/nodes/a")["metadata"]["uid"]
    await connected(plane, exporter, TOKEN)
    async with watcher(WAITS):
        await until(lambda: at(exporter) is not None, True)
        await until(lambda: Node.objects.filter(name="a").exists(), True)
    await in_database(lambda: collect_until(lambda: Node.objects.filter(topology__isnull=False).exists()))
    node = await in_database(Node.objects.get)
    assert (node.name, node.uid) == ("a", uid)


async def test_another_token_is_refused_and_said_so(plane: ControlPlane, exporter: int) -> None:
    await connected(plane, exporter, "another")
    async with watcher(WAITS):
        await until(lambda: at(exporter) is not None, True)
    await in_database(
        lambda: collect_until(lambda: Endpoint.objects.filter(state="failing", remedy="set-token").exists())
    )
    found = await in_database(lambda: at(exporter))
    assert "refuses the bearer token" in found.error
    assert "another" not in found.error
