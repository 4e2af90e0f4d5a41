"""What takes a change back when nobody else can: units of systemd that outlive this program, its Job and a reboot.

    numaweb-kubelet-undo.timer            fires a fixed time after it was started (after a boot, after that) and at a fixed hour
    numaweb-kubelet-undo.service          stops the kubelet, copies its settings back, starts it; only while undo/armed exists
    numaweb-kubelet-undo-state.service    its part for the state files; only once they were copied (undo/state-taken)

Their commands are coreutils and systemctl with fixed words; the only variable ones are paths of `places`. This program itself goes
back the same way, by starting the service: there is one way back and it is in use. `undo/armed` is the point of no return: without
it the units do nothing, so a unit that could not be removed is harmless.

A timer with OnBootSec= that is started later than that after the boot fires at once (systemd.timer(5)); OnActiveSec= counts from
the start of the timer, which after a reboot is the boot.
"""

from __future__ import annotations

import datetime as dt

import msgspec

from numaagent.applier import keeping, places, writing
from numaagent.applier.places import Host
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Systemd, Unit
from numaagent.applier.writing import Content
from numacore.change.order import Order, StateFile

NAME = "numaweb-kubelet-undo"
TIMER, SERVICE, STATE_SERVICE = f"{NAME}.timer", f"{NAME}.service", f"{NAME}-state.service"
ARMED = f"{places.UNDO}/armed"
SETTINGS = f"{places.UNDO}/settings"
TAKEN = f"{places.UNDO}/state-taken"
UNDONE = f"{places.UNDO}/undone"
RETRY = 60
"""Seconds after which a service that failed (a full disk) is tried again."""
SLACK = 5.0
"""Seconds by which systemd's word of the next time may differ from ours."""


class Armed(msgspec.Struct, frozen=True):
    """Which change is taken back while undo/armed exists."""

    epoch: int
    document: str


def armed(host: Host) -> Armed | None:
    """The change that is not finished on this node. Raises RefusedError: somebody changed that file."""
    found = writing.read(host.at(ARMED))
    try:
        return None if found is None else msgspec.json.decode(found.data, type=Armed)
    except msgspec.DecodeError as error:
        raise RefusedError(
            "state-unreadable",
            f"{ARMED}: {error}; systemctl start {SERVICE} takes the unfinished change back",
        ) from error


def undone(host: Host) -> bool:
    """Whether the units took the last change back."""
    return writing.read(host.at(UNDONE)) is not None


def state_taken(host: Host) -> bool:
    """Whether the state files of the stopped kubelet are in undo."""
    return writing.read(host.at(TAKEN)) is not None


def prepare(host: Host, before: Content | None) -> None:
    """An undo folder of its own for each change. Not while another one is armed."""
    writing.make_folder(host.at(places.UNDO))
    for name in (TAKEN, UNDONE, *(state_copy(each) for each in keeping.STATE_FILES)):
        writing.remove(host.at(name))
    if before is None:
        writing.remove(host.at(SETTINGS))
    else:
        writing.write(host.at(SETTINGS), before.data, before.attributes)


def state_copy(name: StateFile) -> str:
    """Where a state file waits."""
    return f"{places.UNDO}/{name}"


def texts(order: Order, present: tuple[StateFile, ...], at: float) -> dict[str, str]:
    """The units by name. `present`: state files that exist; `at`: when the timer fires at the latest, seconds since 1970."""
    return {
        STATE_SERVICE: _state_service(order, present),
        SERVICE: _service(order),
        TIMER: _timer(order, at),
    }


async def install(
    host: Host, systemd: Systemd, order: Order, present: tuple[StateFile, ...], now: float
) -> float:
    """Writes, enables and starts the units, and asks systemd whether they will do; when they fire. Raises FailedError."""
    at = now + order.dead_man
    made = texts(order, present, at)
    for name, text in made.items():
        writing.write(host.at(f"{places.UNITS}/{name}"), text.encode(), writing.PLAIN)
    await systemd.reload()
    await systemd.enable(TIMER)
    for folder in (places.UNITS, places.TIMERS):
        writing.sync_folder(host.at(folder))
    await systemd.restart(TIMER)
    await _check(systemd, at)
    return at


def arm(host: Host, epoch: int, document: str) -> None:
    """From here on the units take the change back."""
    writing.write(host.at(ARMED), msgspec.json.encode(Armed(epoch, document)))


