"""What happens to a test when this machine does not have what it takes: it fails, for it is about a real kubelet; where that was said before, it
is skipped by name."""

import os
from typing import NoReturn

import pytest

from tests import servers

OPTIONAL = "NUMAWEB_TEST_NODE"
"""Environment variable; `optional` = skip."""


def lacks(what: str) -> NoReturn:
    """Ends the test."""
    end = pytest.skip if os.environ.get(OPTIONAL) == "optional" else pytest.fail
    end(f"{servers.NOT_HERE} {what}")
