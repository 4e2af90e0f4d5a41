"""What must hold on every database is proved on the real PostgreSQL by the same tests that SQLite passes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import stack
from tests.servers import ROOT

SAME_TESTS = (
    "tests/policies",
    "tests/numaweb/test_roles.py",
    "tests/monitoring/test_recording.py",
    "tests/monitoring/test_upsert.py",
    "tests/monitoring/watching/test_nodes.py",
    "tests/monitoring/watching/test_pods.py",
)


@pytest.mark.timeout(300)
def test_audit_roles_and_what_is_written_hold_on_postgresql(
    postgres: stack.Part, redis: stack.Part, tmp_path: Path
) -> None:
    surroundings = stack.environment(
        NUMAWEB_DATABASE_URL=postgres.url,
        NUMAWEB_REDIS_URL=redis.url,
        NUMAWEB_SECRET_KEY="only-for-tests-" * 5,
        NUMAWEB_STATE_DIR=str(tmp_path),
    )
    # The server is thrown away, so its test database may stay.
    command = [sys.executable, "-m", "pytest", "-q", "--reuse-db", *SAME_TESTS]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout
