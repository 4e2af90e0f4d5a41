"""The modes and profiles as an operator starts them: with an environment, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.servers import ROOT

KEY = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def manage(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMAWEB_")}
    surroundings = {**inherited, "NUMAWEB_STATE_DIR": str(folder), **settings}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, env=surroundings, capture_output=True, text=True
    )


def test_it_starts_without_any_setting(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "secret.key").exists()


def test_the_tls_profile_passes_the_deployment_check(tmp_path: Path) -> None:
    settings = {"NUMAWEB_TLS": "1", "NUMAWEB_ALLOWED_HOSTS": "numa.example.org", "NUMAWEB_SECRET_KEY": KEY}
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **settings)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_it_refuses_to_start_distributed_without_a_common_key(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", NUMAWEB_DATABASE_URL="postgresql://u@h/n")
    assert done.returncode != 0
    assert "NUMAWEB_SECRET_KEY is not set" in done.stderr
    assert not (tmp_path / "secret.key").exists()
