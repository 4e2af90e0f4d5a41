"""One installation of the real servers for all tests of this folder: PostgreSQL, Redis, a worker, the web.

Each fixture starts its server when the first test asks for it, and stops it at the end of the run.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers, stack

SECRET_KEY = "only-for-tests-" * 5


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs and state of all servers."""
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def postgres() -> Iterator[stack.Part]:
    with stack.postgres() as part:
        yield part


@pytest.fixture(scope="session")
def redis(folder: Path) -> Iterator[stack.Part]:
    with stack.redis(folder) as part:
        yield part


@pytest.fixture(scope="session")
def surroundings(folder: Path, postgres: stack.Part, redis: stack.Part) -> dict[str, str]:
    """The environment of every numaweb process of this installation, on a migrated database with the roles."""
    settings = stack.environment(
        NUMAWEB_DATABASE_URL=postgres.url,
        NUMAWEB_REDIS_URL=redis.url,
        NUMAWEB_SECRET_KEY=SECRET_KEY,
        NUMAWEB_STATE_DIR=str(folder),
    )
    stack.manage(settings, "migrate", "--verbosity=0")
    stack.manage(settings, "bootstrap")
    return settings


@pytest.fixture(scope="session")
def web(folder: Path, surroundings: dict[str, str]) -> Iterator[stack.Part]:
    with stack.web(folder, surroundings) as part:
        yield part


@pytest.fixture(scope="session")
def worker(folder: Path, surroundings: dict[str, str]) -> Iterator[servers.Server]:
    with stack.worker(folder, surroundings) as server:
        yield server
