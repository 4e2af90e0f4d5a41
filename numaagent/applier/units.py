"""systemd over D-Bus: the few calls that a change needs, each with an end.

Interface: org.freedesktop.systemd1(5). A start or stop is a job; its end is a signal, `JobRemoved`, with a result in one word.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from dbus_fast import AuthError, BusType, DBusError, InvalidAddressError, Message, MessageType
from dbus_fast.aio import MessageBus

from numaagent.applier.refusal import FailedError

_SYSTEMD = "org.freedesktop.systemd1"
_MANAGER = f"{_SYSTEMD}.Manager"
_PATH = "/org/freedesktop/systemd1"
_NEVER = (1 << 64) - 1
CALL = 25.0
"""Seconds for an answer, as D-Bus libraries have it."""
RELOAD = 150.0
"""Seconds for reading all units again: it starts every generator, and meanwhile systemd answers nobody (seen: 40 s on a busy node)."""
JOB = 150.0
"""Seconds for a job: the kubelet has 90 to stop before it is killed."""


class Waits(msgspec.Struct, frozen=True):
    """How long things may take, in seconds."""

    call: float = CALL
    reload: float = RELOAD
    job: float = JOB
    look: float = 1.0
    """Between two looks at the kubelet."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What systemd says of a unit. Times in seconds."""

    load: str
    active: str
    sub: str = ""
    file_state: str = ""
    fragment: str = ""
    drop_ins: tuple[str, ...] = ()
    stale: bool = False
    """Its file changed since systemd read it."""
    result: str = ""
    main_pid: int = 0
    """0 = no process."""
    restarts: int = 0
    status: int = 0
    """Exit status of the last process."""
    next_realtime: float | None = None
    """Of a timer, since 1970; None = never."""


@contextlib.asynccontextmanager
async def connected(address: str, waits: Waits) -> AsyncIterator[Systemd]:
    """systemd at a bus (`unix:path=...`). Raises FailedError: no bus, or no systemd on it."""
    try:
        bus = MessageBus(bus_address=address, bus_type=BusType.SYSTEM)
        async with asyncio.timeout(waits.call):
            await bus.connect()
    except (OSError, EOFError, TimeoutError, AuthError, DBusError, InvalidAddressError) as error:
        raise FailedError(
            "no-dbus",
            f"D-Bus at {address} does not answer ({type(error).__name__}: {error}); mount the host's /run/dbus, and look whether "
            "dbus runs on the node",
        ) from error
    systemd = Systemd(bus, waits)
    try:
        await systemd.subscribe()
        yield systemd
    finally:
        bus.disconnect()


