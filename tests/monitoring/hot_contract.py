"""What every hot store must do. Run against memory in test_hot.py and against Redis in tests/services."""

import time
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from monitoring.hot import Cells, HotNode, Note, Reading, Store, planes
from numacore import wire

Make = Callable[[], Store]


def state(
    node: int = 7, *, received: float = 100.0, usage: bytes = b'{"now":1}', machine: str = "m1"
) -> HotNode:
    return HotNode(
        node=node,
        endpoint=3,
        exporter=wire.Exporter("n1", "machine", "boot", "0.1", 5.0),
        received=received,
        taken=received - 0.5,
        hashes={"machine": machine, "containers": "c1", "usage": str(received)},
        confirmed={"machine": received},
        problems=(wire.Problem("sysfs", "/sys/x", "no such file", 2),),
        skew=-0.5,
        seconds=2.0,
        sections={"machine": machine.encode(), "containers": b"[]", "usage": usage},
        before=Reading(b'{"before":1}'),
    )


def block(slots: list[int], busy: bytes, *, taken: float = 1.0) -> Cells:
    return Cells(
        taken,
        np.array(slots, "<i4").tobytes(),
        np.array(slots, "<u4").tobytes(),
        np.array([2] * len(slots), "<u2").tobytes(),
        np.array([taken] * len(slots), "<f8").tobytes(),
        bytes(len(busy)),
        busy,
    )


def it_returns_what_was_put(store: Store) -> None:
    store.put([state(7), state(8, received=200.0)])
    assert store.get(7) == state(7)
    assert store.get_many([7, 8, 9]) == {7: state(7), 8: state(8, received=200.0)}
    assert store.get(9) is None
    assert store.sections([7, 8, 9], "machine") == {
        7: state(7).sections["machine"],
        8: state(8).sections["machine"],
    }
    assert store.sections([7], "no such section") == {}


def it_replaces_what_changed_and_keeps_the_rest(store: Store) -> None:
    store.put([state()])
    first = state()
    second = msgspec.structs.replace(
        state(received=102.0, usage=b'{"now":2}'), before=Reading(first.sections["usage"])
    )
    store.put([second])
    assert store.get(7) == second
    third = msgspec.structs.replace(
        state(received=104.0, usage=b'{"now":3}', machine="m2"),
        before=Reading(second.sections["usage"], b'{"containers":[]}'),
    )
    store.put([third])
    assert store.get(7) == third
    store.put([msgspec.structs.replace(state(received=106.0), before=None, seconds=None)])
    found = store.get(7)
    assert found is not None
    assert found.before is None


def it_forgets(store: Store) -> None:
    store.put([state(7), state(8)])
    store.forget([7])
    store.forget([])
    assert store.get(7) is None
    assert store.get(8) is not None


def it_forgets_a_node_that_somebody_looks_at(store: Store) -> None:
    store.put([state(7), state(8)])
    store.watch(7, 30)
    store.watch(8, 30)
    store.forget([7])
    assert (store.get(7), store.watched()) == (None, {8})


def it_keeps_the_cells_of_every_shard(store: Store) -> None:
    store.put_cells(1, 0, block([0], b"\x01\x02"))
    store.put_cells(1, 1, block([4], b"\x05\x06"))
    store.put_cells(1, 0, block([0], b"\x03\x04", taken=2.0))
    assert planes(store.cells(1), 8).busy.tolist() == [3, 4, 255, 255, 5, 6, 255, 255]
    assert store.cells(2) == []


def it_knows_who_is_looked_at(store: Store) -> None:
    store.watch(7, 30)
    store.watch(8, 0.05)
    assert store.watched() == {7, 8}
    time.sleep(0.1)
    assert store.watched() == {7}
    store.watch(7, 30)
    assert store.watched() == {7}


def it_counts(store: Store) -> None:
    store.count("a", 2)
    store.count("a", 3)
    store.count("b", 1)
    assert store.counts() == {"a": 5, "b": 1}


def it_notes(store: Store) -> None:
    store.note("prometheus", Note(1.0, True))
    store.note("prometheus", Note(2.0, False, "timeout", "no answer"))
    assert store.notes() == {"prometheus": Note(2.0, False, "timeout", "no answer")}


CONTRACT = [
    pytest.param(each, id=each.__name__)
    for each in (
        it_returns_what_was_put,
        it_replaces_what_changed_and_keeps_the_rest,
        it_forgets,
        it_forgets_a_node_that_somebody_looks_at,
        it_keeps_the_cells_of_every_shard,
        it_knows_who_is_looked_at,
        it_counts,
        it_notes,
    )
]
