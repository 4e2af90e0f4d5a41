"""What changes by itself, and what a page says while it cannot."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.conftest import NODE, Visitor, query

PATH = f"/c/simulated/nodes/{NODE}/"
HEIGHTS = "() => [...document.querySelectorAll('.nw-busy')].map(each => each.getAttribute('height')).join()"
CHANGED = f"before => ({HEIGHTS})() !== before"
MOVED_IN_PLACE = f"""() => {{
  const last = window.seen;
  window.seen = {{ drawing: document.querySelector('.nw-drawing'), heights: ({HEIGHTS})() }};
  return last && last.drawing === window.seen.drawing && last.heights !== window.seen.heights;
}}"""
"""Other heights on the same elements; containers that come or go are drawn anew in between."""
FLEET = "document.querySelector('canvas').toDataURL()"
STANDING = 3_000
"""Milliseconds in which a fleet that is followed would have moved."""
STARTING = 90_000
"""Milliseconds for a restarted program to serve, collect and be live again."""


def live(page: Page, timeout: float = 20_000) -> None:
    expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=timeout)


def test_cpus_and_memory_move_without_a_new_layout(visitor: Visitor) -> None:
    page = visitor.open(PATH)
    live(page)
    page.wait_for_function(MOVED_IN_PLACE)


@pytest.mark.parametrize(
    ("source", "words"), [("silent", "no collector is running"), ("lost", "collectors out of reach")]
)
def test_it_says_why_nothing_comes_although_the_connection_stands(
    visitor: Visitor, source: str, words: str
) -> None:
    page = visitor.page()
    sockets: list[WebSocketRoute] = []

    def between(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket("**/ws/**", between)
    page.goto(f"{visitor.site.url}/c/simulated/")
    live(page)
    sockets[0].send(f'{{"type":"state","source":"{source}"}}')
    expect(page.locator("#live")).to_have_attribute("data-state", source)
    expect(page.locator("#live")).to_contain_text(words)
    sockets[0].send('{"type":"state","source":"ok"}')
    live(page)


def test_the_fleet_moves(visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/")
    live(page)
    before = page.evaluate("document.querySelector('canvas').toDataURL()")
    page.wait_for_function("before => document.querySelector('canvas').toDataURL() !== before", arg=before)


def test_a_pace_is_kept_remembered_and_in_the_address(visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/")
    live(page)
    page.select_option("[data-pace]", "paused")
    expect(page.locator("#live")).to_have_attribute("data-state", "paused")
    assert query(page) == {"refresh": "paused"}
    before = page.evaluate(FLEET)
    page.wait_for_timeout(STANDING)
    assert page.evaluate(FLEET) == before
    page.goto(f"{visitor.site.url}{PATH}")
    expect(page.locator("[data-pace]")).to_have_value("paused")
    page.goto(f"{visitor.site.url}/c/simulated/?refresh=5")
    expect(page.locator("[data-pace]")).to_have_value("5")
    before = page.evaluate(FLEET)
    page.wait_for_function(f"before => {FLEET} !== before", arg=before)
    page.select_option("[data-pace]", "live")
    live(page)
    assert query(page) == {}


def test_history_between_two_moments_is_in_the_address(visitor: Visitor) -> None:
    page = visitor.open(f"{PATH}?tab=history")
    page.fill("#id_from", "2026-01-01T08:00:00")
    page.fill("#id_to", "2026-01-01T07:00:00")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_contain_text("To: ")
    page.fill("#id_from", page.evaluate("new Date(Date.now() - 300000).toISOString().slice(0, 19)"))
    page.fill("#id_to", "")
    page.get_by_role("button", name="Show").click()
    expect(page.locator('[data-metric="busy"] .js-line').first).to_be_attached(timeout=60_000)
    assert set(query(page)) == {"tab", "from"}  # an empty end is left out


def test_history_is_drawn(visitor: Visitor) -> None:
    page = visitor.open(f"{PATH}?tab=history&range=10m")
    expect(page.locator('[data-metric="busy"] .js-line').first).to_be_attached(timeout=60_000)
    expect(page.locator('[data-metric="busy"] [data-note]')).to_contain_text("from numaweb")


class Line:
    """A page's connection, with somebody who can cut it without either end noticing, and hears what the page says."""

    def __init__(self, page: Page) -> None:
        self.made, self.dead = 0, False
        self.said: list[str] = []
        page.route_web_socket("**/ws/**", self.between)

    def between(self, socket: WebSocketRoute) -> None:
        self.made, self.dead = self.made + 1, False
        number, server = self.made, socket.connect_to_server()

        def passes() -> bool:
            return not (self.dead and number == self.made)

        def up(message: str | bytes) -> None:
            if passes():
                self.said.append(str(message))
                server.send(message)

        server.on_message(lambda message: socket.send(message) if passes() else None)
        socket.on_message(up)


def asleep(page: Page, hidden: bool) -> None:
    """As a browser tells it of a tab that goes to the background, and that comes back."""
    page.evaluate(
        """hidden => {
          Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )


def followed(visitor: Visitor) -> tuple[Page, Line]:
    """A live page whose clock can be put forward, and its connection."""
    page = visitor.page()
    page.clock.install()
    line = Line(page)
    page.goto(f"{visitor.site.url}{PATH}")
    live(page)
    page.evaluate("window.same = true")
    return page, line


def test_a_connection_that_looks_open_and_says_nothing_is_made_anew(visitor: Visitor) -> None:
    page, line = followed(visitor)
    line.dead = True
    page.clock.fast_forward(10_000)
    expect(page.locator("#live")).to_have_attribute("data-state", "old")
    expect(page.locator("html")).to_have_class(re.compile("nw-stale"))
    assert line.made == 1  # ten seconds are no reason yet
    page.clock.fast_forward(12_000)
    live(page)
    assert line.made == 2
    assert page.evaluate("window.same")
    before = page.evaluate(HEIGHTS)
    page.wait_for_function(CHANGED, arg=before)


def test_a_page_whose_lid_was_closed_for_hours_comes_back_by_itself(visitor: Visitor) -> None:
    page, line = followed(visitor)
    asleep(page, hidden=True)
    line.dead = True
    page.clock.fast_forward(3 * 3600 * 1000)
    assert line.made == 1  # nobody looks
    asleep(page, hidden=False)
    expect(page.locator("#live")).to_contain_text("min")
    page.clock.fast_forward(21_000)
    live(page)
    assert line.made == 2
    assert page.evaluate("window.same")


def test_a_tab_in_the_background_costs_nothing_and_is_new_when_it_is_looked_at(visitor: Visitor) -> None:
    page, line = followed(visitor)
    asleep(page, hidden=True)
    page.wait_for_timeout(1500)
    assert line.said[-1] == '{"type":"pause"}'
    before = page.evaluate(HEIGHTS)
    page.wait_for_timeout(STANDING)
    assert page.evaluate(HEIGHTS) == before
    asleep(page, hidden=False)
    page.wait_for_function(CHANGED, arg=before)
    assert '{"type":"resume"}' in line.said
    live(page)
    assert line.made == 1


def test_a_page_says_that_one_has_signed_out_elsewhere(visitor: Visitor) -> None:
    visitor.expected = ("error: WebSocket",)
    page = visitor.page()
    page.context.clear_cookies()
    page.goto(f"{visitor.site.url}{PATH}")
    page.fill("#id_username", "admin")
    page.fill("#id_password", "a long password for browser tests")
    page.click("main button.btn-primary")
    live(page)
    other = page.context.new_page()
    other.goto(f"{visitor.site.url}/clusters/")
    other.get_by_role("button", name="admin").click()
    other.get_by_role("button", name="Sign out").click()
    page.bring_to_front()
    expect(page.locator("#live")).to_have_attribute("data-state", "signedOut", timeout=30_000)


def test_a_page_comes_back_by_itself_after_a_restart(visitor: Visitor) -> None:
    visitor.expected = ("error: WebSocket", "error: Failed to load resource")
    page = visitor.open(PATH)
    live(page)
    visitor.site.server.stop()
    expect(page.locator("#live")).to_have_attribute("data-state", "restarting")
    expect(page.locator("#live")).to_contain_text("server restarting")
    visitor.site.server.start()
    live(page, STARTING)
    before = page.evaluate(HEIGHTS)
    page.wait_for_function(CHANGED, arg=before)
