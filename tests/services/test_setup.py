"""Of two `manage.py setup` at once on an empty PostgreSQL one works and the other waits for it."""

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests import stack
from tests.servers import ROOT


@pytest.mark.timeout(300)
def test_two_at_once_make_the_tables_once(postgres: stack.Part, tmp_path: Path) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE set_up_twice")
    surroundings = stack.environment(
        NUMAWEB_DATABASE_URL=re.sub(r"/\w+$", "/set_up_twice", postgres.url),
        NUMAWEB_SECRET_KEY="only-for-tests-" * 5,
        NUMAWEB_STATE_DIR=str(tmp_path),
    )
    command = [sys.executable, "manage.py", "setup"]
    both = [
        subprocess.Popen(
            command, cwd=ROOT, env=surroundings, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for _ in range(2)
    ]
    told = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0], "\n".join(told)
    assert sorted("Applying monitoring.0001" in each for each in told) == [False, True]
    assert sorted("Made the administrator" in each for each in told) == [False, True]
