"""Pages of what an API server tells, in a browser: complete in both languages, accessible, within a phone's screen, by keyboard."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Look, Site, Visitor
from tests.browser.test_pages import english, violations

PAGES = {
    "pods": "/c/west/pods/",
    "connection": "/c/west/connection/",
    "containers": "/c/west/containers/",
    "allocation": "/c/west/nodes/blind/?tab=containers",
    "sources": "/c/west/nodes/blind/?tab=sources",
    "events": "/c/west/nodes/blind/?tab=events",
    "without-exporter": "/c/west/nodes/bare/",
    "failing-overview": "/c/far/",
    "failing-pods": "/c/far/pods/",
    "failing-refused": "/c/far/failures/",
    "failing-connection": "/c/far/connection/",
    "no-connection": "/c/simulated/connection/",
    "no-pods": "/c/simulated/pods/",
}
PHONE = Look("dark", "zh", 390)


@pytest.fixture(scope="module")
def west(site: Site, session: object) -> None:
    """The cluster; the site has made its tables by now."""
    site.stage("kubernetes")


@pytest.mark.parametrize("look", [*LOOKS, PHONE], ids=lambda look: look.name)
@pytest.mark.parametrize("name", list(PAGES))
def test_it_is_complete_fits_the_screen_and_is_accessible(
    name: str, look: Look, visitor: Visitor, west: None
) -> None:
    page = visitor.open(PAGES[name], look)
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/{name}-{look.name}.png", full_page=True)
    assert page.locator("h1").count() == 1
    text = page.locator("body").inner_text()
    if look.language == "zh":
        assert [each for each in english() if each in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    assert violations(page) == []


def test_a_keyboard_gets_from_a_container_to_its_pod_and_back(visitor: Visitor, west: None) -> None:
    page = visitor.open(f"{PAGES['allocation']}&q=ranker")
    page.get_by_role("link", name="Deployment owner-of-ranker-5f7c").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Pods")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="its containers").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Containers")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_placements_that_nobody_knows_are_found_by_keyboard(visitor: Visitor, west: None) -> None:
    page = visitor.open(PAGES["pods"])
    page.locator("#filter-placement").focus()
    page.keyboard.type("unknown: its exporter does")
    page.keyboard.press("Tab")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "placement=not-shown" in page.evaluate("location.search")
    expect(page.locator("tbody")).to_contain_text("kata-1")
