"""A shift asks every exporter, and what one of them does harms no other."""

import time
from datetime import UTC, datetime

import pytest
from pytest_django.fixtures import Settings

from monitoring import hot, selectors, services
from monitoring.models import Cluster, Container, Endpoint, HistoryJournal, Lease, Node, NodeEvent, Placement
from monitoring.services import leases
from monitoring.services.collection import roster
from monitoring.services.watching.nodes import NodeKeeper
from numasim.faults import Fault
from tests.monitoring import exporters
from tests.monitoring.exporters import collect_until
from tests.monitoring.watching import objects

pytestmark = pytest.mark.django_db(transaction=True)


def now() -> datetime:
    return datetime.now(UTC)


def known(urls: list[str]) -> Cluster:
    return services.ensure_cluster("lab", "Lab", "simulated", urls)


def reported(count: int) -> bool:
    return Node.objects.filter(containers__isnull=False).count() == count


class Faster:
    """A clock on which every reading is another second: the fleet's counters move once a second."""

    def __init__(self) -> None:
        self.start = time.time()

    def __call__(self) -> float:
        return self.start + (time.time() - self.start) * 20


def test_it_finds_nodes_containers_and_history(quick: Settings) -> None:
    with exporters.fleet(3) as fleet:
        cluster = known(fleet.urls)
        assert collect_until(lambda: reported(3) and HistoryJournal.objects.exists()) == "worked"
    node = Node.objects.get(name="node-00001")
    assert (node.cpus, node.numa_nodes, node.containers) == (384, 8, 6)
    assert Container.objects.filter(node=node).count() == 6
    assert Placement.objects.filter(node=node).count() == 1
    assert set(Endpoint.objects.values_list("state", flat=True)) == {"ok"}
    overview = selectors.overview(cluster, now())
    assert overview.totals.nodes == 3
    assert overview.totals.containers == 18
    assert {tile.cells for tile in overview.tiles} == {8}
    assert len(overview.planes.busy) == 24


def test_it_knows_use_after_two_rounds(quick: Settings) -> None:
    with exporters.fleet(1, clock=Faster()) as fleet:
        cluster = known(fleet.urls)
        collect_until(lambda: bool((selectors.overview(cluster, now()).planes.busy != hot.UNKNOWN).any()))
    state = selectors.node_state(cluster, "node-00000", now())
    assert state.live
    assert state.report.busy is not None
    assert 0 < state.report.busy <= 1


def test_of_many_nodes_those_that_somebody_looks_at_are_told_whole_and_the_others_now_and_then(
    quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "ALL_FRESH", 1)
    monkeypatch.setattr(roster, "WHOLE_RATE", 2 / 3600)  # an hour for two nodes
    oldest: dict[str, float] = {}

    def received(node: int) -> float:
        state = hot.store().get(node)
        return state.received if state else 0.0

    def heard(node: int) -> float:
        return max((block.heard().get(node, 0.0) for block in hot.store().cells(cluster.pk)), default=0.0)

    with exporters.fleet(2, clock=Faster()) as fleet:
        cluster = known(fleet.urls)

        def both_run() -> bool:
            if not reported(2):
                return False
            seen, unseen = Node.objects.order_by("name").values_list("pk", flat=True)
            hot.store().watch(seen, 60)
            oldest.setdefault("at", received(unseen))
            return (
                received(seen) > oldest["at"] + 1
                and heard(unseen) > oldest["at"] + 1
                and bool((selectors.overview(cluster, now()).planes.busy != hot.UNKNOWN).all())
            )

        collect_until(both_run)
    unseen = Node.objects.get(name="node-00001")
    assert received(unseen.pk) == oldest["at"]
    state = selectors.node_state(cluster, "node-00001", now())
    assert state.age is not None
    assert state.age >= 1  # and no value of this copy is shown as younger
    assert not state.stale


SICK: list[tuple[Fault, str]] = [
    ("black-hole", "check-network"),
    ("slow", "check-network"),
    ("slow-loris", "check-network"),
    ("huge-body", "check-exporter"),
    ("endless-chunked", "check-exporter"),
    ("gzip-bomb", "check-exporter"),
    ("truncated", "check-exporter-runs"),
    ("error", "see-exporter-log"),
    ("redirect", "use-final-address"),
    ("invalid-json", "check-exporter-version"),
    ("invalid-utf8", "check-exporter-version"),
    ("wrong-version", "check-exporter-version"),
    ("bad-section", "check-exporter-version"),
    ("bad-use", "check-exporter-version"),
]


