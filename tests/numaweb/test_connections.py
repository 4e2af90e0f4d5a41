"""Addresses of databases, and the key of a machine without settings."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from numaweb import connections
from numaweb.env import EnvError


def test_it_uses_sqlite_in_wal_with_a_busy_timeout_without_an_address(tmp_path: Path) -> None:
    found = connections.database("", tmp_path / "state" / "db", 4)
    assert found["NAME"] == tmp_path / "state" / "db"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]
    assert found["OPTIONS"]["timeout"] == 20
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_it_reads_every_part_of_a_postgresql_address(tmp_path: Path) -> None:
    url = "postgresql://nu%40ma:p%2Fw@db.example:6543/numa?sslmode=verify-full"
    found = connections.database(url, tmp_path / "unused", 9)
    assert (found["USER"], found["PASSWORD"]) == ("nu@ma", "p/w")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db.example", "6543", "numa")
    assert found["OPTIONS"]["sslmode"] == "verify-full"
    assert found["OPTIONS"]["pool"]["max_size"] == 9


def test_it_refuses_a_postgresql_address_without_a_database() -> None:
    with pytest.raises(EnvError, match="has no database name"):
        connections.postgres("postgresql://u@h:1/", 4)


def test_it_keeps_broker_cache_and_live_data_apart() -> None:
    assert connections.redis_database("redis://:pw@h:6379/4", 2) == "redis://:pw@h:6379/6"
    assert connections.redis_database("redis://h", 1) == "redis://h/1"
    with pytest.raises(EnvError, match="database number"):
        connections.redis_database("redis://h/first", 1)


def test_it_makes_one_key_that_only_its_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "new" / "secret.key"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: connections.local_key(file), range(8)))
    assert len(keys) == 1
    assert len(keys.pop()) >= 50
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["secret.key"]


def test_it_says_what_to_do_about_an_empty_key(tmp_path: Path) -> None:
    (tmp_path / "secret.key").touch()
    with pytest.raises(EnvError, match="remove it"):
        connections.local_key(tmp_path / "secret.key")


@pytest.mark.parametrize(
    ("url", "mail"),
    [
        ("", ("", 25, "", "", False, False)),
        ("smtp://mail.example", ("mail.example", 25, "", "", False, False)),
        ("smtp://mail.example:587?starttls=1", ("mail.example", 587, "", "", False, True)),
        ("smtps://nu%40ma:p%2Fw@mail.example", ("mail.example", 465, "nu@ma", "p/w", True, False)),
    ],
)
def test_it_reads_every_part_of_a_mail_server(url: str, mail: tuple[object, ...]) -> None:
    assert connections.mail(url) == mail
