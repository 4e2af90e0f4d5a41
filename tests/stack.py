"""The parts of a distributed installation, each a block: PostgreSQL, Redis, Prometheus, web and worker processes.

For conftest files and whoever measures. Every part listens on a free loopback port and keeps its state in a temporary folder.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from tests import servers
from tests.servers import Server

POSTGRES_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 64MB
# What a crash would lose is thrown away anyway.
fsync = off
synchronous_commit = off
full_page_writes = off
"""


class Part(NamedTuple):
    """A running server and the address under which others reach it."""

    url: str
    server: Server

    def database(self, name: str) -> str:
        """The address of another database of the same server: a name for PostgreSQL, a number for Redis."""
        return f"{self.url.rpartition('/')[0]}/{name}"


@contextlib.contextmanager
def postgres() -> Iterator[Part]:
    """PostgreSQL with one empty database."""
    initdb = servers.program("initdb", "usr/lib/postgresql/*/bin")
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    port = servers.free_port()
    # Not below pytest's own folder: that is closed to the user under which PostgreSQL insists to run.
    with tempfile.TemporaryDirectory(prefix="numaweb-pg-") as name:
        folder = Path(name)
        if os.getuid() == 0:
            shutil.chown(folder, user)
        data = folder / "data"
        options = ["-U", "numaweb", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        call([*servers.prefix(user), str(initdb), "-D", str(data), *options], folder)
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"{POSTGRES_SETTINGS}\nport = {port}\n")
        url = f"postgresql://numaweb@127.0.0.1:{port}/postgres"
        command = [str(initdb.resolve().with_name("postgres")), "-D", str(data)]
        # SIGINT is the fast shutdown, which does not wait for clients that forgot to leave.
        server = Server(command, folder, lambda _: accepts(url), user=user, stop_signal=signal.SIGINT)
        with servers.running(server):
            yield Part(url, server)


def accepts(url: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=2):
        return True
    return False


def call(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[Part]:
    """Redis that keeps nothing."""
    port = servers.free_port()
    command = [str(servers.program("redis-server")), "--port", str(port), "--bind", "127.0.0.1"]
    command += ["--save", "", "--appendonly", "no", "--dir", str(folder)]
    server = Server(command, folder, lambda _: servers.listens(port))
    with servers.running(server):
        yield Part(f"redis://127.0.0.1:{port}/0", server)


@contextlib.contextmanager
def prometheus(folder: Path, configuration: str) -> Iterator[Part]:
    """Prometheus with this configuration file (YAML text)."""
    url = f"http://127.0.0.1:{servers.free_port()}"
    file = folder / "prometheus.yml"
    file.write_text(configuration)
    command = [str(servers.program("prometheus")), f"--config.file={file}"]
    command += [
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]
    with servers.running(Server(command, folder, lambda _: servers.answers(f"{url}/-/ready"))) as server:
        yield Part(url, server)


def environment(**settings: str) -> dict[str, str]:
    """What a process of numaweb sees: our environment without its NUMAWEB_ variables, and then `settings`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMAWEB_")}
    return {**inherited, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "default", **settings}


def manage(surroundings: Mapping[str, str], *arguments: str) -> str:
    """Runs one management command to its end; what it printed."""
    command = [sys.executable, str(servers.ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, cwd=servers.ROOT, env=surroundings, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(
            f"manage.py {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


@contextlib.contextmanager
def web(folder: Path, surroundings: Mapping[str, str]) -> Iterator[Part]:
    """The web process, alive and not necessarily ready."""
    port = servers.free_port()
    url = f"http://127.0.0.1:{port}"
    listen = {"NUMAWEB_LISTEN": "127.0.0.1", "NUMAWEB_PORT": str(port)}
    command = [sys.executable, str(servers.ROOT / "manage.py"), "serve"]
    alive = Server(
        command, folder, lambda _: servers.answers(f"{url}/healthz"), environment={**surroundings, **listen}
    )
    with servers.running(alive) as server:
        yield Part(url, server)


@contextlib.contextmanager
def worker(folder: Path, surroundings: Mapping[str, str], *, beat: bool = False) -> Iterator[Server]:
    """A Celery worker with two child processes for all queues, and with the schedule when `beat` is set."""
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "numaweb",
        "worker",
        "--loglevel=INFO",
        "--concurrency=2",
    ]
    command += ["--queues=collect,change,default", *(["--beat"] if beat else [])]
    server = Server(command, folder, lambda self: " ready." in self.written(), environment=surroundings)
    with servers.running(server):
        yield server
