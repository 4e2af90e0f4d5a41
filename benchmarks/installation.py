"""An installation of numaweb for benches: PostgreSQL, Redis, the web process, people who are signed in."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests import servers, stack

SECRET_KEY = "only-for-benches-" * 5


class Installation(NamedTuple):
    """A migrated database, an empty Redis, and the environment of every process on them."""

    folder: Path
    surroundings: dict[str, str]
    database: str
    redis: str


@contextlib.contextmanager
def installed(**settings: str) -> Iterator[Installation]:
    """Servers in a temporary folder; all of it is gone afterwards."""
    with contextlib.ExitStack() as stay:
        folder = Path(stay.enter_context(tempfile.TemporaryDirectory(prefix="numaweb-bench-")))
        database = stay.enter_context(stack.postgres()).url
        redis = stay.enter_context(stack.redis(folder)).url
        surroundings = stack.environment(
            NUMAWEB_DATABASE_URL=database,
            NUMAWEB_REDIS_URL=redis,
            NUMAWEB_SECRET_KEY=SECRET_KEY,
            NUMAWEB_STATE_DIR=str(folder),
            NUMAWEB_LOG_LEVEL="WARNING",
            NUMAWEB_LISTEN="127.0.0.1",
            PYTHONWARNINGS="ignore",
            **settings,
        )
        stack.manage(surroundings, "migrate", "--verbosity=0")
        stack.manage(surroundings, "bootstrap")
        yield Installation(folder, surroundings, database, redis)


@contextlib.contextmanager
def web(place: Installation) -> Iterator[stack.Part]:
    """The web process as an installation runs it."""
    port = servers.free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, str(servers.ROOT / "manage.py"), "serve"]
    surroundings = {**place.surroundings, "NUMAWEB_PORT": str(port)}
    server = servers.Server(
        command, place.folder, lambda _: servers.answers(f"{url}/healthz"), environment=surroundings
    )
    with servers.running(server):
        yield stack.Part(url, server)


def inside(place: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `python -m benchmarks.inside ...`: what must happen within Django, to its end."""
    command = [sys.executable, "-m", "benchmarks.inside", *arguments]
    done = subprocess.run(
        command, cwd=servers.ROOT, env=place.surroundings, capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
    return done


def signed_in(place: Installation, people: int, role: str = "viewer") -> list[str]:
    """Session cookies of that many people."""
    done = inside(place, "people", str(people), role)
    return msgspec.json.decode(done.stdout, type=list[str])


def background(place: Installation, *arguments: str, environment: Mapping[str, str] = {}) -> servers.Server:
    """`python -m benchmarks.inside ...` that goes on until it is stopped; it is ready when it says so."""
    command = [sys.executable, "-m", "benchmarks.inside", *arguments]
    surroundings = {**place.surroundings, **environment}
    return servers.Server(
        command, place.folder, lambda self: "ready" in self.written(), environment=surroundings
    )


def pid(server: servers.Server) -> int:
    if server.process is None:
        raise RuntimeError(f"{server.command} does not run")
    return server.process.pid
