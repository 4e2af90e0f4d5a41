"""A node for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.numaagent.applier import namespaces
from tests.numaagent.applier import node as nodes
from tests.numaagent.applier.node import Node


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with nodes.running() as found:
        yield found


@pytest.fixture
def inside() -> Iterator[list[str]]:
    """The beginning of a command that runs beside a real systemd."""
    yield from namespaces.booted()
