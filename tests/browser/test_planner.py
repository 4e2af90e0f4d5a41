"""The Planner as a person uses it: by mouse, by keyboard, in two languages, by a link."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, WIDE, Look, Visitor
from tests.browser.test_pages import violations

PLANNER = "/c/simulated/planner/"
POD = "kind: Pod\nmetadata: {name: web}\nspec: {schedulerName: volcano, containers: [{name: app, resources: {limits: {cpu: 7, memory: 1Gi}}}]}"


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
@pytest.mark.parametrize("query", ["", urlencode({"m": POD}), urlencode({"m": POD, "node": "gpu-xeon-1"})])
def test_it_is_complete_fits_the_screen_and_is_accessible(query: str, look: Look, visitor: Visitor) -> None:
    page = visitor.open(f"{PLANNER}?{query}", look)
    if query:
        expect(page.locator("[data-drawing] svg")).to_be_attached()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= look.width
    assert violations(page) == []


def test_a_manifest_is_answered_with_the_pod_lit_in_the_drawing(visitor: Visitor) -> None:
    page = visitor.open(PLANNER)
    page.fill("#manifest", POD.replace("cpu: 7", "cpu: 2"))
    page.click("#manifest-form button.btn-primary")
    expect(page.locator(".nw-headline strong")).to_contain_text("of 8 nodes would take it.")
    expect(page.locator(".nw-lit")).to_have_count(2)


def test_a_node_that_refuses_says_why_and_what_helps(visitor: Visitor) -> None:
    page = visitor.open(f"{PLANNER}?{urlencode({'m': POD})}")
    page.get_by_role("link", name="gpu-xeon-1").first.click()
    evidence = page.locator("#evidence")
    expect(evidence).to_contain_text("7 CPUs are no multiple of the 2 threads of a core")
    expect(evidence).to_contain_text("What would make it fit")
    expect(evidence).to_contain_text("Volcano would send it here and the kubelet would refuse it")


def test_it_works_by_keyboard_alone(visitor: Visitor) -> None:
    page = visitor.open(PLANNER)
    page.focus("#manifest")
    page.keyboard.insert_text(POD)
    for _ in range(8):
        page.keyboard.press("Tab")
    expect(page.locator("#manifest-form button.btn-primary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".nw-headline strong")).to_contain_text("nodes would take it.")


def test_the_form_makes_a_manifest_that_can_be_changed(visitor: Visitor) -> None:
    page = visitor.open(PLANNER)
    page.get_by_label("CPUs 1", exact=True).fill("2")
    page.get_by_label("Memory 1", exact=True).fill("1Gi")
    page.select_option("#id_pod_policy", "restricted")
    page.click("button[value=pod]")
    expect(page.locator(".nw-headline strong")).to_contain_text("nodes would take it.")
    page.locator("#question summary").click()
    expect(page.locator("#manifest")).to_have_value(re.compile("kind: Deployment"))


def test_containers_come_and_go_by_mouse_and_by_keyboard(visitor: Visitor) -> None:
    page = visitor.open(PLANNER)
    page.get_by_label("CPUs 1", exact=True).fill("2")
    page.get_by_role("button", name="Add a container").click()
    page.get_by_label("CPUs 2", exact=True).fill("4")
    page.get_by_label("Role 2", exact=True).select_option("sidecar")
    page.focus("#more-rows")
    page.keyboard.press("Enter")
    expect(page.get_by_label("CPUs 3", exact=True)).to_be_visible()
    expect(page.locator("#more-rows")).to_be_focused()
    page.get_by_role("button", name="Remove container 1").click()
    expect(page.get_by_label("CPUs 1", exact=True)).to_have_value("4")
    expect(page.get_by_label("Role 1", exact=True)).to_have_value("sidecar")
    expect(page.get_by_label("CPUs 3", exact=True)).to_have_count(0)


def test_the_form_is_complete_without_scripts(visitor: Visitor) -> None:
    page = visitor.page(WIDE, scripts=False)
    page.goto(f"{visitor.site.url}{PLANNER}")
    page.get_by_label("CPUs 1", exact=True).fill("2")
    page.get_by_role("button", name="Add a container").click()
    expect(page.get_by_label("CPUs 1", exact=True)).to_have_value("2")
    expect(page.get_by_label("CPUs 2", exact=True)).to_be_visible()


def test_workloads_are_put_behind_one_another_and_judged_in_order(visitor: Visitor) -> None:
    """What is typed into the manifest and not yet sent goes along."""
    page = visitor.open(PLANNER)
    page.fill("#manifest", POD.replace("cpu: 7", "cpu: 2"))
    page.get_by_label("CPUs 1", exact=True).fill("4")
    page.get_by_label("Memory 1", exact=True).fill("1Gi")
    page.select_option("#id_kind", "StatefulSet")
    page.fill("#id_name", "db")
    page.click("button[value=append]")
    expect(page.get_by_role("link", name="Pod/web", exact=True)).to_be_visible()
    page.locator("#question summary").click()
    page.check("#id_together")
    page.click("#manifest-form button.btn-primary")
    page.get_by_role("link", name="StatefulSet/db", exact=True).click()
    evidence = page.locator("#evidence")
    expect(evidence).to_contain_text("In this order on this node")
    expect(evidence).to_contain_text("Pod/web")
    assert page.evaluate("new URLSearchParams(location.search).get('together')") == "1"


def test_volcanos_steps_are_told(visitor: Visitor) -> None:
    page = visitor.open(f"{PLANNER}?{urlencode({'m': POD, 'node': 'gpu-xeon-1'})}")
    steps = page.locator(".nw-plan-steps li")
    expect(steps).to_have_count(4)
    expect(steps.nth(1)).to_contain_text("Container “app” asks for 7 CPUs.")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_a_node_says_what_a_restart_would_bring(look: Look, visitor: Visitor) -> None:
    page = visitor.open("/c/simulated/nodes/cache-cxl-1/?tab=kubelet", look)
    expect(page.locator("#restart")).to_contain_text('differs from state checkpoint policy "none"')
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    assert violations(page) == []


def test_a_link_shows_somebody_else_the_same(visitor: Visitor) -> None:
    page = visitor.open(f"{PLANNER}?{urlencode({'m': POD, 'policy': 'none'})}", WIDE)
    shown = page.locator(".nw-headline").inner_text()
    other = visitor.open(page.url.removeprefix(visitor.site.url), Look("dark", "zh", 1280))
    assert "none" in shown
    expect(other.locator(".nw-headline")).to_contain_text("none")
    expect(other.locator("h1")).to_have_text("放置推演")
