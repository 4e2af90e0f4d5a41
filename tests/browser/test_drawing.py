"""The node drawing under the pointer and the keyboard: what lights up, what the address carries, what it saves."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NODE, Look, Visitor, query

PATH = f"/c/simulated/nodes/{NODE}/"


def opened(visitor: Visitor, query: str = "", look: Look | None = None) -> Page:
    page = visitor.open(f"{PATH}{query}", look or Look("light", "en", 1280))
    expect(page.locator(".nw-cpu").first).to_be_attached()
    return page


def lit(page: Page) -> Locator:
    return page.locator(".nw-cpu.nw-lit")


def test_it_draws_every_cpu_once(visitor: Visitor) -> None:
    page = opened(visitor)
    numbers = page.locator(".nw-number").all_text_contents()
    assert sorted(map(int, numbers)) == list(range(384))
    assert page.locator(".nw-numa").count() == 8
    assert page.locator(".nw-socket").count() == 2


def test_hovering_a_cpu_lights_up_its_container_everywhere(visitor: Visitor) -> None:
    page = opened(visitor)
    page.locator(".nw-own-x").first.hover()
    assert lit(page).count() > 1
    expect(page.locator("button.nw-row-lit")).to_have_count(1)
    title = page.locator("[data-card] h2").inner_text()
    assert title in page.locator(".nw-tip").inner_text()
    assert page.locator(".nw-lit-memory").count() >= 1
    page.mouse.move(2, 2)
    expect(lit(page)).to_have_count(0)


def test_hovering_a_row_lights_up_its_cpus(visitor: Visitor) -> None:
    page = opened(visitor, "?tab=containers")
    row = page.locator("tbody[data-container]", has=page.locator(".nw-kind-exclusive")).first
    count = row.locator("td").nth(1).inner_text()
    row.hover()
    expect(lit(page)).to_have_count(int(count.split("(")[1].rstrip(")")))


def test_a_selection_is_in_the_address_and_the_back_button_undoes_it(visitor: Visitor) -> None:
    page = opened(visitor)
    page.locator(".nw-own-x").first.click()
    assert set(query(page)) == {"container", "cpu"}
    count = lit(page).count()
    page.locator("a.nav-link", has_text="Container NUMA allocation").click()
    page.wait_for_url("**tab=containers**")
    expect(lit(page)).to_have_count(count)
    expect(page.locator(".nw-row-selected")).to_have_count(1)
    page.go_back()
    expect(lit(page)).to_have_count(count)
    page.go_back()
    assert "container" not in query(page)
    expect(lit(page)).to_have_count(0)


def test_a_link_opens_with_the_container_selected(visitor: Visitor) -> None:
    page = opened(visitor)
    page.locator("[data-pick]").first.click()
    wanted = query(page)["container"]
    other = opened(visitor, f"?container={wanted}")
    expect(other.locator(f'button[data-container="{wanted}"]')).to_have_attribute("aria-pressed", "true")
    assert lit(other).count() > 0


def test_arrow_keys_walk_through_the_cpus(visitor: Visitor) -> None:
    page = opened(visitor)
    first = page.locator('[data-cpu][tabindex="0"]')
    assert first.count() == 1
    first.focus()
    labels = [first.get_attribute("aria-label")]
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "End", "Home"):
        page.keyboard.press(key)
        labels.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert all(label and label.startswith("CPU ") for label in labels)
    cpus = [(label or "").split(",")[0] for label in labels]
    assert cpus[0] == cpus[4] == cpus[6]
    assert len(set(cpus)) == 5
    assert page.locator('[data-cpu][tabindex="0"]').count() == 1
    page.keyboard.press("Enter")
    assert "cpu" in query(page)
    page.keyboard.press("Escape")
    assert "cpu" not in query(page)


def test_a_numa_node_can_be_enlarged_by_key_and_back(visitor: Visitor) -> None:
    page = opened(visitor)
    before = page.locator(".nw-cpu").first.bounding_box()
    page.locator('[data-zoom="3"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator(".nw-cpu")).to_have_count(48)
    assert query(page)["numa"] == "3"
    after = page.locator(".nw-cpu").first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"]
    page.get_by_role("button", name="All NUMA nodes").click()
    expect(page.locator(".nw-cpu")).to_have_count(384)


def test_it_saves_the_drawing_as_svg_and_png(visitor: Visitor, tmp_path: Path) -> None:
    page = opened(visitor)
    for form, start in (("svg", b"<svg "), ("png", b"\x89PNG")):
        with page.expect_download() as download:
            page.locator(f'[data-save="{form}"]').click()
        assert download.value.suggested_filename == f"{NODE}-numa.{form}"
        file = tmp_path / f"drawing.{form}"
        download.value.save_as(file)
        assert file.read_bytes().startswith(start)
    text = (tmp_path / "drawing.svg").read_text()
    assert "class=" not in text
    assert ">383<" in text
    assert "rgb(" in text


def test_every_cell_is_large_enough_for_a_finger(visitor: Visitor) -> None:
    page = opened(visitor, look=Look("light", "en", 390))
    sizes = page.evaluate(
        "[...document.querySelectorAll('.nw-ground')].map(each => [+each.getAttribute('width'), +each.getAttribute('height')])"
    )
    assert min(width for width, _ in sizes) >= 24
    assert min(height for _, height in sizes) >= 24


def test_distances_of_one_numa_node_can_be_picked(visitor: Visitor) -> None:
    page = visitor.open(f"{PATH}?tab=distances")
    expect(page.locator(".nw-link")).to_have_count(28)
    page.locator('[data-from="2"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator(".nw-link")).to_have_count(7)
    expect(page.locator('[data-from="2"]')).to_have_attribute("aria-pressed", "true")
