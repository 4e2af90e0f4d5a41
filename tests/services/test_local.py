"""`manage.py local`, the heart of `make run`: one command, real data on a page, nothing left behind."""

import http.cookiejar
import json
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import servers, stack
from tests.servers import Server

pytestmark = pytest.mark.timeout(300)


def settings(state: Path, port: int) -> dict[str, str]:
    return stack.environment(
        NUMAWEB_STATE_DIR=str(state),
        NUMAWEB_LISTEN="127.0.0.1",
        NUMAWEB_PORT=str(port),
        NUMAWEB_SIMULATED_NODES="2",
        NUMAWEB_COLLECT_PERIOD="0.5",
    )


def local(state: Path, port: int) -> Server:
    command = [sys.executable, "-u", str(servers.ROOT / "manage.py"), "local"]
    return Server(
        command,
        state,
        lambda self: "Ready:" in self.written(),
        environment=settings(state, port),
        patience=180,  # migrations, an exporter and a simulated cluster come first
    )


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def running(state: Path) -> Iterator[tuple[Server, str]]:
    port = servers.free_port()
    with servers.running(local(state, port)) as server:
        yield server, f"http://127.0.0.1:{port}"


class Browser:
    def __init__(self, web: str, password: str) -> None:
        self.web = web
        jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        token = re.findall(r'csrfmiddlewaretoken" value="([^"]+)', self.get("/accounts/login/"))[0]
        form = {"csrfmiddlewaretoken": token, "username": "admin", "password": password}
        self.opener.open(f"{web}/accounts/login/", urllib.parse.urlencode(form).encode(), timeout=20).close()

    def get(self, address: str) -> str:
        with self.opener.open(f"{self.web}{address}", timeout=20) as answer:
            return str(answer.read().decode())

    def nodes(self) -> list[dict[str, Any]]:
        return list(json.loads(self.get("/api/v1/nodes/"))["results"])


def until(true: Callable[[], bool], seconds: float = 90.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.2)
    return False


def left_behind(state: Path) -> list[str]:
    """Processes whose command line names this run's folders or ports of its children."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()
    log = (
        (state / "local" / "simulator.log").read_text()
        if (state / "local" / "simulator.log").exists()
        else ""
    )
    marks = [str(state), *re.findall(r"/\S*numasim-\w+", log)]
    return [line for line in found if any(mark in line for mark in marks)]


def test_it_shows_this_machine_and_simulated_servers_changing(running: tuple[Server, str]) -> None:
    server, web = running
    (password,) = re.findall(r"with the password (\S+) \(shown only now\)", server.written())
    browser = Browser(web, password)
    assert until(lambda: {node["cluster"] for node in browser.nodes()} == {"this-machine", "simulated"})
    assert until(lambda: len(browser.nodes()) == 3)
    seen = {node["name"]: node["last_seen"] for node in browser.nodes()}
    assert until(lambda: all(seen[node["name"]] != node["last_seen"] for node in browser.nodes()))
    assert all(node["cpus"] > 0 for node in browser.nodes())
    assert "NUMA" in browser.get("/")


def test_it_says_that_its_port_is_in_use(running: tuple[Server, str], tmp_path: Path) -> None:
    _server, web = running
    port = urllib.parse.urlsplit(web).port or 0
    command = [sys.executable, str(servers.ROOT / "manage.py"), "local"]
    done = subprocess.run(command, env=settings(tmp_path, port), capture_output=True, text=True)
    assert done.returncode == 1
    assert f"Port {port} is in use" in done.stderr


def test_it_ends_all_of_it_and_starts_again_without_a_new_password(tmp_path: Path) -> None:
    with servers.running(local(tmp_path, servers.free_port())) as server:
        process = server.process
        assert process is not None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert server.written().rstrip().endswith("Everything has ended.")
    assert left_behind(tmp_path) == []
    with servers.running(local(tmp_path, servers.free_port())) as again:
        assert "shown only now" not in again.written()


def test_nobody_else_can_read_what_it_keeps(running: tuple[Server, str], state: Path) -> None:
    """Sessions are in the database; the journal beside it comes and goes."""
    kept = [file for name in ("*.sqlite3*", "*.key") for file in state.rglob(name)]
    assert {file.suffix for file in kept} >= {".sqlite3", ".key"}
    assert [file.name for file in kept if file.stat().st_mode & 0o077] == []
