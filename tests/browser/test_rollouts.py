"""Rollouts in a browser: complete, accessible, on a phone, too; a plan is confirmed only with its number, what is at work keeps up by itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOOKS, Look, Site, Visitor
from tests.browser.test_pages import english, violations

LIST = "/c/rolling/rollouts/"


@pytest.fixture(scope="module")
def rolling(site: Site, session: Path) -> None:
    """A cluster with rollouts in many states; the site has made its tables by now."""
    site.stage("rollouts")


def opened(visitor: Visitor, state: str, look: Look = LOOKS[0], query: str = "") -> Page:
    """The page of the rollout that the list shows in this state."""
    page = visitor.open(LIST, look)
    row = page.locator("tr").filter(has=page.locator(".badge", has_text=state)).first
    address = row.get_by_role("link").first.get_attribute("href")
    page.goto(f"{visitor.site.url}{address}{query}")
    return page


STATES = {
    "planned": ("waits for confirmation", "等待确认", ""),
    "running": ("running", "进行中", ""),
    "stopped": ("stopped", "已停止", "?node=node-1"),
}


SEEN = [
    *((name, look) for name in ("planned", "stopped") for look in LOOKS),
    *((name, look) for name in ("list", "preview", "running") for look in LOOKS[::2]),
]


@pytest.mark.parametrize(("name", "look"), SEEN, ids=[f"{name}-{look.name}" for name, look in SEEN])
def test_it_is_complete_fits_the_screen_and_is_accessible(
    name: str, look: Look, visitor: Visitor, rolling: None
) -> None:
    if name == "list":
        page = visitor.open(LIST, look)
    elif name == "preview":
        page = visitor.open("/c/rolling/policies/cluster/preview/", look)
        page.locator("#plan details").evaluate("each => { each.open = true; }")
    else:
        state, chinese, query = STATES[name]
        page = opened(visitor, chinese if look.language == "zh" else state, look, query)
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/rollout-{name}-{look.name}.png", full_page=True)
    text = page.locator("main").inner_text()
    if look.language == "zh":
        assert [each for each in english() if each in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    assert violations(page) == []


def test_a_wrong_number_confirms_nothing(visitor: Visitor, rolling: None) -> None:
    page = opened(visitor, "waits for confirmation")
    expect(page.get_by_role("button", name="Change them")).to_be_disabled()
    expect(page.get_by_text("Another rollout of this cluster is not finished:")).to_be_visible()


def test_what_is_at_work_is_paused_by_keyboard_and_says_so(visitor: Visitor, rolling: None) -> None:
    page = opened(visitor, "running")
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("It is paused: no node is touched until somebody resumes it.")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
