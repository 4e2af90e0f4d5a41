"""A played systemd on a real D-Bus: units from a tree's files, jobs with an end, the kubelet as a process that is started again.

It executes a unit's commands as they stand there: coreutils are the real ones, on the tree's paths; systemctl is played.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import shlex
from collections.abc import Callable, Coroutine
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from tests.numaagent.applier import kubelet

NAME = "org.freedesktop.systemd1"
PATH = "/org/freedesktop/systemd1"
NEVER = (1 << 64) - 1
HERE = ("/var/lib/", "/etc/")
"""Paths of the host that are in the tree."""
Section = dict[str, list[str]]


class FailedError(Exception):
    """A command of a unit that ended with another status than 0."""


class Kubelet:
    """kubelet.service: `Restart=always`."""

    PAUSE = 0.1

    def __init__(self, tree: Path, context: ForkServerContext) -> None:
        self._tree, self._context = tree, context
        self._process: Any = None
        self._keeper: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self.restarts = self.starts = 0
        self.wanted = False
        self.load = "loaded"

    @property
    def pid(self) -> int:
        return int(self._process.pid) if self._process is not None and self._process.is_alive() else 0

    async def start(self) -> None:
        if not self.wanted:
            self.wanted = True
            self.restarts = 0
            self._run()
            self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        self.wanted = False
        if self._keeper is not None:
            self._keeper.cancel()
        async with self._turn:  # jobs of one unit come one after another
            if self._process is not None:
                self._process.kill()
                while self._process.is_alive():  # noqa: ASYNC110 - a thread for each would use up the loop's few
                    await asyncio.sleep(0.01)
                self._process.close()
                self._process = None

    def crash(self) -> None:
        """The process ends; systemd starts another."""
        self._process.kill()

    def _run(self) -> None:
        self.starts += 1
        self._process = self._context.Process(target=kubelet.main, args=(self._tree,), daemon=True)
        self._process.start()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(0.03)
            if not self._process.is_alive():
                self._process.close()
                self._process = None
                await asyncio.sleep(self.PAUSE)
                self.restarts += 1
                self._run()


class PlayedSystemd:
    """Serves at a bus. What tests turn: `silent` (calls that get no answer), `refuses` (calls that get an error), `late` (seconds)."""

    def __init__(self, tree: Path, address: str, context: ForkServerContext) -> None:
        self.tree, self._address = tree, address
        self.kubelet = Kubelet(tree, context)
        self.bus: MessageBus | None = None
        self.calls: list[str] = []
        self.silent: set[str] = set()
        self.refuses: set[str] = set()
        self.timers: set[str] = set()
        self.running: set[str] = set()
        self.overrides: dict[str, list[str]] = {}
        self._read: dict[str, str] = {}
        self.reload_seconds = 0.0
        self._outdated = False
        """A unit was enabled or disabled since all were read: then systemd 257 says of each that it has to be read again."""
        self._paths: dict[str, str] = {}
        self._jobs = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> PlayedSystemd:
        self.reload()
        await self.appear()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kubelet.stop()
        self.vanish()
        for task in self._tasks:
            task.cancel()

    async def appear(self) -> None:
        """On the bus."""
        self.bus = MessageBus(bus_address=self._address, bus_type=BusType.SYSTEM)
        await self.bus.connect()
        self.bus.add_message_handler(self._hear)
        await self.bus.request_name(NAME)

    def vanish(self) -> None:
        """From the bus."""
        if self.bus is not None:
            self.bus.disconnect()
            self.bus = None

    # ------------------------------------------------------------ what systemd does

    def reload(self) -> None:
        """Reads every unit's file again."""
        self._outdated = False
        folder = self.tree / "etc/systemd/system"
        self._read = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}

    async def fire(self, timer: str) -> None:
        """The timer's hour has come, if it runs."""
        if timer in self.timers:
            await self._start(self._value(timer, "Timer", "Unit"))

    async def boot(self) -> None:
        """The machine went off and comes up: what is enabled runs, what was in memory is gone."""
        await self.kubelet.stop()
        self.timers.clear()
        self.reload()
        await self.kubelet.start()
        for link in (self.tree / "etc/systemd/system/timers.target.wants").iterdir():
            if link.name in self._read:
                self.timers.add(link.name)

    async def _start(self, name: str) -> None:
        if name == "kubelet.service":
            await self.kubelet.start()
        elif name.endswith(".timer"):
            self._value(name, "Timer", "Unit")
            self.timers.add(name)
        elif all(
            self._there(path) for path in _parsed(self._read[name], "Unit").get("ConditionPathExists", [])
        ):
            self.running.add(name)
            try:
                for command in _parsed(self._read[name], "Service")["ExecStart"]:
                    await self._execute(command)
            finally:
                self.running.discard(name)

    async def _execute(self, command: str) -> None:
        words = shlex.split(command.removeprefix("-"))
        if words[0] == "/bin/systemctl":
            status = await self._systemctl([word for word in words[1:] if word != "--no-block"])
        else:
            here = [str(self.tree) + word if word.startswith(HERE) else word for word in words[1:]]
            process = await asyncio.create_subprocess_exec(words[0], *here, stderr=asyncio.subprocess.DEVNULL)
            status = await process.wait()
        if status and not command.startswith("-"):
            raise FailedError(command)

    async def _systemctl(self, words: list[str]) -> int:
        verb, name = words
        actions: dict[str, Callable[[str], Coroutine[Any, Any, None]]] = {
            "start": self._start, "stop": self._stop, "restart": self._restart, "reset-failed": self._nothing, "disable": self._disable,
        }  # fmt: skip
        try:
            await actions[verb](name)
        except (FailedError, KeyError):
            return 1
        return 0

    async def _stop(self, name: str) -> None:
        self.timers.discard(name)
        if name == "kubelet.service":
            await self.kubelet.stop()

    async def _restart(self, name: str) -> None:
        await self._stop(name)
        await self._start(name)

    async def _nothing(self, name: str) -> None:
        pass

    async def _enable(self, name: str) -> None:
        folder = self.tree / "etc/systemd/system"
        [target] = _parsed((folder / name).read_text(), "Install")["WantedBy"]  # from the file, read or not
        link = folder / f"{target}.wants" / name
        if not link.is_symlink():
            link.symlink_to(f"/etc/systemd/system/{name}")
            self._outdated = True

    async def _disable(self, name: str) -> None:
        (self.tree / "etc/systemd/system/timers.target.wants" / name).unlink(missing_ok=True)
        self._outdated = True

    def _there(self, path: str) -> bool:
        return Path(f"{self.tree}{path}").exists()

    def _value(self, name: str, section: str, key: str) -> str:
        [value] = _parsed(self._read[name], section)[key]
        return value

    # ------------------------------------------------------------ what D-Bus hears

    def _hear(self, message: Message) -> bool:
        if message.message_type is not MessageType.METHOD_CALL or message.interface not in (
            f"{NAME}.Manager",
            "org.freedesktop.DBus.Properties",
        ):
            return False
        task = asyncio.create_task(self._answer(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _answer(self, message: Message) -> None:
        member = message.member or ""
        self.calls.append(" ".join([member, *(str(word) for word in message.body[:1])]))
        if member in self.silent:
            return
        assert self.bus is not None
        if member in self.refuses:
            await self.bus.send(
                Message.new_error(message, "org.freedesktop.DBus.Error.AccessDenied", "Permission denied")
            )
            return
        if member in ("StartUnit", "StopUnit", "RestartUnit"):
            await self._job(message)
        elif member == "GetAll":
            name = self._paths[message.path or ""]
            kind = message.body[0].rpartition(".")[2]
            await self.bus.send(Message.new_method_return(message, "a{sv}", [self._properties(name, kind)]))
        elif member == "LoadUnit":
            [name] = message.body
            path = f"{PATH}/unit/{''.join(c if c.isalnum() else f'_{ord(c):02x}' for c in name)}"
            self._paths[path] = name
            await self.bus.send(Message.new_method_return(message, "o", [path]))
        else:
            if member == "Reload":
                await asyncio.sleep(self.reload_seconds)
                self.reload()
            elif member == "EnableUnitFiles":
                await self._enable(message.body[0][0])
            elif member == "DisableUnitFiles":
                await self._disable(message.body[0][0])
            await self.bus.send(Message.new_method_return(message))

    async def _job(self, message: Message) -> None:
        assert self.bus is not None
        self._jobs += 1
        path = f"{PATH}/job/{self._jobs}"
        name = message.body[0]
        await self.bus.send(Message.new_method_return(message, "o", [path]))
        action = {"StartUnit": self._start, "StopUnit": self._stop, "RestartUnit": self._restart}[
            message.member or ""
        ]
        try:
            await action(name)
            result = "done"
        except FailedError:
            result = "failed"
        if self.bus is not None:
            await self.bus.send(
                Message.new_signal(
                    PATH, f"{NAME}.Manager", "JobRemoved", "uoss", [self._jobs, path, name, result]
                )
            )

    def _properties(self, name: str, kind: str) -> dict[str, Variant]:
        text = self._read.get(name)
        if kind == "Service":
            return {
                "MainPID": Variant("u", self.kubelet.pid if name == "kubelet.service" else 0),
                "NRestarts": Variant("u", self.kubelet.restarts),
                "ExecMainStatus": Variant("i", 0),
                "Result": Variant("s", "success"),
            }
        if kind == "Timer":
            return {"NextElapseUSecRealtime": Variant("t", self._next(name))}
        path = self.tree / "etc/systemd/system" / name
        active = name in self.timers or (
            self.kubelet.wanted if name == "kubelet.service" else name in self.running
        )
        load = (
            self.kubelet.load if name == "kubelet.service" else "loaded" if text is not None else "not-found"
        )
        enabled = (self.tree / "etc/systemd/system/timers.target.wants" / name).is_symlink()
        return {
            "LoadState": Variant("s", load),
            "ActiveState": Variant("s", "active" if active else "inactive"),
            "SubState": Variant("s", "running" if active else "dead"),
            "UnitFileState": Variant("s", "enabled" if enabled else "static"),
            "FragmentPath": Variant("s", f"/etc/systemd/system/{name}" if text is not None else ""),
            "DropInPaths": Variant("as", self.overrides.get(name, [])),
            "NeedDaemonReload": Variant(
                "b",
                self._outdated or (text is not None and (not path.exists() or path.read_text() != text)),
            ),
        }

    def _next(self, name: str) -> int:
        if name not in self.timers:
            return NEVER
        hour = self._value(name, "Timer", "OnCalendar").replace(" UTC", "+0000")
        return int(dt.datetime.strptime(hour, "%Y-%m-%d %H:%M:%S%z").timestamp() * 1e6)


def _parsed(text: str, section: str) -> Section:
    """A section of a unit's file."""
    found: Section = {}
    inside = ""
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.strip("[]")
        elif "=" in line and not line.startswith("#") and inside == section:
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found
