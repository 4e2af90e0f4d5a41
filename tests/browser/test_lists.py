"""Lists, search, keys and the fleet as a person uses them."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import NODE, Visitor, query

CONTAINERS = "/c/simulated/containers/"


def test_a_filter_goes_to_the_address_and_to_the_export(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open(f"{CONTAINERS}?sort=-locality")
    page.select_option("#filter-kind", "exclusive")
    expect(page.locator(".nw-chip")).to_have_count(1)
    assert query(page) == {"kind": "exclusive", "sort": "-locality"}
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    file = tmp_path / "containers.csv"
    download.value.save_as(file)
    with file.open() as lines:
        assert {row["kind"] for row in csv.DictReader(lines)} == {"exclusive"}


def test_a_chip_takes_its_filter_off_and_back_brings_it_again(visitor: Visitor) -> None:
    page = visitor.open(f"{CONTAINERS}?kind=exclusive&crossing=true")
    page.locator(".nw-chip", has_text="exclusive").click()
    expect(page.locator(".nw-chip")).to_have_count(1)
    assert query(page) == {"crossing": "true"}
    expect(page.locator("#filter-kind")).to_have_value("")
    page.go_back()
    expect(page.locator(".nw-chip")).to_have_count(2)
    expect(page.locator("#filter-kind")).to_have_value("exclusive")


def test_typing_filters_after_a_moment(visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/monitoring/")
    page.fill("#filter-q", "epyc")
    expect(page.locator("#list tbody tr")).to_have_count(1)
    expect(page.locator("#list tbody a").first).to_have_text(NODE)


def test_sorting_and_paging_keep_the_rest_of_the_address(visitor: Visitor) -> None:
    page = visitor.open(f"{CONTAINERS}?kind=floating")
    page.locator("#list").get_by_role("link", name="Locality").click()
    expect(page.locator('th[aria-sort="ascending"]')).to_have_count(1)
    page.get_by_role("navigation", name="Pages of the list").get_by_role("link", name="2", exact=True).click()
    expect(page.locator(".page-item.active")).to_have_text("2")
    assert query(page) == {"kind": "floating", "sort": "locality", "page": "2"}


def test_from_a_slow_application_to_the_reason_in_two_clicks(visitor: Visitor) -> None:
    page = visitor.open(f"{CONTAINERS}?crossing=true")
    page.locator("#list tbody a").first.click()
    page.wait_for_url("**/nodes/**")
    chosen = page.locator(".nw-row-selected")
    expect(chosen).to_have_count(1)
    expect(chosen.locator(".nw-why")).to_contain_text("inned")


def test_slash_searches(visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/")
    page.keyboard.press("/")
    page.keyboard.type("db-epyc")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=db-epyc")
    page.get_by_role("link", name=NODE).first.click()
    page.wait_for_url(f"**/nodes/{NODE}/")


def test_keys_go_to_pages_and_are_listed(visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/")
    for letter, path in (("m", "**/monitoring/"), ("c", "**/containers/"), ("o", "**/c/simulated/")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        page.wait_for_url(path)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_fleet_is_walked_by_arrow_keys_and_opens_a_node(visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/")
    link = page.locator(".nw-fleet-link").nth(1)  # a group of several nodes
    link.focus()
    first = link.get_attribute("aria-label")
    page.keyboard.press("ArrowRight")
    second = link.get_attribute("aria-label")
    assert first is not None
    assert second is not None
    assert first != second
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/nodes/{second.split(':')[0]}/")


def test_the_skip_link_leads_past_the_header(visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