def test_it_tells_each_fault_with_its_remedy_and_goes_on_with_the_others(quick: Settings) -> None:
    quick.NUMAWEB_COLLECT_TIMEOUT = 3.0  # a busy machine must not make a sound exporter a slow one
    faults = {i + 1: fault for i, (fault, _) in enumerate(SICK)}
    rows: dict[str, Endpoint] = {}
    attention: list[str] = []
    with exporters.fleet(len(SICK) + 4, faults=faults) as fleet:
        cluster = known(fleet.urls)

        def told() -> dict[Fault, str]:
            return {fault: rows[fleet.urls[i + 1]].remedy for i, (fault, _) in enumerate(SICK)}

        def sound() -> list[str]:
            return [rows[fleet.urls[i]].state for i in (0, len(SICK) + 1, len(SICK) + 2, len(SICK) + 3)]

        def all_told() -> bool:
            rows.update((each.url, each) for each in Endpoint.objects.all())
            attention[:] = [each.code for each in selectors.overview(cluster, now()).attention]
            failing = attention.count("endpoint-failing") == len(SICK)
            return failing and told() == dict(SICK) and sound() == ["ok"] * 4 and reported(4)

        collect_until(all_told, seconds=60)
        assert all(rows[fleet.urls[i + 1]].error for i in range(len(SICK)))
        assert (told(), sound()) == (dict(SICK), ["ok"] * 4)
    assert attention.count("endpoint-failing") == len(SICK)
    assert hot.store().counts()["collections_failed:check-network"] >= 3


def test_a_node_whose_figures_cannot_be_read_is_shown_as_failing_and_stays_so(quick: Settings) -> None:
    told: list[str] = []
    with exporters.fleet(2, faults={1: "bad-use"}) as fleet:
        cluster = known(fleet.urls)
        endpoint = Endpoint.objects.filter(url=fleet.urls[1])

        def failing() -> bool:
            told.extend(endpoint.values_list("state", flat=True))
            return endpoint.filter(failures__gte=3).exists() and reported(1)

        collect_until(failing)
    assert "ok" not in told[told.index("failing") :]
    state = selectors.node_state(cluster, "node-00001", now())
    assert (state.live, state.cause) == (False, "endpoint-failing")
    assert "cpu_time" in state.cause_text
    assert state.facts.topology.cpus
    assert selectors.node_state(cluster, "node-00000", now()).live


def test_it_keeps_the_rhythm_of_sound_nodes_beside_black_holes(quick: Settings) -> None:
    quick.NUMAWEB_COLLECT_CONCURRENCY = 4
    sick: dict[int, Fault] = dict.fromkeys(range(1, 9), "black-hole")
    oldest = [1e9]
    with exporters.fleet(20, faults=sick) as fleet:
        cluster = known(fleet.urls)

        def steady() -> bool:
            heard = [at for block in hot.store().cells(cluster.pk) for at in block.heard().values() if at]
            if len(heard) == 12:
                oldest[0] = min(oldest[0], time.time() - min(heard))
            return oldest[0] < 0.5

        collect_until(steady)


def test_it_takes_the_first_of_two_exporters_that_claim_one_node(quick: Settings) -> None:
    with exporters.fleet(3, faults={2: "duplicate-identity"}) as fleet:
        cluster = known(fleet.urls[:2])
        collect_until(lambda: Node.objects.count() == 2)
        known(fleet.urls)
        collect_until(
            lambda: Endpoint.objects.exclude(conflict="").exists() and "conflicts" in hot.store().counts()
        )
    second = Endpoint.objects.get(url=fleet.urls[2])
    assert second.node is None
    assert fleet.urls[0] in second.conflict
    assert second.remedy == "remove-duplicate"
    assert Endpoint.objects.get(url=fleet.urls[0]).node == Node.objects.get(name="node-00000")
    assert "endpoint-conflict" in {each.code for each in selectors.overview(cluster, now()).attention}


def test_it_measures_a_clock_that_is_a_year_off_and_ages_by_its_own(quick: Settings) -> None:
    with exporters.fleet(2, faults={1: "clock-skew"}) as fleet:
        cluster = known(fleet.urls)
        collect_until(lambda: not Endpoint.objects.filter(skew=None).exists() and reported(2))
    assert Endpoint.objects.get(url=fleet.urls[1]).skew == pytest.approx(365 * 86400, abs=5)
    assert abs(Endpoint.objects.get(url=fleet.urls[0]).skew or 9) < 1
    state = selectors.node_state(cluster, "node-00001", now())
    assert state.age is not None
    assert state.age < 5


def test_it_shows_no_use_where_counters_started_anew(quick: Settings) -> None:
    with exporters.fleet(1, faults={0: "counter-reset"}, clock=Faster()) as fleet:
        cluster = known(fleet.urls)
        collect_until(lambda: hot.store().counts().get("collections_ok", 0) > 12)
        planes = selectors.overview(cluster, now()).planes
    assert all(share <= hot.UNIT or share == hot.UNKNOWN for share in planes.busy.tolist())


