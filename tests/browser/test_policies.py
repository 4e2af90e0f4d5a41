"""Affinity policies in a browser: complete, accessible, on a phone, too; written down by keyboard alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Look, Site, Visitor
from tests.browser.test_pages import english, violations

PAGES = {
    "policies": "/c/west/policies/",
    "policy": "/c/west/policies/cluster/",
    "preview": "/c/simulated/policies/cluster/preview/",
    "pool": "/c/west/policies/pools/gold/",
    "new-pool": "/c/west/policies/pools/",
}


@pytest.fixture(scope="module")
def wanted(site: Site, session: Path) -> None:
    """A cluster with pools and policies; the site has made its tables by now."""
    site.stage("wanted")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
@pytest.mark.parametrize("name", list(PAGES))
def test_it_is_complete_fits_the_screen_and_is_accessible(
    name: str, look: Look, visitor: Visitor, wanted: None
) -> None:
    page = visitor.open(PAGES[name], look)
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/{name}-{look.name}.png", full_page=True)
    text = page.locator("body").inner_text()
    if look.language == "zh":
        assert [each for each in english() if each in text] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    assert violations(page) == []


def test_a_policy_is_written_with_the_keyboard_and_shown(visitor: Visitor, wanted: None) -> None:
    page = visitor.open("/c/west/policies/node/spare-0/")
    page.locator("input[name=topology_policy][value=best-effort]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("input[name=topology_policy][value=restricted]")).to_be_checked()
    page.locator("input[name=prefer_closest]").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/west/policies/")
    row = page.locator("tr", has=page.get_by_role("rowheader", name="Node spare-0"))
    expect(row).to_contain_text("restricted")
    expect(row).to_contain_text("optimal NUMA distance")


def test_a_contradiction_leads_to_its_field(visitor: Visitor, wanted: None) -> None:
    page = visitor.open("/c/west/policies/node/slow-0/")
    page.check("input[name=topology_policy][value=single-numa-node]")
    page.check("input[name=cpu_options][value=align-by-socket]")
    page.fill("input[name=reserved_cpus]", "0-")
    page.get_by_role("button", name="Write it down").click()
    alert = page.get_by_role("alert").filter(has_text="This is not written down yet.")
    expect(alert).to_contain_text("align-by-socket does not go with single-numa-node")
    alert.get_by_role("link", name="Reserved CPUs").click()
    assert page.evaluate("location.hash") == "#id_reserved_cpus"
    expect(page.locator("input[name=reserved_cpus]")).to_have_value("0-")


def test_a_node_whose_kubelet_nobody_knows_is_left_alone(visitor: Visitor, wanted: None) -> None:
    page = visitor.open(PAGES["preview"])
    cards = page.locator("section.card").filter(has_text="Nobody tells the version of this kubelet")
    expect(cards).to_have_count(8)
