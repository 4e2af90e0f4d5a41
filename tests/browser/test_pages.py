"""Every page, in both languages, light and dark, wide and on a phone: complete, within the screen, accessible."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import polib
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOOKS, NODE, Look, Visitor
from tests.servers import ROOT

CLUSTER = "/c/simulated/"
PAGES = {
    "overview": CLUSTER,
    "this-machine": "/c/this-machine/",
    "monitoring": f"{CLUSTER}monitoring/?topology_policy=restricted",
    "containers": f"{CLUSTER}containers/?kind=exclusive",
    "topology": f"{CLUSTER}nodes/{NODE}/",
    "problems": f"{CLUSTER}nodes/sap-power-1/",
    "problems-kubelet": f"{CLUSTER}nodes/sap-power-1/?tab=kubelet",
    "memory-only": f"{CLUSTER}nodes/gpu-grace-1/",
    "distances": f"{CLUSTER}nodes/{NODE}/?tab=distances",
    "allocation": f"{CLUSTER}nodes/{NODE}/?tab=containers",
    "history": f"{CLUSTER}nodes/{NODE}/?tab=history&range=10m",
    "kubelet": f"{CLUSTER}nodes/{NODE}/?tab=kubelet",
    "events": f"{CLUSTER}nodes/{NODE}/?tab=events",
    "document": f"{CLUSTER}nodes/gpu-grace-1/?tab=document",
    "clusters": "/clusters/",
    "search": "/search/?q=mongo",
    "audit": "/audit/",
    "password": "/accounts/password/",
}
AXE = (ROOT / "static" / "dist" / "axe.js").read_text()
RULES = {
    # All rules run; what they found right is not collected, which on a page with 7,000 elements takes most of the time.
    "resultTypes": ["violations"],
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
}


def settled(page: Page) -> None:
    """Drawings and charts stand."""
    for place, content in (
        ("[data-drawing]", "[data-drawing] svg"),
        ("[data-links]", "[data-links] svg"),
        ("[data-fleet]", "[data-fleet] canvas"),
        ("[data-history]", "[data-plot] > *"),
    ):
        if page.locator(place).count():
            expect(page.locator(content).first).to_be_attached()


@cache
def english() -> list[str]:
    """Sentences, and parts of them between values, that would be seen where the Chinese is missing."""
    entries = polib.pofile(str(ROOT / "locale/zh_Hans/LC_MESSAGES/django.po"))
    texts = [entry.msgid for entry in entries if entry.msgid != entry.msgstr]
    parts = {part.strip() for text in texts for part in re.split(r"%\(\w+\)[sd]|\{\w+\}", text)}
    return [part for part in parts if len(part) > 14 and " " in part]


def violations(page: Page) -> list[str]:
    """What axe finds, in a line each."""
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate(f"axe.run(document, {json.dumps(RULES)})")
    return [
        f"{each['id']}: {node['html'][:140]} {node['failureSummary'].splitlines()[-1].strip()}"
        for each in found["violations"]
        for node in each["nodes"][:3]
    ]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
@pytest.mark.parametrize("name", list(PAGES))
def test_it_is_complete_fits_the_screen_and_is_accessible(name: str, look: Look, visitor: Visitor) -> None:
    page = visitor.open(PAGES[name], look)
    settled(page)
    root = page.locator("html")
    assert root.get_attribute("lang") == {"en": "en", "zh": "zh-hans"}[look.language]
    assert root.get_attribute("data-bs-theme") == look.theme
    assert page.locator("h1").count() == 1
    if name.startswith("problems"):
        page.evaluate(
            "document.querySelectorAll('details.nw-problems').forEach((each) => (each.open = true))"
        )
    text = page.locator("body").inner_text()
    assert not re.findall(r"\[[a-z]+[.A-Z][A-Za-z.]*\]|%\(\w+\)s|\{\w+\}", text) or name == "document"
    if look.language == "zh":
        assert [each for each in english() if each in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    assert violations(page) == []


def test_menus_open_beside_charts_which_come_first(visitor: Visitor) -> None:
    page = visitor.open(PAGES["history"], LOOKS[0])
    expect(page.locator(".js-plotly-plot")).to_have_count(4)
    menu = page.locator(".nw-tools .dropdown")
    expect(entries := menu.locator(".dropdown-menu")).to_be_hidden()
    for _ in range(50):  # a click in the moment between charts and menus opens nothing
        menu.locator(".dropdown-toggle").click()
        if entries.is_visible():
            break
        page.wait_for_timeout(100)
    expect(entries).to_be_visible()


# A browser that has something better to do until it is told that it has not.
BUSY = """
window.requestIdleCallback = (then) => {
  const look = () => (window.idle ? then() : setTimeout(look, 20));
  look();
};
"""


def test_charts_stand_before_their_buttons_are_made(visitor: Visitor) -> None:
    page = visitor.page()
    page.add_init_script(BUSY)
    page.goto(f"{visitor.site.url}{PAGES['history']}")
    expect(page.locator(".js-plotly-plot .cartesianlayer")).to_have_count(4, timeout=60_000)
    expect(page.locator(".js-plotly-plot .modebar-btn")).to_have_count(0)
    page.evaluate("window.idle = true")
    chart = page.locator(".js-plotly-plot").first
    expect(chart.locator(".modebar-btn")).to_have_count(6)
    names = [button.get_attribute("aria-label") for button in chart.locator(".modebar-btn").all()]
    # None of them sends figures anywhere.
    assert names == ["Download plot", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"]
    expect(page.locator(".js-plotly-plot:has(.modebar-btn)")).to_have_count(4)
    chart.hover()
    with page.expect_download() as saved:
        chart.get_by_role("button", name="Download plot").click()
    assert saved.value.suggested_filename.endswith(".svg")


def test_it_asks_to_sign_in_and_then_leads_where_one_wanted_to_go(visitor: Visitor) -> None:
    page = visitor.page()
    page.context.clear_cookies()
    page.goto(f"{visitor.site.url}{CLUSTER}monitoring/?q=epyc")
    assert violations(page) == []
    page.fill("#id_username", "admin")
    page.fill("#id_password", "a long password for browser tests")
    page.click("main button.btn-primary")
    page.wait_for_url(f"**{CLUSTER}monitoring/?q=epyc")


def test_it_says_so_when_the_password_is_wrong(visitor: Visitor) -> None:
    page = visitor.page()
    page.context.clear_cookies()
    page.goto(f"{visitor.site.url}/accounts/login/")
    assert page.locator("main form").evaluate("form => form.offsetWidth") <= 512
    page.fill("#id_username", "nobody")
    page.fill("#id_password", "wrong")
    page.click("main button.btn-primary")
    expect(page.get_by_role("alert")).to_contain_text("correct username and password")


def test_a_name_as_long_as_names_may_be_does_not_widen_the_page(visitor: Visitor) -> None:
    page = visitor.open(f"{CLUSTER}nodes/{NODE}/")
    page.locator(".nw-headline").evaluate("line => line.append('n'.repeat(253))")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_shows_a_page_of_its_own_for_what_is_not_there(visitor: Visitor) -> None:
    visitor.expected = ("error: Failed to load resource",)
    page = visitor.page()
    page.goto(f"{visitor.site.url}/c/nowhere/")
    expect(page.locator("h1")).to_have_text("Not found")
    assert violations(page) == []


def test_it_keeps_the_language_and_the_theme_that_were_chosen(visitor: Visitor) -> None:
    page = visitor.open(CLUSTER)
    page.click("[data-theme-switch]")  # system, then light, then dark
    page.click("[data-theme-switch]")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("h1")).to_have_text("概览")
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"
    page.goto(f"{visitor.site.url}/clusters/")
    expect(page.locator("h1")).to_have_text("集群")
    assert page.locator("html").get_attribute("data-bs-theme") == "dark"