def test_it_notes_a_node_that_stops_to_answer_and_returns(quick: Settings) -> None:
    quick.NUMAWEB_COLLECT_TIMEOUT = 0.01
    with exporters.fleet(2) as fleet:
        quick.NUMAWEB_COLLECT_TIMEOUT = 1.0
        cluster = known(fleet.urls)
        collect_until(lambda: reported(2))
        node = Node.objects.get(name="node-00001")
        fleet.fleet.faults[1] = "error"
        collect_until(lambda: NodeEvent.objects.filter(node=node, code="endpoint-failing").exists())
        quick.NUMAWEB_COLLECT_TIMEOUT = 0.0
        assert selectors.node_state(cluster, node.name, now()).cause == "endpoint-failing"
        quick.NUMAWEB_COLLECT_TIMEOUT = 1.0
        fleet.fleet.faults[1] = None
        collect_until(lambda: NodeEvent.objects.filter(node=node, code="endpoint-ok").exists())
    codes = list(NodeEvent.objects.filter(node=node).order_by("pk").values_list("code", flat=True))
    assert codes == ["first-seen", "endpoint-failing", "endpoint-ok"]


def test_it_follows_changes_of_the_list_of_endpoints_within_a_shift(quick: Settings) -> None:
    with exporters.fleet(2) as fleet:
        cluster = known(fleet.urls[:1])

        def grown() -> bool:
            if Node.objects.count() == 1:
                known(fleet.urls)
            return reported(2)

        collect_until(grown)
    assert [node.name for node in selectors.nodes(cluster)] == ["node-00000", "node-00001"]


def test_an_exporter_speaks_for_the_node_that_the_api_server_put_in_the_place_of_its_own(
    quick: Settings,
) -> None:
    with exporters.fleet(1) as fleet:
        cluster = known(fleet.urls)
        keeper = NodeKeeper(cluster.pk)

        def told(uid: str) -> None:
            keeper.now = now()
            keeper.put([objects.node("node-00000", uid)])

        def speaks_for(uid: str) -> bool:
            spoken = Endpoint.objects.filter(node__uid=uid, node__gone_at=None, node__numa_nodes__gt=0)
            return spoken.exists() and Container.objects.filter(node__uid=uid).exists()

        collect_until(lambda: reported(1))
        told("u1")
        collect_until(lambda: speaks_for("u1"))

        def replaced() -> bool:
            """Within one shift, so that its pollers knew the node that is gone."""
            if speaks_for("u1"):
                told("u2")
            return speaks_for("u2")

        collect_until(replaced)
    assert Node.objects.filter(gone_at=None).count() == 1


def test_it_refuses_addresses_that_lead_to_cloud_metadata(quick: Settings) -> None:
    known(["http://169.254.169.254", "http://[::ffff:169.254.169.254]:80", "ftp://127.0.0.1/"])
    collect_until(lambda: Endpoint.objects.filter(state="failing").count() == 3)
    rows = Endpoint.objects.order_by("pk")
    assert {row.remedy for row in rows} == {"fix-address"}
    assert "metadata" in rows[0].error
    assert "metadata" in rows[1].error
    assert "http://" in rows[2].error


def test_it_leaves_a_shard_alone_that_somebody_collects(quick: Settings) -> None:
    quick.NUMAWEB_COLLECT_LEASE = 0.4
    with exporters.fleet(1) as fleet:
        known(fleet.urls)
        told: list[str] = []

        def busy() -> bool:
            if reported(1):
                told.append(services.collect(0))
            return bool(told)

        assert collect_until(busy) == "worked"
    assert set(told) == {"busy"}


def test_it_offers_a_shard_only_if_nobody_seems_to_collect_it(quick: Settings) -> None:
    assert services.shift_wanted(0)
    held = leases.take("collect-0", 0.1)
    assert held is not None
    assert not services.shift_wanted(0)
    leases.renew(held)
    assert not services.shift_wanted(0)
    assert services.shift_wanted(0)


def test_it_divides_endpoints_among_shards(quick: Settings) -> None:
    quick.NUMAWEB_COLLECT_SHARDS = 2
    with exporters.fleet(4) as fleet:
        known(fleet.urls)
        collect_until(lambda: reported(2), shard=0)
        assert Node.objects.count() == 2
        collect_until(lambda: reported(4), shard=1)


def test_it_ends_when_its_lease_is_taken(quick: Settings) -> None:
    with exporters.fleet(1) as fleet:
        known(fleet.urls)

        def stolen() -> bool:
            if not reported(1):
                return False
            Lease.objects.filter(name="collect-0").update(token="somebody else")
            return True

        collect_until(stolen)
        assert Lease.objects.get(name="collect-0").token == "somebody else"
