"""What takes a change back when nobody else can: the units of `numacore.change.undo`, which outlive this program, its Job and a reboot.

This program itself goes back the same way, by starting the service: there is one way back and it is in use.
"""

from __future__ import annotations

import datetime as dt

import msgspec

from numaagent.applier import keeping, places, writing
from numaagent.applier.places import Host
from numaagent.applier.refusal import FailedError, RefusedError
from numaagent.applier.units import Systemd, Unit
from numaagent.applier.writing import Content
from numacore.change import undo
from numacore.change.order import Order, StateFile
from numacore.change.undo import ARMED, SERVICE, SETTINGS, STATE_SERVICE, TAKEN, TIMER, UNDONE, state_copy

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
    writing.make_folder(host.at(undo.FOLDER))
    for name in (TAKEN, UNDONE, *(state_copy(each) for each in keeping.STATE_FILES)):
        writing.remove(host.at(name))
    if before is None:
        writing.remove(host.at(SETTINGS))
    else:
        writing.write(host.at(SETTINGS), before.data, before.attributes)


def texts(order: Order, present: tuple[StateFile, ...], at: float) -> dict[str, str]:
    """The units by name. `present`: state files that exist; `at`: when the timer fires at the latest, seconds since 1970."""
    return {
        STATE_SERVICE: undo.state_service(order, present),
        SERVICE: undo.service(order),
        # Whole seconds, never earlier than promised.
        TIMER: undo.timer(
            order, dt.datetime.fromtimestamp(int(at) + 1, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        ),
    }


async def install(
    host: Host, systemd: Systemd, order: Order, present: tuple[StateFile, ...], now: float
) -> float:
    """Writes, enables and starts the units, and asks systemd whether they will do; when they fire. Raises FailedError."""
    at = now + order.dead_man
    made = texts(order, present, at)
    for name, text in made.items():
        writing.write(host.at(f"{undo.UNITS}/{name}"), text.encode(), writing.PLAIN)
    # In this order: after enabling, systemd (257; 252 not yet) calls every unit stale until it has read all of them again.
    await systemd.enable(TIMER)
    await systemd.reload()
    for folder in (undo.UNITS, places.TIMERS):
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
        writing.remove(host.at(f"{undo.UNITS}/{name}"))
    await systemd.reload()


def left(host: Host) -> bool:
    """Whether units of ours are on the node."""
    return any(
        writing.read(host.at(f"{undo.UNITS}/{name}")) is not None for name in (TIMER, SERVICE, STATE_SERVICE)
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
    if unit.fragment != f"{undo.UNITS}/{name}" or unit.drop_ins:
        return f"systemd reads {unit.fragment or 'nothing'} {' '.join(unit.drop_ins)} instead of {undo.UNITS}/{name} alone"
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
