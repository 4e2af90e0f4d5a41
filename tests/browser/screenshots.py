"""The pictures in docs/screenshots: `make screenshots` starts everything, lets it run for a while, and looks.

Small files: the pages that matter, and of each the looks that show something new.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from tests import servers, stack
from tests.browser import palette
from tests.browser.conftest import NODE, PASSWORD, Look, Site
from tests.servers import ROOT, Server

FOLDER = ROOT / "docs" / "screenshots"
SETTLE_SECONDS = 60
"""So long it runs before the first picture: history begins to show."""
PLANNED = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: inference}
spec:
  tasks:
  - {name: worker, replicas: 3, topologyPolicy: single-numa-node,
     template: {spec: {containers: [{name: main, resources: {limits: {cpu: 8, memory: 16Gi}}}]}}}
"""
PLACES = {
    "overview": "/c/simulated/",
    "monitoring": "/c/simulated/monitoring/",
    "node": f"/c/simulated/nodes/{NODE}/",
    "memory-only": "/c/simulated/nodes/gpu-grace-1/",
    "allocation": f"/c/simulated/nodes/{NODE}/?tab=containers",
    "distances": f"/c/simulated/nodes/{NODE}/?tab=distances",
    "history": f"/c/simulated/nodes/{NODE}/?tab=history&range=10m",
    "containers": "/c/simulated/containers/?crossing=true",
    "planner": f"/c/simulated/planner/?{urlencode({'m': PLANNED})}",
    "policies": "/c/west/policies/",
    "preview": "/c/simulated/policies/cluster/preview/",
    "rollout": "/c/rolling/rollouts/2/",
    "rollout-stopped": "/c/rolling/rollouts/1/?node=node-1",
    "refused": "/c/east/failures/",
    "this-machine": "/c/this-machine/",
    "sign-in": "/accounts/login/",
}
SCENES = ("wanted", "rollouts", "refused")
"""What the simulated cluster does not have by itself; made in this order, so that rollouts have the numbers above."""
EVERYWHERE = ("overview", "node", "allocation")
"""In every look; the others light and wide, in both languages."""
WIDE = [Look("light", "en", 1280), Look("light", "zh", 1280)]
OTHERS = [
    Look("dark", "en", 1280),
    Look("dark", "zh", 1280),
    Look("light", "en", 390),
    Look("dark", "zh", 390),
]
LOCALES = {"en": "en-US", "zh": "zh-CN"}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="numaweb-pictures-") as name, sync_playwright() as playwright:
        folder = Path(name)
        port = servers.free_port()
        url = f"http://127.0.0.1:{port}"
        surroundings = stack.environment(
            NUMAWEB_STATE_DIR=str(folder / "state"),
            NUMAWEB_LISTEN="127.0.0.1",
            NUMAWEB_PORT=str(port),
            NUMAWEB_ADMIN_PASSWORD=PASSWORD,
        )
        command = [sys.executable, "manage.py", "local"]
        server = Server(
            command, folder, lambda _: servers.answers(f"{url}/healthz"), environment=surroundings
        )
        server.patience = 150.0
        browser = playwright.chromium.launch(
            executable_path=str(servers.program("chromium")), args=["--no-sandbox", "--disable-gpu"]
        )
        with servers.running(server):
            shutil.rmtree(FOLDER, ignore_errors=True)
            FOLDER.mkdir(parents=True)
            for scene in SCENES:
                Site(url, server).stage(scene)
            first = True
            for look in [*WIDE, *OTHERS]:
                context = browser.new_context(
                    color_scheme=look.theme,
                    locale=LOCALES[look.language],
                    viewport={"width": look.width, "height": 900 if look.width > 500 else 844},
                )
                pictures(context.new_page(), url, look, first)
                first = False
                context.close()
        lender = browser.new_page()
        for file in sorted(FOLDER.glob("*.png")):
            palette.shrink(lender, file)
            print(f"  {file.relative_to(ROOT)}  {file.stat().st_size // 1024} KiB")
        browser.close()


def pictures(page: Page, url: str, look: Look, first: bool) -> None:
    """Every place that this look shows."""
    page.goto(f"{url}/accounts/login/")
    if look in WIDE:
        save(page, "sign-in", look)
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.click("main button.btn-primary")
    page.wait_for_url("**/c/**")
    if first:
        page.wait_for_timeout(SETTLE_SECONDS * 1000)
    for name in PLACES if look in WIDE else EVERYWHERE:
        if name == "sign-in":
            continue
        page.goto(f"{url}{PLACES[name]}")
        page.wait_for_timeout(2500)
        if name in ("node", "allocation") and page.locator("[data-pick]").count():
            page.locator("[data-pick]").first.click()
            page.wait_for_timeout(300)
        save(page, name, look)


def save(page: Page, name: str, look: Look) -> None:
    """One picture of the screen, not of the whole page: a wall shows no more."""
    file = FOLDER / f"{name}-{look.name}.png"
    page.screenshot(path=str(file))


if __name__ == "__main__":
    main()
