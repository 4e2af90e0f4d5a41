"""The oracle's binary, built once for the whole run, or a named skip."""

from pathlib import Path

import pytest

from tests import goprograms, servers
from tests.oracle import program


@pytest.fixture(scope="session")
def binary() -> Path:
    try:
        return program.oracle()
    except goprograms.LackingError as lacking:
        pytest.skip(f"{servers.NOT_HERE} {lacking}")
