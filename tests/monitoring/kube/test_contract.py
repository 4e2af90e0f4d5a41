"""The fake does what the real API server does; the same contract runs against that one in tests/cluster."""

import pytest

from tests.kubecontract import BREAKING, CONTRACT, Check
from tests.monitoring.kube.fake import FakeApiServer


@pytest.mark.parametrize("it", [*CONTRACT, *BREAKING])
async def test_fake(it: Check) -> None:
    async with FakeApiServer() as server:
        await it(server)
