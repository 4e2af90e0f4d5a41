"""The servers of this folder are the real ones, and end with the run."""

import urllib.request
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import connection
from redis import Redis

from tests import servers, stack

PROMETHEUS = """
global: {scrape_interval: 1s}
scrape_configs: [{job_name: itself, static_configs: [{targets: []}]}]
"""


def test_it_keeps_rows_in_a_real_postgresql(postgres: stack.Part) -> None:
    with psycopg.connect(postgres.url) as connection:
        row = connection.execute("select current_setting('server_version_num')::int").fetchone()
    assert row is not None
    assert row[0] >= 150000


def test_it_keeps_values_in_a_real_redis(redis: stack.Part) -> None:
    with Redis.from_url(redis.url) as client:
        client.set("tests:colour", "green")
        assert client.getdel("tests:colour") == b"green"


def test_it_ends_what_it_started(tmp_path: Path) -> None:
    with stack.prometheus(tmp_path, PROMETHEUS) as part:
        with urllib.request.urlopen(f"{part.url}/api/v1/status/buildinfo", timeout=5) as response:
            assert b'"status":"success"' in response.read()
        port = int(part.url.rpartition(":")[2])
    assert not servers.listens(port)


def test_it_starts_a_killed_server_again_at_the_same_place(tmp_path: Path) -> None:
    with stack.redis(tmp_path) as part:
        part.server.kill()
        assert not servers.listens(int(part.url.split(":")[2].partition("/")[0]))
        part.server.start()
        with Redis.from_url(part.url) as client:
            assert client.ping()


@pytest.mark.parametrize("turn", ["first", "second"])
def test_it_puts_models_into_postgresql_and_takes_them_out_again(turn: str, on_postgres: None) -> None:
    assert connection.vendor == "postgresql"
    assert not Group.objects.exists()
    Group.objects.create(name=turn)
