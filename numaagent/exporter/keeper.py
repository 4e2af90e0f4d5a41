"""The task that keeps a node's state current."""

from __future__ import annotations

import asyncio
import gc
import logging
import time

from numaagent.config import Config
from numaagent.exporter.node import Node

FIRST_INTERVAL = 2.0
"""Seconds of the first interval, so that ratios are there soon after the start."""
SOONEST = 1.0
"""Seconds between surveys that ended containers ask for."""
UNEXPECTED = (OSError, ValueError, LookupError, ArithmeticError, AttributeError, TypeError, RecursionError)
"""Errors that a tree nobody thought of may cause; one round or answer fails, the exporter goes on."""
logger = logging.getLogger(__name__)


class Keeper:
    """Surveys and samples the node, once for each period and soon after a container has ended."""

    def __init__(self, told: Config, node: Node) -> None:
        self._period = told.period
        self._node = node

    async def run(self) -> None:
        """Until cancelled."""
        await self._round()
        # What is there now stays: the collector need not walk over it at every hundredth reading.
        gc.collect()
        gc.freeze()
        await asyncio.sleep(FIRST_INTERVAL)
        while True:
            await self._round()
            await self._rest()

    async def _rest(self) -> None:
        until = time.monotonic() + self._period
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, SOONEST))
            if self._node.outdated and left > SOONEST:
                await self._survey()

    async def _round(self) -> None:
        await self._survey()
        try:
            self._node.sample(time.monotonic(), time.time())
        except UNEXPECTED as error:
            self._failed("sample", error)

    async def _survey(self) -> None:
        try:
            self._node.adopt(await asyncio.to_thread(self._node.survey, time.monotonic(), time.time()))
        except UNEXPECTED as error:
            self._failed("survey", error)

    def _failed(self, what: str, error: Exception) -> None:
        logger.error("%s failed", what, exc_info=error)
        self._node.files.problems.note("exporter", what, f"unexpected: {error!r}")
