"""The dead-man's units word by word: fixed commands of coreutils and systemctl, which nothing but paths may vary."""

from __future__ import annotations

import msgspec

from numacore.change import undo
from numacore.change.order import Order

ORDER = Order(
    act="apply",
    node="worker-1",
    epoch=7,
    rollout="r1",
    path="/etc/kubernetes/kubelet.yaml",
    before="0" * 64,
    after="1" * 64,
    state_files=("cpu_manager_state", "memory_manager_state"),
    root="/var/lib/kubelet",
    unit="kubelet.service",
    expires=1_900_000_000,
    dead_man=600,
)
HEAD = """\
[Unit]
Description=numaweb: the kubelet's settings as they were before change 7
# Made by numaweb for one change; it does nothing once that file is gone. By hand: systemctl start numaweb-kubelet-undo.service
ConditionPathExists=/var/lib/numaweb/undo/armed

[Service]
Type=oneshot
TimeoutStartSec=10min
"""
STOP = "ExecStart=-/bin/systemctl stop kubelet.service\n"
TAIL = """\
ExecStart=/bin/sync -- /etc/kubernetes
ExecStart=-/bin/systemctl start numaweb-kubelet-undo-state.service
ExecStart=-/bin/systemctl reset-failed kubelet.service
ExecStart=/bin/systemctl --no-block restart kubelet.service
ExecStart=/bin/touch -- /var/lib/numaweb/undo/undone
ExecStart=/bin/rm --force -- /var/lib/numaweb/undo/armed
ExecStart=/bin/sync -- /var/lib/numaweb/undo
ExecStart=-/bin/systemctl disable numaweb-kubelet-undo.timer
ExecStart=-/bin/systemctl --no-block stop numaweb-kubelet-undo.timer
"""


def test_the_service_has_the_copy_before_it_stops_the_kubelet_and_starts_that_before_it_disarms() -> None:
    ready = """\
ExecStart=/bin/cp --archive --no-target-directory -- /var/lib/numaweb/undo/settings /etc/kubernetes/.kubelet.yaml.numaweb
ExecStart=/bin/sync -- /etc/kubernetes/.kubelet.yaml.numaweb
"""
    back = "ExecStart=/bin/mv --force --no-target-directory -- /etc/kubernetes/.kubelet.yaml.numaweb /etc/kubernetes/kubelet.yaml\n"
    assert undo.service(ORDER) == HEAD + ready + STOP + back + TAIL


def test_a_file_that_was_not_there_is_removed() -> None:
    back = "ExecStart=/bin/rm --force -- /etc/kubernetes/kubelet.yaml /etc/kubernetes/.kubelet.yaml.numaweb\n"
    assert undo.service(msgspec.structs.replace(ORDER, before="")) == HEAD + STOP + back + TAIL


STATE_HEAD = """\
[Unit]
Description=numaweb: the kubelet's state files as they were before change 7
# Started by numaweb-kubelet-undo.service while the kubelet is stopped.
ConditionPathExists=/var/lib/numaweb/undo/state-taken

[Service]
Type=oneshot
TimeoutStartSec=10min
"""


def test_the_state_files_come_back_as_they_were_and_what_the_kubelet_made_since_is_gone() -> None:
    """One of the two was there."""
    assert (
        undo.state_service(ORDER, ("cpu_manager_state",))
        == STATE_HEAD
        + """\
ExecStart=/bin/rm --force -- /var/lib/kubelet/cpu_manager_state /var/lib/kubelet/memory_manager_state
ExecStart=/bin/cp --archive --no-target-directory -- /var/lib/numaweb/undo/cpu_manager_state /var/lib/kubelet/.cpu_manager_state.numaweb
ExecStart=/bin/sync -- /var/lib/kubelet/.cpu_manager_state.numaweb
ExecStart=/bin/mv --force --no-target-directory -- /var/lib/kubelet/.cpu_manager_state.numaweb /var/lib/kubelet/cpu_manager_state
ExecStart=/bin/sync -- /var/lib/kubelet
"""
    )


def test_a_change_without_state_files_touches_none() -> None:
    order = msgspec.structs.replace(ORDER, state_files=())
    assert undo.state_service(order, ()) == STATE_HEAD + "ExecStart=/bin/sync -- /var/lib/kubelet\n"


def test_the_timer_counts_from_its_own_start_and_has_an_hour_at_the_latest() -> None:
    assert (
        undo.timer(ORDER, "2026-11-30 20:15:00 UTC")
        == """\
[Unit]
Description=numaweb: takes change 7 of the kubelet's settings back if nobody reports success

[Timer]
OnActiveSec=600s
OnCalendar=2026-11-30 20:15:00 UTC
Persistent=true
OnUnitInactiveSec=60s
AccuracySec=1s
Unit=numaweb-kubelet-undo.service

[Install]
WantedBy=timers.target
"""
    )