def disarm(host: Host) -> None:
    """From here on they do nothing."""
    writing.remove(host.at(ARMED))


async def remove(host: Host, systemd: Systemd) -> None:
    """Takes the units away. Raises FailedError; what stays does nothing."""
    await systemd.stop(TIMER)
    await systemd.disable(TIMER)
    for name in (TIMER, SERVICE, STATE_SERVICE):
        writing.remove(host.at(f"{places.UNITS}/{name}"))
    await systemd.reload()


def left(host: Host) -> bool:
    """Whether units of ours are on the node."""
    return any(
        writing.read(host.at(f"{places.UNITS}/{name}")) is not None
        for name in (TIMER, SERVICE, STATE_SERVICE)
    )


async def _check(systemd: Systemd, at: float) -> None:
    for name in (SERVICE, STATE_SERVICE, TIMER):
        unit = await systemd.unit(name)
        wrong = _wrong(name, unit, at)
        if wrong:
            raise FailedError(
                "dead-man",
                f"{name}: {wrong}; nothing was changed. Look at it with `systemctl status {name}` and take overrides away",
                unit=name,
            )


def _wrong(name: str, unit: Unit, at: float) -> str:
    """Why a unit would not do what its file says; "" = it will."""
    if unit.load != "loaded":
        return f"systemd says that it is {unit.load}"
    if unit.fragment != f"{places.UNITS}/{name}" or unit.drop_ins:
        return f"systemd reads {unit.fragment or 'nothing'} {' '.join(unit.drop_ins)} instead of {places.UNITS}/{name} alone"
    if unit.stale:
        return "systemd has not read it again"
    if name != TIMER:
        return ""
    if unit.file_state != "enabled":
        return f"it is {unit.file_state or 'not enabled'}, a reboot would forget it"
    if unit.active != "active":
        return f"it is {unit.active}"
    if unit.next_realtime is None or abs(unit.next_realtime - at) > SLACK:
        return f"it fires at {unit.next_realtime}, not at {at:.0f}"
    return ""


def _service(order: Order) -> str:
    staged = places.staged(order.path)
    folder = order.path.rpartition("/")[0]
    if order.before:
        back = [
            f"/bin/cp --archive --no-target-directory -- {SETTINGS} {staged}",
            f"/bin/sync -- {staged}",
            f"/bin/mv --force --no-target-directory -- {staged} {order.path}",
        ]
    else:
        back = [f"/bin/rm --force -- {order.path} {staged}"]
    return _unit(
        f"numaweb: the kubelet's settings as they were before change {order.epoch}",
        [
            "# Made by numaweb for one change; it does nothing once that file is gone. By hand: systemctl start "
            + SERVICE,
            f"ConditionPathExists={ARMED}",
        ],
        [
            f"-/bin/systemctl stop {places.UNIT}",
            *back,
            f"/bin/sync -- {folder}",
            # Without the old state files the kubelet makes new ones; without a start the node is lost.
            f"-/bin/systemctl start {STATE_SERVICE}",
            f"-/bin/systemctl reset-failed {places.UNIT}",
            f"/bin/systemctl --no-block restart {places.UNIT}",
            f"/bin/touch -- {UNDONE}",
            f"/bin/rm --force -- {ARMED}",
            f"/bin/sync -- {places.UNDO}",
            f"-/bin/systemctl disable {TIMER}",
            f"-/bin/systemctl --no-block stop {TIMER}",
        ],
    )


def _state_service(order: Order, present: tuple[StateFile, ...]) -> str:
    back = []
    for name in present:
        staged = places.staged(f"{order.root}/{name}")
        back += [
            f"/bin/cp --archive --no-target-directory -- {state_copy(name)} {staged}",
            f"/bin/sync -- {staged}",
            f"/bin/mv --force --no-target-directory -- {staged} {order.root}/{name}",
        ]
    gone = " ".join(f"{order.root}/{name}" for name in order.state_files)
    return _unit(
        f"numaweb: the kubelet's state files as they were before change {order.epoch}",
        ["# Started by " + SERVICE + " while the kubelet is stopped.", f"ConditionPathExists={TAKEN}"],
        [*([f"/bin/rm --force -- {gone}"] if gone else []), *back, f"/bin/sync -- {order.root}"],
    )


def _timer(order: Order, at: float) -> str:
    # Whole seconds, never earlier than promised.
    hour = dt.datetime.fromtimestamp(int(at) + 1, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
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
