"""One installation of the real servers for all tests of this folder: PostgreSQL, Redis, a worker, the web.

Each fixture starts its server when the first test asks for it, and stops it at the end of the run.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper
from pytest_django import DjangoDbBlocker

from numaweb.connections import postgres as postgres_settings
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
        NUMAWEB_ALIVE_FILE=str(folder / "alive"),
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


@pytest.fixture(scope="session")
def migrated(postgres: stack.Part) -> str:
    """The name of a migrated database that is copied for each test of `on_postgres`."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE migrated")
    settings = {"NUMAWEB_DATABASE_URL": postgres.database("migrated"), "NUMAWEB_SECRET_KEY": SECRET_KEY}
    stack.manage(stack.environment(**settings), "migrate")
    return "migrated"


@pytest.fixture
def on_postgres(postgres: stack.Part, migrated: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The models of this very process live in a PostgreSQL database of their own during the test."""
    before, before_settings = connections["default"], connections.settings["default"]
    settings = {"default": postgres_settings(postgres.database("models"), pool=8)}
    with django_db_blocker.unblock(), psycopg.connect(postgres.url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE models TEMPLATE {migrated}")
        connections.settings["default"] = connections.configure_settings(settings)["default"]
        models = DatabaseWrapper(connections.settings["default"])
        connections["default"] = models
        try:
            yield
        finally:
            models.close()
            models.close_pool()
            connections.settings["default"] = before_settings
            connections["default"] = before  # an SQLite database in memory lives as long as its connection
            server.execute("DROP DATABASE models WITH (FORCE)")