class Systemd:
    """A connection to systemd. Every call raises FailedError."""

    def __init__(self, bus: MessageBus, waits: Waits) -> None:
        self._bus = bus
        self._waits = waits
        self._ended: dict[str, str] = {}
        self._news = asyncio.Event()
        bus.add_message_handler(self._hear)

    async def subscribe(self) -> None:
        """Asks for the ends of jobs."""
        rule = f"type='signal',sender='{_SYSTEMD}',interface='{_MANAGER}',member='JobRemoved',path='{_PATH}'"
        await self._ask(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", "s", rule
        )
        await self._manager("Subscribe")

    async def unit(self, name: str) -> Unit:
        """What it is now."""
        path = (await self._manager("LoadUnit", "s", name))[0]
        found = await self._properties(path, "Unit")
        kind = name.rpartition(".")[2].capitalize()
        found |= await self._properties(path, kind)
        following = found.get("NextElapseUSecRealtime", _NEVER)
        return Unit(
            load=found["LoadState"],
            active=found["ActiveState"],
            sub=found["SubState"],
            file_state=found["UnitFileState"],
            fragment=found["FragmentPath"],
            drop_ins=tuple(found["DropInPaths"]),
            stale=found["NeedDaemonReload"],
            result=found.get("Result", ""),
            main_pid=found.get("MainPID", 0),
            restarts=found.get("NRestarts", 0),
            status=found.get("ExecMainStatus", 0),
            next_realtime=None if following in (0, _NEVER) else following / 1e6,
        )

    async def start(self, name: str) -> None:
        """Starts a unit and waits for the end of that."""
        await self._job("StartUnit", name)

    async def stop(self, name: str) -> None:
        """Stops a unit and waits for the end of that; one that does not run is stopped."""
        await self._job("StopUnit", name)

    async def restart(self, name: str) -> None:
        """Starts a unit afresh and waits for the end of that."""
        await self._job("RestartUnit", name)

    async def reload(self) -> None:
        """Reads all units' files again."""
        await self._manager("Reload", wait=self._waits.reload)

    async def enable(self, name: str) -> None:
        """Starts it at each boot from now on."""
        await self._manager("EnableUnitFiles", "asbb", [name], False, True)

    async def disable(self, name: str) -> None:
        """Does not start it at a boot any more."""
        await self._manager("DisableUnitFiles", "asb", [name], False)

    async def forget_failures(self, name: str) -> None:
        """So that a unit that failed too often may start again."""
        await self._manager("ResetFailedUnit", "s", name)

    async def _job(self, method: str, name: str) -> None:
        self._ended.clear()
        job = (await self._manager(method, "ss", name, "replace"))[0]
        try:
            async with asyncio.timeout(self._waits.job):
                while job not in self._ended:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError as error:
            raise FailedError(
                "job",
                f"systemd did not finish {method} of {name} in {self._waits.job:.0f} s; look at `systemctl list-jobs`",
                unit=name,
                result="timeout",
            ) from error
        result = self._ended.pop(job)
        if result != "done":
            raise FailedError(
                "job",
                f"systemd ended {method} of {name} with {result!r}; look at `systemctl status {name}`",
                unit=name,
                result=result,
            )

    def _hear(self, message: Message) -> None:
        if message.message_type is MessageType.SIGNAL and message.member == "JobRemoved":
            _, job, _, result = message.body
            self._ended[job] = result
            self._news.set()

    async def _properties(self, path: str, kind: str) -> dict[str, Any]:
        interface = "org.freedesktop.DBus.Properties"
        (found,) = await self._ask(_SYSTEMD, path, interface, "GetAll", "s", f"{_SYSTEMD}.{kind}")
        return {name: variant.value for name, variant in found.items()}

    async def _manager(
        self, member: str, signature: str = "", *body: Any, wait: float | None = None
    ) -> list[Any]:
        return await self._ask(_SYSTEMD, _PATH, _MANAGER, member, signature, *body, wait=wait)

    async def _ask(
        self,
        destination: str,
        path: str,
        interface: str,
        member: str,
        signature: str,
        *body: Any,
        wait: float | None = None,
    ) -> list[Any]:
        """`wait`: seconds for an answer, when it may take longer than others."""
        wait = wait or self._waits.call
        message = Message(
            destination=destination,
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
        )
        try:
            async with asyncio.timeout(wait):
                answer = await self._bus.call(message)
        except TimeoutError as error:
            raise FailedError(
                "dbus-silent",
                f"systemd did not answer {member} in {wait:.0f} s; look at `systemctl status`",
                call=member,
            ) from error
        except (OSError, EOFError, DBusError) as error:
            raise FailedError(
                "dbus-lost",
                f"D-Bus went away at {member}: {error}; look whether dbus runs on the node",
                call=member,
            ) from error
        if answer is None:
            raise FailedError("dbus-lost", f"D-Bus gave no answer to {member}", call=member)
        if answer.message_type is MessageType.ERROR:
            words = f"{answer.error_name}: {answer.body[0] if answer.body else ''}"
            code = "no-systemd" if answer.error_name in _ABSENT else "dbus-refused"
            raise FailedError(
                code,
                f"{member} was refused: {words}; the applier needs systemd and root on the node",
                call=member,
            )
        return list(answer.body)


_ABSENT = (
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.Spawn.ServiceNotFound",
)
