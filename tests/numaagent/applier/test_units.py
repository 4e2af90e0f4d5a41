"""The dead-man's units: systemd takes them, and they hold nothing that an order could smuggle in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from numaagent.applier import deadman, places
from numacore.change import undo
from numacore.change.order import Order
from tests import servers


def order(**changes: Any) -> Order:
    given: dict[str, Any] = {
        "act": "apply", "node": "a", "epoch": 3, "rollout": "r", "path": "/var/lib/kubelet/config.yaml",
        "before": "0" * 64, "after": "1" * 64, "state_files": ("cpu_manager_state", "memory_manager_state"), "expires": 1,
    }  # fmt: skip
    return Order(**given | changes)


@pytest.mark.parametrize("before", ["0" * 64, ""])
def test_systemd_itself_finds_nothing_wrong_with_them(tmp_path: Path, before: str) -> None:
    program = servers.program("systemd-analyze")
    made = deadman.texts(order(before=before), ("cpu_manager_state",), 1_900_000_000.5)
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [program, "verify", "--man=no", *(str(tmp_path / name) for name in made)],
        capture_output=True,
        text=True,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:/usr/lib/systemd/system", "SYSTEMD_LOG_LEVEL": "warning"},
    )
    ours = [line for line in done.stderr.splitlines() if undo.NAME in line]
    assert (done.returncode, ours) == (0, [])


def test_the_timer_counts_from_its_start_and_knows_an_hour() -> None:
    timer = deadman.texts(order(), (), 1_900_000_000.5)[undo.TIMER]
    assert "OnActiveSec=600s" in timer.splitlines()
    assert "OnCalendar=2030-03-17 17:46:41 UTC" in timer.splitlines()
    assert "Persistent=true" in timer.splitlines()
    # A timer that counts from the boot fires at once when it is started later than that.
    assert "OnBootSec" not in timer


def test_every_command_is_absolute_and_has_only_plain_words() -> None:
    commands = [
        line.partition("=")[2]
        for text in deadman.texts(order(), ("cpu_manager_state",), 1.0).values()
        for line in text.splitlines()
        if line.startswith("ExecStart=")
    ]
    assert len(commands) > 12
    assert not [each for each in commands if not re.fullmatch(r"-?/bin/[a-z]+(?: [\w./-]+)*", each, re.ASCII)]
    assert {each.removeprefix("-").split()[0] for each in commands} == {
        "/bin/systemctl", "/bin/cp", "/bin/mv", "/bin/rm", "/bin/sync", "/bin/touch",
    }  # fmt: skip


def test_state_files_that_stay_are_not_touched() -> None:
    text = "".join(deadman.texts(order(state_files=()), (), 1.0).values())
    assert "manager_state" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/var/lib/kubelet/a b.yaml",
        "/var/lib/kubelet/%h.yaml",
        "/var/lib/kubelet/$x.yaml",
        "/var/lib/kubelet/../../../etc/shadow.conf",
        "/var/lib/kubelet/a.yaml\nExecStart=/bin/sh",
        "/var/lib/kubelet/-rf.yaml",
        "/var/lib/kubelet/pods/x/config.yaml",
        "/etc/kubernetes/manifests/x.yaml",
        "/etc/kubernetes/pki/x.conf",
        "/etc/systemd/system/x.conf",
        "/var/lib/kubelet/cpu_manager_state",
    ],
)
def test_a_path_that_is_not_the_kubelets_settings_is_refused(path: str) -> None:
    assert places.fault(order(path=path)) is not None


@pytest.mark.parametrize(
    "path",
    [
        "/var/lib/kubelet/config.yaml",
        "/etc/kubernetes/kubelet/kubelet-config.json",
        "/etc/kubernetes/kubelet.conf",
        "/var/lib/kubelet/kubeadm.d/config.yml",
    ],
)
def test_the_usual_places_are_not(path: str) -> None:
    assert places.fault(order(path=path)) is None
    drop_in = path.rpartition("/")[0] + "/90-numa.conf"
    assert places.fault(order(path=drop_in, drop_in=True)) is None
    assert places.fault(order(path=drop_in)) is not None
