"""The processes of an installation run on the real servers and end when told."""

import json
import time
import urllib.request
from pathlib import Path

import pytest

from tests import servers, stack


def read(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=10) as response:
        content: dict[str, object] = json.load(response)
        return content


def test_it_is_ready_with_database_and_redis(web: stack.Part) -> None:
    answer = read(f"{web.url}/readyz")
    assert answer["status"] == "ok"
    assert answer["parts"] == {"database": "ok", "migrations": "ok", "redis": "ok", "hot store": "ok"}


def test_it_serves_every_queue_with_a_worker(worker: servers.Server) -> None:
    log = worker.written()
    assert all(f".> {queue} " in log for queue in ("collect", "change", "default"))


@pytest.mark.usefixtures("worker")
def test_a_worker_shows_a_probe_that_it_works(folder: Path) -> None:
    assert (folder / "alive").exists()


def test_it_ends_within_seconds_when_told(folder: Path, surroundings: dict[str, str], tmp_path: Path) -> None:
    with stack.web(tmp_path, surroundings) as part:
        process = part.server.process
        assert process is not None
        process.terminate()
        assert process.wait(10) in {0, -15}


def test_a_worker_in_the_middle_of_a_shift_ends_within_seconds(
    postgres: stack.Part, redis: stack.Part, surroundings: dict[str, str], tmp_path: Path
) -> None:
    own = {**surroundings, "NUMAWEB_REDIS_URL": redis.database("9"), "NUMAWEB_COLLECT_SHIFT": "600"}
    with stack.worker(tmp_path, own, beat=True) as server:
        assert server.process is not None
        deadline = time.monotonic() + 30
        while "monitoring.tasks.collect[" not in server.written() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert "monitoring.tasks.collect[" in server.written()
        server.process.terminate()
        assert server.process.wait(15) == 0
        assert "worker: Warm shutdown" in server.written()
        assert "'worked'" in server.written()
