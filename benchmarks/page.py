"""Pages in Chromium: time until one can use them, against a bare page with the same bundle of Plotly.

What is the same on both sides of the history: the bytes of the bundle, the number of charts, their figures (asked for anew before each
visit of the bare page, because history grows while we measure), the window, an empty cache, no compression, and the end: two frames after the last chart is in the
document. What only ours has is what is measured: sign-in, the page around the charts with its style sheet, and figures that come by a request of their own. Menus and
the buttons over a chart are made after the charts and not waited for; the bare page makes its buttons while it draws.
"""

import contextlib
import functools
import http.server
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks import collector, installation, measure
from benchmarks.outcome import Outcome
from tests import servers

NODES = 8
NODE = "node-00003"
HISTORY_SECONDS = 25
BUNDLE = servers.ROOT / "static" / "dist" / "plotly.js"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
CHARTS = 4
# Two frames after everything that was waited for is there, it is on the screen.
WATCH = """
const done = () => %s;
const look = () => done()
  ? requestAnimationFrame(() => requestAnimationFrame(() => { window.usableAt = performance.now(); }))
  : requestAnimationFrame(look);
requestAnimationFrame(look);
"""
DRAWN = f"document.querySelectorAll('.js-plotly-plot .main-svg .cartesianlayer').length >= {CHARTS}"
MACHINE = "document.querySelectorAll('[data-drawing] svg').length > 0"

BARE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>bare</title>
<style>body {{ margin: 0 }} div {{ height: 240px; width: 600px }}</style>
{places}
<script src="plotly.js"></script>
<script>
const figures = {figures};
figures.forEach((figure, at) => Plotly.react("p" + at, figure.data, {{ ...figure.layout, height: 240 }}));
</script></html>"""


@contextlib.contextmanager
def bare(folder: Path) -> Iterator[str]:
    """A folder for a page of its own with the same bundle, which `write` puts there; its address."""
    folder.mkdir()
    (folder / "plotly.js").write_bytes(BUNDLE.read_bytes())
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def write(folder: Path, figures: list[dict[str, Any]]) -> None:
    """The bare page with these charts."""
    places = "".join(f'<div id="p{at}"></div>' for at in range(len(figures)))
    (folder / "index.html").write_text(BARE.format(places=places, figures=json.dumps(figures)))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        return


def usable(browser: Browser, url: str, cookie: str, condition: str) -> float:
    """Seconds from the beginning of the navigation, in a context without any cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    if cookie:
        name, _, value = cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": url}])
    context.add_init_script(WATCH % condition)
    page = context.new_page()
    page.goto(url, wait_until="commit")
    # Asked for again and again: waiting within the page would need eval, which the pages' policy forbids.
    found = 0.0

    def is_usable() -> bool:
        nonlocal found
        found = float(page.evaluate("window.usableAt ?? 0"))
        return found > 0

    measure.wait_until(is_usable, 30, url)
    context.close()
    return found / 1000


def charts(url: str, cookie: str) -> list[dict[str, Any]]:
    request = urllib.request.Request(
        f"{url}/c/bench/nodes/{NODE}/history.json?range=10m", headers={"Cookie": cookie}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        told = json.load(response)["charts"]
    return [chart["figure"] for chart in told.values() if chart["figure"]]


def compare(web: str, plain: str, folder: Path, cookie: str) -> list[measure.Spread]:
    node = f"{web}/c/bench/nodes/{NODE}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(servers.program("chromium")), args=ARGUMENTS)

        def visit_bare() -> float:
            write(folder, charts(web, cookie))
            return usable(browser, plain, "", DRAWN)

        sides = [
            lambda: usable(browser, f"{node}?tab=history&range=10m", cookie, DRAWN),
            lambda: usable(browser, node, cookie, MACHINE),
            visit_bare,
        ]
        found = measure.in_turns(sides)
        browser.close()
    return found


def run() -> list[Outcome]:
    settings = {"NUMAWEB_HISTORY_STEP": "1", "NUMAWEB_COLLECT_PERIOD": "0.5", "NUMAWEB_COLLECT_SHIFT": "600"}
    with contextlib.ExitStack() as stay:
        place = stay.enter_context(installation.installed(**settings))
        announced = stay.enter_context(collector.serving(place.folder, NODES, 60))
        installation.inside(place, "register", str(announced))
        stay.enter_context(servers.running(installation.background(place, "collect")))
        web = stay.enter_context(installation.web(place))
        cookie = installation.signed_in(place, 1)[0]
        time.sleep(HISTORY_SECONDS)
        measure.wait_until(lambda: len(charts(web.url, cookie)) >= CHARTS, 60, "history of a node")
        folder = place.folder / "bare"
        plain = stay.enter_context(bare(folder))
        history, drawing, reference = compare(web.url, plain, folder, cookie)
    how = (
        "Time from the start of the navigation until two frames after it is drawn, headless Chromium without GPU, empty cache "
        "each time, 1280 x 900; server and browser on this machine. "
    )
    base = reference.shown("ms", 1e3, 0)
    return [
        Outcome(
            "page: history of a node, usable",
            history.shown("ms", 1e3, 0),
            base,
            history.median / reference.median,
            1.3,
            how=f"{how}Ours: the history tab with its {CHARTS} charts, session and all. Peer: a bare static page with the same "
            "bundle of Plotly and the same figures in it. Menus, and the buttons over our charts, are made after that.",
        ),
        Outcome(
            "page: drawing of a node, usable",
            drawing.shown("ms", 1e3, 0),
            base,
            drawing.median / reference.median,
            1.3,
            how=f"{how}Ours: the first tab of a node (8 NUMA nodes, 384 CPUs, 60 containers) with its drawing. Peer: as above.",
        ),
    ]
