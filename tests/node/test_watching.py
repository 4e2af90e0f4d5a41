"""numaweb on a real kubelet, as the account that it is installed with: what is in force, what was only asked, and why a pod was refused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from pytest_django.fixtures import Settings

from monitoring.figures import kubelet
from monitoring.figures.kubelet import Row
from monitoring.models import Cluster, Connection, Container, Endpoint, Failure, Node, SourceView
from monitoring.selectors import nodestate, sources
from tests.cluster import rights
from tests.cluster.test_watching import WAITS
from tests.monitoring.conftest import forget
from tests.monitoring.exporters import collect_until
from tests.monitoring.watching import running
from tests.monitoring.watching.running import in_database
from tests.node import exporter, network, pods
from tests.node.lab import NAME, READY_SECONDS, Lab

pytestmark = pytest.mark.django_db(transaction=True)
OFTEN = msgspec.structs.replace(WAITS, configz=2.0, greet=5.0, patience=8.0, beat=1.0)
POLICY = "topologyManagerPolicy: single-numa-node"


@pytest.fixture(autouse=True)
def _fresh_memory() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def collecting(settings: Settings) -> None:
    """Rounds that an emulated node keeps up with."""
    settings.NUMAWEB_COLLECT_SHARDS = 1
    settings.NUMAWEB_COLLECT_PERIOD = 2.0
    settings.NUMAWEB_COLLECT_SHIFT = 600.0
    settings.NUMAWEB_COLLECT_TIMEOUT = 20.0
    settings.NUMAWEB_COLLECT_LEASE = 30.0
    settings.NUMAWEB_COLLECT_REFRESH = 1.0


@contextlib.asynccontextmanager
async def watched(lab: Lab) -> AsyncIterator[None]:
    """The cluster is connected by the watcher's account, and a watcher runs."""
    text = await asyncio.to_thread(lambda: rights.kubeconfig(lab.plane, "watcher"))

    def connect() -> None:
        cluster = Cluster.objects.create(slug="real", name="Real", kind=Cluster.Kind.KUBERNETES)
        Connection.objects.create(cluster=cluster, source=Connection.Source.KUBECONFIG, kubeconfig=text)

    await in_database(connect)
    async with running.watcher(OFTEN):
        yield


async def until(true: Callable[[], Any], wanted: str) -> None:
    deadline = asyncio.get_running_loop().time() + READY_SECONDS
    while not await in_database(true):
        assert asyncio.get_running_loop().time() < deadline, f"waited for {wanted}"
        await asyncio.sleep(0.2)


def in_force() -> dict[str, Any]:
    """What the kubelet said when numaweb asked it."""
    view = SourceView.objects.filter(source=SourceView.Source.CONFIGZ).first()
    return dict(view.values) if view else {}


def rows() -> dict[str, Row]:
    """The node's tab Kubelet, by field."""
    now = datetime.now(UTC)
    state = nodestate.node_state(Cluster.objects.get(), NAME, now)
    told = sources.running(state.node, now)
    assert state.facts.kubelet is not None
    assert told is not None
    made = kubelet.rows(state.facts.kubelet, state.report.policy, state.problems, told.settings)
    return {row.field: row for row in made}


def collected(reached: Callable[[], bool]) -> None:
    """numaweb asks the exporter that it found, until something is so."""
    assert collect_until(reached, seconds=READY_SECONDS) == "worked"


async def test_the_kubelets_own_word_is_read_with_the_watchers_right_alone(lab: Lab) -> None:
    async with watched(lab):
        await until(lambda: "settings" in in_force() or in_force().get("cause"), "a word of the kubelet")
        told = await in_database(in_force)
    assert told["settings"]["topologyManagerPolicy"] == "single-numa-node"
    assert told["settings"]["reservedSystemCPUs"] == "0-1"


async def test_a_kubelet_whose_certificate_another_authority_signed_is_told_nothing(lab: Lab) -> None:
    strange = type(lab.plane.authority)().server([NAME], [network.NODE])

    def change() -> None:
        lab.put("/var/lib/kubelet/pki/kubelet.crt", strange.certificate)
        lab.put("/var/lib/kubelet/pki/kubelet.key", strange.key, 0o600)
        lab.restart_kubelet()

    await asyncio.to_thread(change)
    async with watched(lab):
        # A busy one may be silent before: that is another word.
        await until(lambda: in_force().get("remedy") == "check-api-server-ca", "a word about its certificate")
        told = await in_database(in_force)
    assert "settings" not in told


async def test_what_was_asked_and_is_not_in_force_shows(lab: Lab, collecting: None) -> None:
    """A typo, which the kubelet ignores without a word, and a change that no restart has taken up yet."""

    def act() -> None:
        lab.configure((POLICY, "topologyManagerPolcy: single-numa-node"))
        lab.restart_kubelet()
        lab.configure(more="topologyManagerScope: pod\n")
        exporter.deploy(lab)

    await asyncio.to_thread(act)
    async with watched(lab):
        await until(lambda: "settings" in in_force(), "the kubelet's settings")
        await until(Endpoint.objects.exists, "an exporter that was found by its pod")
        await in_database(lambda: collected(lambda: Node.objects.filter(containers__isnull=False).exists()))
        found = await in_database(rows)
    typo, policy, scope = (
        found[name] for name in ("topologyManagerPolcy", "topologyManagerPolicy", "topologyManagerScope")
    )
    assert (typo.asked, typo.in_force, typo.cause) == ("single-numa-node", "", "the kubelet does not tell it")
    assert (policy.asked, policy.in_force) == ("none", "none")
    assert (scope.asked, scope.in_force, scope.differs) == ("pod", "container", True)


async def test_a_refused_pod_is_explained_from_the_nodes_true_state(lab: Lab, collecting: None) -> None:
    await asyncio.to_thread(exporter.deploy, lab)
    async with watched(lab):
        await until(Endpoint.objects.exists, "an exporter that was found by its pod")
        await in_database(lambda: collected(lambda: Container.objects.filter(name="numa-exporter").exists()))
        refused = pods.pinned("refused", cpus=5)
        await asyncio.to_thread(lab.plane.api.create, refused)
        await until(Failure.objects.exists, "a line of failures")
        line = await in_database(Failure.objects.get)
    assert (line.node_name, line.owner_name, line.reason) == (NAME, "refused", "TopologyAffinityError")
    assert line.obstacle == ""
    assert line.verdict["state"] == "refused"
    assert any(each["kind"] == "request" and each["value"] == "4" for each in line.verdict["advice"])
