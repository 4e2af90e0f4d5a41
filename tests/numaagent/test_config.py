"""What the exporter is told: every wrong setting is named with its remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from numaagent import config
from numaagent.config import ConfigError
from tests.servers import ROOT


def test_it_needs_to_be_told_nothing() -> None:
    told = config.load({})
    assert (told.roots.root, told.roots.sysfs, told.roots.proc) == ("/", "/sys", "/proc")
    assert (told.host, told.port, told.period) == ("0.0.0.0", 9797, 10.0)
    assert (told.token, told.tls, told.node) == (None, None, None)


def test_it_finds_everything_below_a_root(tmp_path: Path) -> None:
    roots = config.load({"NUMAAGENT_SYSFS": "/elsewhere"}, root=str(tmp_path)).roots
    assert (roots.sysfs, roots.proc, roots.logs) == ("/elsewhere", f"{tmp_path}/proc", f"{tmp_path}/var/log")
    assert roots.at("/sys/fs/cgroup") == "/elsewhere/fs/cgroup"
    assert roots.at("/var/lib/kubelet") == f"{tmp_path}/var/lib/kubelet"
    assert roots.shown(f"{tmp_path}/proc/stat") == "/proc/stat"


def test_it_lets_arguments_win() -> None:
    told = config.load({"NUMAAGENT_LISTEN": "127.0.0.1:1"}, listen="[::1]:2")
    assert (told.host, told.port) == ("::1", 2)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"NUMAAGENT_LISTEN": "9797"}, "NUMAAGENT_LISTEN or --listen: '9797' is not ADDRESS:PORT"),
        ({"NUMAAGENT_LISTEN": "a:99999"}, "is not ADDRESS:PORT"),
        ({"NUMAAGENT_PERIOD": "0"}, "NUMAAGENT_PERIOD: '0' is not a number of seconds from 1 to 3600"),
        ({"NUMAAGENT_PERIOD": "often"}, "NUMAAGENT_PERIOD"),
        ({"NUMAAGENT_NUMA_MAPS": "yes"}, "NUMAAGENT_NUMA_MAPS: 'yes' is neither 0 nor 1"),
        ({"NUMAAGENT_TOKEN_FILE": "/nowhere"}, "NUMAAGENT_TOKEN_FILE: /nowhere cannot be read"),
        (
            {"NUMAAGENT_TLS_CERT_FILE": "/c"},
            "NUMAAGENT_TLS_CERT_FILE and NUMAAGENT_TLS_KEY_FILE belong together",
        ),
        ({"NUMAAGENT_TLS_CLIENT_CA_FILE": "/c"}, "belong together"),
    ],
)
def test_it_names_the_wrong_setting(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        config.load(environ)


def test_it_refuses_a_token_that_can_be_guessed(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("short\n")
    with pytest.raises(ConfigError, match="fewer than 16 characters"):
        config.load({"NUMAAGENT_TOKEN_FILE": str(file)})
    file.write_text("long-enough-and-random\n")
    assert config.load({"NUMAAGENT_TOKEN_FILE": str(file)}).token == "long-enough-and-random"


def test_it_explains_every_variable_that_it_reads() -> None:
    text = (ROOT / "numaagent" / "config.py").read_text()
    assert set(re.findall(r'"(NUMAAGENT_[A-Z_]+|NODE_NAME)"', text)) == set(config.SETTINGS)
