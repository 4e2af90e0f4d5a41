"""What surprises numaweb in one node's answer is shown at that node, and costs the others nothing."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import DataError, OperationalError
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitoring import hot, selectors, services
from monitoring.figures import sentences
from monitoring.models import Endpoint, Node
from monitoring.services import identity, recording
from monitoring.services.collection import poller, shift, writing
from monitoring.services.collection.isolation import apart
from monitoring.services.identity import Claim
from monitoring.services.recording import Observation
from monitoring.sources import failures, snapshot
from tests.monitoring import exporters
from tests.monitoring.exporters import collect_until

SICK = "node-00001"


def tried(errors: dict[int, Exception]) -> tuple[set[int], dict[int, Exception]]:
    """Ten members, some of which break; who was worked on, and who was said to be broken."""
    done, said = set[int](), dict[int, Exception]()

    async def work(members: Sequence[int]) -> None:
        for member in members:
            if member in errors:
                raise errors[member]
        done.update(members)

    asyncio.run(apart(work, range(10), said.__setitem__))
    return done, said


def test_it_works_on_all_but_those_that_break() -> None:
    errors: dict[int, Exception] = {3: KeyError("x"), 4: DataError("out of range"), 9: ValueError("y")}
    assert tried(errors) == ({0, 1, 2, 5, 6, 7, 8}, errors)


@pytest.mark.parametrize("error", [OperationalError("away"), hot.StoreError("away")])
def test_it_blames_nobody_where_the_database_or_the_store_is_away(error: Exception) -> None:
    with pytest.raises(type(error)):
        tried({3: error})


class Log:
    """Notes what a logger was told."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, dict[str, Any]]] = []

    def error(self, event: str, **values: Any) -> None:
        self.errors.append((event, values))


def breaks_in_taking(patch: pytest.MonkeyPatch) -> None:
    decode = snapshot._decode

    def broken(body: bytes) -> Any:
        if SICK.encode() in body:
            raise ZeroDivisionError("surprise")
        return decode(body)

    patch.setattr(snapshot, "_decode", broken)


def breaks_in_identifying(patch: pytest.MonkeyPatch) -> None:
    settle = identity._Register.settle

    def broken(self: Any, claim: Claim) -> Any:
        if claim.exporter.node == SICK:
            raise ZeroDivisionError("surprise")
        return settle(self, claim)

    patch.setattr(identity._Register, "settle", broken)


def breaks_in_reporting(patch: pytest.MonkeyPatch) -> None:
    record = recording._record

    def broken(seen: Observation, threshold: float) -> None:
        if Node.objects.get(pk=seen.node).name == SICK:
            raise ZeroDivisionError("surprise")
        record(seen, threshold)

    patch.setattr(recording, "_record", broken)


def breaks_in_keeping(patch: pytest.MonkeyPatch) -> None:
    store = type(hot.store())
    put = store.put

    def broken(self: Any, states: Sequence[hot.HotNode]) -> None:
        if any(state.exporter.node == SICK for state in states):
            raise ZeroDivisionError("surprise")
        put(self, states)

    patch.setattr(store, "put", broken)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "break_it", [breaks_in_taking, breaks_in_identifying, breaks_in_reporting, breaks_in_keeping]
)
def test_a_surprise_is_shown_at_its_node_and_the_others_go_on(
    break_it: Callable[[pytest.MonkeyPatch], None], quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    monkeypatch.setattr(poller, "log", log)
    break_it(monkeypatch)
    with exporters.fleet(4) as fleet:
        cluster = services.ensure_cluster("lab", "Lab", "simulated", fleet.urls)
        sick, others = Endpoint.objects.filter(url=fleet.urls[1]), Node.objects.exclude(name=SICK)

        def shown() -> bool:
            reported = others.filter(containers__isnull=False)
            return (
                sum(hot.store().get(node.pk) is not None for node in reported) == 3
                and sick.filter(state="failing", failures__gte=2).exists()
            )

        assert collect_until(shown, seconds=60.0) == "worked"
    row = sick.get()
    assert (row.remedy, row.error) == (
        "report-defect",
        "numaweb could not process this node's answer: ZeroDivisionError: surprise",
    )
    assert "report it" in sentences.remedy(row.remedy)
    assert hot.store().counts()["collections_failed:report-defect"] >= 2
    assert len({values["step"] for _, values in log.errors}) == len(log.errors) == 1
    assert set(Endpoint.objects.exclude(url=row.url).values_list("state", flat=True)) == {"ok"}
    assert "endpoint-failing" in {each.code for each in selectors.overview(cluster, timezone.now()).attention}


@pytest.mark.django_db(transaction=True)
def test_a_duty_that_breaks_costs_no_other_duty(quick: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("surprise")

    log = Log()
    monkeypatch.setattr(shift, "log", log)
    monkeypatch.setattr(writing, "journal", broken)
    with exporters.fleet(2) as fleet:
        services.ensure_cluster("lab", "Lab", "simulated", fleet.urls)
        collect_until(
            lambda: (
                Node.objects.filter(containers__isnull=False).count() == 2
                and hot.store().counts().get("defects", 0) >= 2
            )
        )
    assert [values["duty"] for _, values in log.errors] == ["_sample", "_write_samples"]


def test_the_cause_of_a_defect_can_be_stored() -> None:
    assert str(failures.defect(ValueError("a\0b" + "c" * 1000))).endswith("c")
    assert "\0" not in str(failures.defect(ValueError("a\0b")))
