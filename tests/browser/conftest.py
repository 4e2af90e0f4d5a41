"""Everything as `make run` starts it, and Chromium in front of it: pages as a person meets them.

A test that leaves an error in the browser's console, or an address that the content security policy refused, fails. So does one whose page ends
with a class for which the design system has rules and the style sheet, which is built of those that are used, has none.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests import servers, stack
from tests.servers import ROOT, Server

PASSWORD = "a long password for browser tests"
NODE = "db-epyc-1"
"""A simulated server with 2 sockets, 8 NUMA nodes and 384 CPUs."""
PATIENCE = 20_000
"""Milliseconds for whatever should appear."""


class Site(NamedTuple):
    """The running program; `url` has no slash at its end."""

    url: str
    server: Server

    def stage(self, scene: str) -> None:
        """Puts a module of `tests.browser.scenes` into the site's database; the site has made its tables by now."""
        surroundings = {
            **os.environ,
            **(self.server.environment or {}),
            "DJANGO_SETTINGS_MODULE": "numaweb.settings",
        }
        subprocess.run(
            [sys.executable, "-m", "tests.browser.stage", scene], cwd=ROOT, env=surroundings, check=True
        )


class Look(NamedTuple):
    """How a page is looked at."""

    theme: Literal["light", "dark"]
    language: str
    width: int

    @property
    def name(self) -> str:
        return f"{self.theme}-{self.language}-{self.width}"


WIDE = Look("light", "en", 1280)
LOOKS = [WIDE, Look("dark", "zh", 1280), Look("light", "zh", 390), Look("dark", "en", 390)]
LOCALES = {"en": "en-US", "zh": "zh-CN"}


def query(page: Page) -> dict[str, str]:
    """The address as the page has it now; `page.url` lags behind it."""
    return {key: values[0] for key, values in parse_qs(page.evaluate("location.search.slice(1)")).items()}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, chromium: Path) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    port = servers.free_port()
    surroundings = stack.environment(
        NUMAWEB_STATE_DIR=str(folder / "state"),
        NUMAWEB_LISTEN="127.0.0.1",
        NUMAWEB_PORT=str(port),
        NUMAWEB_ADMIN_PASSWORD=PASSWORD,
    )
    url = f"http://127.0.0.1:{port}"
    command = [str(ROOT / ".venv/bin/python"), "manage.py", "local"]
    server = Server(command, folder, lambda _: servers.answers(f"{url}/healthz"), environment=surroundings)
    server.patience = 150.0  # it also starts a simulated cluster of eight servers
    with servers.running(server):
        yield Site(url, server)


@pytest.fixture(scope="session")
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=str(chromium),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield found
        found.close()


@pytest.fixture(scope="session")
def session(site: Site, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cookies of the administrator, who signed in with the form. The simulated cluster has been heard by then."""
    file = tmp_path_factory.mktemp("session") / "state.json"
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{site.url}/c/simulated/nodes/{NODE}/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.click("main button.btn-primary")
    wait_for_node(page, site)
    context.storage_state(path=str(file))
    context.close()
    return file


def wait_for_node(page: Page, site: Site) -> None:
    """The first round of collection takes a moment."""
    for _ in range(60):
        answer = page.goto(f"{site.url}/c/simulated/nodes/{NODE}/")
        if answer is not None and answer.status == 200:
            return
        page.wait_for_timeout(500)
    pytest.fail(f"no page of {NODE} after 30 s")


# Charts bring rules of their own.
CLASSES = (
    "[...document.querySelectorAll('[class]:not(.js-plotly-plot *)')].flatMap((each) => [...each.classList])"
)


@cache
def dropped() -> set[frozenset[str]]:
    """For each selector of the design system that is not in the built style sheet the classes that it asks for."""
    whole, built = ROOT / "node_modules/@tabler/core/dist/css/tabler.css", ROOT / "static/dist/app.css"
    named = set(CLASS.findall(built.read_text()))
    asked = (CLASS.findall(NEGATION.sub("", each)) for each in SELECTOR.findall(whole.read_text()))
    return {frozenset(each) for each in asked if not named.issuperset(each)}


SELECTOR = re.compile(r"([^{},;]+)(?=,|\{)")
NEGATION = re.compile(r":not\([^()]*\)")
CLASS = re.compile(r"\.([A-Za-z_][\w-]*)")


class Visitor:
    """Somebody signed in, who remembers everything that the browser complained about."""

    def __init__(self, browser: Browser, site: Site, session: Path) -> None:
        self.browser, self.site, self.session = browser, site, session
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()
        """Beginnings of complaints that a test causes on purpose."""
        self.contexts: list[BrowserContext] = []

    def page(self, look: Look = WIDE, *, scripts: bool = True) -> Page:
        context = self.browser.new_context(
            java_script_enabled=scripts,
            storage_state=str(self.session),
            color_scheme=look.theme,
            locale=LOCALES[look.language],
            viewport={"width": look.width, "height": 900},
        )
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", self.console)
        page.on("pageerror", lambda error: self.complaints.append(f"script error: {error}"))
        return page

    def console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def open(self, path: str, look: Look = WIDE) -> Page:
        page = self.page(look)
        answer = page.goto(f"{self.site.url}{path}")
        assert answer is not None
        assert answer.status == 200, path
        return page

    def unstyled(self) -> set[frozenset[str]]:
        """Classes of the pages as they are now that lost a rule which the design system has for them."""
        pages = [page for context in self.contexts for page in context.pages]
        found = {name for page in pages for name in page.evaluate(CLASSES)}
        return {each for each in dropped() if each <= found}

    def close(self) -> None:
        for context in self.contexts:
            context.close()


@pytest.fixture
def visitor(browser: Browser, site: Site, session: Path) -> Iterator[Visitor]:
    made = Visitor(browser, site, session)
    yield made
    unstyled = made.unstyled()
    made.close()
    surprising = [each for each in made.complaints if not each.startswith(made.expected or ("\0",))]
    assert surprising == []
    assert unstyled == set()
