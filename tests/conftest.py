"""What every test may use, and the end of the run: what this machine could not offer."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from django.utils import translation
from hypothesis import settings

from tests import servers

pytest_plugins = ["tests.cast"]

# The same cases in every run of `make test`; `--hypothesis-profile fuzz` draws fresh ones, and many more.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("fuzz", deadline=None, max_examples=2_000)
settings.load_profile("fixed")


def pytest_configure() -> None:
    signal.signal(signal.SIGTERM, told_to_end)


def told_to_end(_signal: int, _frame: object) -> NoReturn:
    """A run that is told to end stops its servers as Ctrl-C does; told twice, it ends at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def language() -> Iterator[None]:
    """A page that was asked for in Chinese leaves its language to the thread, and so to the next test."""
    with translation.override("en"):
        yield


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The installed browser; playwright's own downloads are not used."""
    return servers.program("chromium")


def reason(report: pytest.TestReport) -> str:
    return report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    lacking = Counter(text for text in map(reason, skipped) if text.startswith(servers.NOT_HERE))
    if lacking:
        terminalreporter.section("What this machine could not offer")
        for text, count in sorted(lacking.items()):
            terminalreporter.write_line(f"{text}: {count} tests did not run")
