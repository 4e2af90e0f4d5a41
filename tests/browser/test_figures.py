"""Every figure saves itself as SVG and PNG, and looks as on the page."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NODE, WIDE, Look, Visitor

CLUSTER, OF_NODE = "/c/simulated/", f"/c/simulated/nodes/{NODE}/"
FIGURES = {
    "fleet": (CLUSTER, "[data-fleet] canvas", "simulated-fleet"),
    "heat": (f"{CLUSTER}monitoring/", "[data-fleet] canvas", "simulated-numa-nodes"),
    "topology": (OF_NODE, "[data-drawing] svg", f"{NODE}-numa"),
    "allocation": (f"{OF_NODE}?tab=containers", "[data-drawing] svg", f"{NODE}-allocation"),
    "distances": (f"{OF_NODE}?tab=distances", "[data-links] svg", f"{NODE}-distances"),
    "chart": (f"{OF_NODE}?tab=history&range=10m", '[data-metric="busy"] .js-line', f"{NODE}-busy"),
}
"""Where each stands, what is there when it is drawn, and how its file is called."""
SVG = "{http://www.w3.org/2000/svg}"


def saved(page: Page, button: Locator, name: str, folder: Path) -> bytes:
    with page.expect_download() as download:
        button.click()
    assert download.value.suggested_filename == name
    file = folder / name
    download.value.save_as(file)
    return file.read_bytes()


def shapes(text: bytes) -> list[ET.Element]:
    """What the picture is made of."""
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    return [each for each in root.iter() if each.tag.removeprefix(SVG) in ("rect", "path", "line", "circle")]


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_saves_itself_in_both_forms(name: str, visitor: Visitor, tmp_path: Path) -> None:
    address, drawn, file = FIGURES[name]
    page = visitor.open(address)
    expect(page.locator(drawn).first).to_be_attached(timeout=60_000)
    vector = saved(page, page.locator('[data-save="svg"]').first, f"{file}.svg", tmp_path)
    assert len(shapes(vector)) > 20
    picture = saved(page, page.locator('[data-save="png"]').first, f"{file}.png", tmp_path)
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    root = ET.fromstring(vector)
    assert (width, height) == tuple(2 * int(float(root.attrib[each])) for each in ("width", "height"))


def test_a_saved_fleet_has_every_node_and_its_cells(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open(CLUSTER)
    expect(page.locator("[data-fleet] canvas").first).to_be_attached()
    vector = saved(page, page.locator('[data-save="svg"]'), "simulated-fleet.svg", tmp_path)
    names = [each.text for each in ET.fromstring(vector).iter(f"{SVG}text")]
    assert NODE in names
    assert "single-numa-node" in " ".join(map(str, names))
    assert len(names) == 8 + page.locator(".nw-fleet-group").count()


def test_a_saved_figure_stands_on_the_ground_of_the_theme(visitor: Visitor, tmp_path: Path) -> None:
    grounds = set()
    for look in (WIDE, Look("dark", "zh", 1280)):
        page = visitor.open(FIGURES["fleet"][0], look)
        expect(page.locator("[data-fleet] canvas").first).to_be_attached()
        vector = saved(page, page.locator('[data-save="svg"]'), "simulated-fleet.svg", tmp_path)
        ground = shapes(vector)[0].attrib["fill"]
        assert ground == page.evaluate("getComputedStyle(document.body).backgroundColor")
        grounds.add(ground)
    assert len(grounds) == 2


def test_every_chart_has_buttons_of_its_own(visitor: Visitor) -> None:
    page = visitor.open(FIGURES["chart"][0])
    expect(page.locator(FIGURES["chart"][1]).first).to_be_attached(timeout=60_000)
    assert page.locator('[data-metric] [data-save="svg"]').count() == 4
    names = page.locator('[data-metric] [data-save="png"]').all_inner_texts()
    assert len(set(names)) == 4
