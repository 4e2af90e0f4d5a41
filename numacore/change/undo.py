"""Units of systemd that take a change of a kubelet's settings back: their texts, and where they and their copies are on a node.

    numaweb-kubelet-undo.timer            fires a fixed time after it was started (after a boot, after that) and at a fixed hour
    numaweb-kubelet-undo.service          stops the kubelet, copies its settings back, starts it; only while undo/armed exists
    numaweb-kubelet-undo-state.service    its part for the state files; only once they were copied (undo/state-taken)

Their commands are coreutils and systemctl with fixed words; the only variable ones are paths. `undo/armed` is the point of no return:
without it the units do nothing, so a unit that could not be removed is harmless. Whoever makes a change (the applier, or a script that
a person runs) makes them first.

A timer with OnBootSec= that is started later than that after the boot fires at once (systemd.timer(5)); OnActiveSec= counts from
the start of the timer, which after a reboot is the boot.
"""

from __future__ import annotations

from numacore.change.order import Order, StateFile

STATE = "/var/lib/numaweb"
UNITS = "/etc/systemd/system"
FOLDER = f"{STATE}/undo"
NAME = "numaweb-kubelet-undo"
TIMER, SERVICE, STATE_SERVICE = f"{NAME}.timer", f"{NAME}.service", f"{NAME}-state.service"
ARMED = f"{FOLDER}/armed"
SETTINGS = f"{FOLDER}/settings"
TAKEN = f"{FOLDER}/state-taken"
UNDONE = f"{FOLDER}/undone"
RETRY = 60
"""Seconds after which a service that failed (a full disk) is tried again."""


def staged(path: str) -> str:
    """The temporary file beside a file, before it takes its place. Always the same, so that none is left over; not read by a kubelet."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.numaweb"


def state_copy(name: StateFile) -> str:
    """Where a state file waits."""
    return f"{FOLDER}/{name}"


def service(order: Order) -> str:
    """Puts the settings back, and starts the kubelet with them."""
    beside = staged(order.path)
    folder = order.path.rpartition("/")[0]
    if order.before:
        ready = [
            f"/bin/cp --archive --no-target-directory -- {SETTINGS} {beside}",
            f"/bin/sync -- {beside}",
        ]
        back = [f"/bin/mv --force --no-target-directory -- {beside} {order.path}"]
    else:
        ready, back = [], [f"/bin/rm --force -- {order.path} {beside}"]
    return _unit(
        f"numaweb: the kubelet's settings as they were before change {order.epoch}",
        [
            "# Made by numaweb for one change; it does nothing once that file is gone. By hand: systemctl start "
            + SERVICE,
            f"ConditionPathExists={ARMED}",
        ],
        [
            # What takes room comes before the stop: on a full disk it fails while a kubelet that runs still runs.
            *ready,
            f"-/bin/systemctl stop {order.unit}",
            *back,
            f"/bin/sync -- {folder}",
            # Without the old state files the kubelet makes new ones; without a start the node is lost.
            f"-/bin/systemctl start {STATE_SERVICE}",
            f"-/bin/systemctl reset-failed {order.unit}",
            f"/bin/systemctl --no-block restart {order.unit}",
            f"/bin/touch -- {UNDONE}",
            f"/bin/rm --force -- {ARMED}",
            f"/bin/sync -- {FOLDER}",
            f"-/bin/systemctl disable {TIMER}",
            f"-/bin/systemctl --no-block stop {TIMER}",
        ],
    )


def state_service(order: Order, present: tuple[StateFile, ...]) -> str:
    """Puts the state files back. `present`: those of the order that there were."""
    back = []
    for name in present:
        beside = staged(f"{order.root}/{name}")
        back += [
            f"/bin/cp --archive --no-target-directory -- {state_copy(name)} {beside}",
            f"/bin/sync -- {beside}",
            f"/bin/mv --force --no-target-directory -- {beside} {order.root}/{name}",
        ]
    gone = " ".join(f"{order.root}/{name}" for name in order.state_files)
    return _unit(
        f"numaweb: the kubelet's state files as they were before change {order.epoch}",
        ["# Started by " + SERVICE + " while the kubelet is stopped.", f"ConditionPathExists={TAKEN}"],
        [*([f"/bin/rm --force -- {gone}"] if gone else []), *back, f"/bin/sync -- {order.root}"],
    )


def timer(order: Order, hour: str) -> str:
    """`hour`: when it fires at the latest, as systemd writes it: `2026-11-30 20:15:00 UTC`."""
    return "\n".join(
        (
            "[Unit]",
            f"Description=numaweb: takes change {order.epoch} of the kubelet's settings back if nobody reports success",
            "",
            "[Timer]",
            f"OnActiveSec={order.dead_man}s",
            f"OnCalendar={hour}",
            "Persistent=true",
            f"OnUnitInactiveSec={RETRY}s",
            "AccuracySec=1s",
            f"Unit={SERVICE}",
            "",
            "[Install]",
            "WantedBy=timers.target",
            "",
        )
    )


def _unit(description: str, head: list[str], commands: list[str]) -> str:
    return "\n".join(
        (
            "[Unit]",
            f"Description={description}",
            *head,
            "",
            "[Service]",
            "Type=oneshot",
            "TimeoutStartSec=10min",
            *(f"ExecStart={command}" for command in commands),
            "",
        )
    )
