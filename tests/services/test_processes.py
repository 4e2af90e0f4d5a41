"""The processes of an installation run on the real servers and end when told."""

import json
import urllib.request
from pathlib import Path

from tests import servers, stack


def read(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=10) as response:
        content: dict[str, object] = json.load(response)
        return content


def test_it_is_ready_with_database_and_redis(web: stack.Part) -> None:
    answer = read(f"{web.url}/readyz")
    assert answer["status"] == "ok"
    assert answer["parts"] == {"database": "ok", "migrations": "ok", "redis": "ok"}


def test_it_serves_every_queue_with_a_worker(worker: servers.Server) -> None:
    log = worker.written()
    assert all(f".> {queue} " in log for queue in ("collect", "change", "default"))


def test_it_ends_within_seconds_when_told(folder: Path, surroundings: dict[str, str], tmp_path: Path) -> None:
    with stack.web(tmp_path, surroundings) as part:
        process = part.server.process
        assert process is not None
        process.terminate()
        assert process.wait(10) in {0, -15}
