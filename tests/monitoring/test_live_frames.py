"""Frames of the overview: a page that hears them has the planes, and a tick is never large."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitoring.hot import Planes
from monitoring.live import frames
from tests.monitoring.browser import Page

planes = st.integers(0, 40).flatmap(
    lambda size: st.lists(
        st.tuples(st.binary(min_size=size, max_size=size), st.binary(min_size=size, max_size=size)),
        min_size=1,
        max_size=5,
    )
)


def made(pinned: bytes, busy: bytes) -> Planes:
    return Planes(np.frombuffer(pinned, np.uint8).copy(), np.frombuffer(busy, np.uint8).copy())


@given(planes)
def test_it_brings_a_page_to_every_state(states: list[tuple[bytes, bytes]]) -> None:
    page, told = Page(), made(*states[0])
    page.hear(frames.full(told, 7, 0, 1.0))
    for number, state in enumerate(states[1:], 1):
        page.hear(frames.delta(told, made(*state), 7, number, 2.0))
        assert not page.gap
        assert (page.pinned.tobytes(), page.busy.tobytes()) == state


def test_it_stays_small_for_five_thousand_nodes_of_eight() -> None:
    rng = np.random.default_rng(1)
    size = 40_000
    told = made(bytes(size), rng.integers(0, 200, size, np.uint8).tobytes())
    after = made(bytes(size), rng.integers(0, 200, size, np.uint8).tobytes())
    assert len(frames.delta(told, after, 1, 1, 1.0)) <= 64 * 1024


def test_it_spreads_what_does_not_fit_over_several_ticks() -> None:
    size = 100_000
    told, after = made(bytes(size), bytes(size)), made(b"\x01" * size, b"\x02" * size)
    page = Page()
    page.hear(frames.full(told, 1, 0, 1.0))
    ticks = 0
    while (page.busy != after.busy).any() or (page.pinned != after.pinned).any():
        ticks += 1
        frame = frames.delta(told, after, 1, ticks, 1.0, start=ticks * frames.LIMIT)
        assert len(frame) <= frames.LIMIT
        page.hear(frame)
    assert 4 <= ticks <= 8


def test_it_costs_little_when_little_changes() -> None:
    told, after = made(bytes(40_000), bytes(40_000)), made(bytes(40_000), b"\x05" + bytes(39_999))
    assert len(frames.delta(told, after, 1, 1, 1.0)) == frames.HEADER.size + 10_000 + 1


def test_it_needs_a_full_frame_after_a_gap_or_another_hub() -> None:
    told = made(b"\x01", b"\x01")
    page = Page()
    page.hear(frames.full(told, 1, 5, 1.0))
    page.hear(frames.delta(told, made(b"\x01", b"\x02"), 1, 7, 1.0))
    assert page.gap
    page.hear(frames.full(told, 1, 9, 1.0))
    gaps = [page.gap]
    page.hear(frames.delta(told, made(b"\x01", b"\x02"), 2, 10, 1.0))
    assert [*gaps, page.gap] == [False, True]
