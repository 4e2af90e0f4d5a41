"""Endless and huge answers cost the collector neither memory nor the others' time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from monitoring import hot, services
from monitoring.models import Endpoint, Node
from tests.monitoring import exporters
from tests.monitoring.exporters import until, working
from tests.servers import ROOT

ENDPOINTS = 40
FAULTS = "huge-body:0.25,endless-chunked:0.25,gzip-bomb:0.15,slow-loris:0.1"
CAUSES = {
    "the answer has 100000000 bytes, more than 2097152",
    "the answer has more than 2097152 bytes",
    "the answer unpacks to more than 2097152 bytes",
    "no whole answer within 2 s",
}
MIB = 1024 * 1024
MOST = 50 * MIB


@pytest.fixture
def urls(tmp_path: Path) -> Iterator[list[str]]:
    """In a process of its own: what it sends is not to be counted."""
    announced = tmp_path / "urls.json"
    command = [sys.executable, "-m", "numasim", "fleet", "--nodes", str(ENDPOINTS), "--containers", "6"]
    with subprocess.Popen([*command, "--faults", FAULTS, "--announce", str(announced)], cwd=ROOT) as fleet:
        try:
            until(announced.exists, 60.0)
            yield [each["url"] for each in json.loads(announced.read_text())["exporters"]]
        finally:
            fleet.terminate()


def resident(field: str) -> int:
    """Bytes: VmRSS now, VmHWM at the most since `forget_peak`."""
    match = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


@pytest.mark.django_db(transaction=True)
def test_hostile_answers_take_at_most_fifty_mebibytes_and_delay_nobody(
    urls: list[str], quick: Settings
) -> None:
    quick.NUMAWEB_COLLECT_BYTES = 2 * MIB
    quick.NUMAWEB_COLLECT_TIMEOUT = 2.0
    with exporters.fleet(3) as fleet:
        services.ensure_cluster("sound", "Sound", "simulated", fleet.urls)
        with working():
            until(lambda: Node.objects.filter(containers__isnull=False).count() == 3)
            time.sleep(1.0)  # what the rounds themselves need is there
            before = resident("VmRSS")
            forget_peak()
            services.ensure_cluster("hostile", "Hostile", "simulated", urls)
            bad = Endpoint.objects.filter(cluster__slug="hostile", state="failing")
            until(lambda: set(bad.values_list("error", flat=True)) >= CAUSES, 60.0)
            until(lambda: bad.count() >= 20 and min(bad.values_list("failures_total", flat=True)) >= 3, 60.0)
            assert resident("VmHWM") - before <= MOST
            node = Node.objects.filter(cluster__slug="sound").earliest("pk").pk
            state = hot.store().get(node)
            assert state is not None
            assert time.time() - state.received < 2.0
