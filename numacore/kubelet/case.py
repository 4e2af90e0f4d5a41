"""Cases and answers as JSON: the form in which the engine and the real kubelet are asked the same things.

A case is a machine, settings and steps; the answer what the kubelet says to each step. tests/oracle/README.md tells every field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from numacore.kubelet import errors, node
from numacore.kubelet.choices import Choices, every
from numacore.kubelet.device_manager import Device
from numacore.kubelet.errors import PanicError, StartError
from numacore.kubelet.machine import Core, Machine, Node
from numacore.kubelet.pod import Container, Pod, PodResources
from numacore.kubelet.settings import NEWEST, MemoryReservation, Settings
from numacore.kubelet.verdict import Verdict

MOST_ANSWERS = 256
"""Open choices are followed up to this many answers."""

Answer = dict[str, Any]
Amounts = dict[str, str]


class CoreIn(msgspec.Struct, rename="pascal"):
    id: int = msgspec.field(name="ID")
    socket: int
    threads: list[int]
    uncore: int | None = None


class NumaIn(msgspec.Struct, rename="pascal"):
    id: int = msgspec.field(name="ID")
    memory: int = 0
    huge_pages: dict[str, int] | None = None
    distances: list[int] | None = None
    cores: list[CoreIn] | None = None


class ReservedIn(msgspec.Struct, rename="pascal"):
    numa: int
    limits: Amounts | None = None


class ConfigIn(msgspec.Struct, rename="pascal", kw_only=True):
    topology_policy: str
    scope: str = "container"
    topology_options: dict[str, str] | None = None
    cpu_policy: str = msgspec.field(name="CPUPolicy")
    cpu_options: dict[str, str] | None = msgspec.field(name="CPUOptions", default=None)
    reserved_cpus: str = msgspec.field(name="ReservedCPUs", default="")
    reservation: Amounts | None = None
    memory_policy: str
    reserved_memory: list[ReservedIn] | None = None
    gates: dict[str, bool] | None = None


class ContainerIn(msgspec.Struct, rename="pascal"):
    name: str
    requests: Amounts | None = None
    limits: Amounts | None = None
    restart_policy: str = ""


class PodIn(msgspec.Struct, rename="pascal"):
    uid: str = msgspec.field(name="UID")
    init: list[ContainerIn] | None = None
    containers: list[ContainerIn] | None = None
    pod_requests: Amounts | None = None
    pod_limits: Amounts | None = None


class DeviceIn(msgspec.Struct, rename="pascal"):
    id: str = msgspec.field(name="ID")
    numa: list[int] | None = None
    unhealthy: bool = False


class DevicesIn(msgspec.Struct, rename="pascal"):
    resource: str
    devices: list[DeviceIn] | None = None


class RestartIn(msgspec.Struct, rename="pascal"):
    machine: list[NumaIn] | None = None
    config: ConfigIn | None = None


class StateIn(msgspec.Struct, rename="pascal"):
    cpu: str = msgspec.field(name="CPU", default="")
    memory: str = ""
    pods: list[PodIn] | None = None


class StepIn(msgspec.Struct, rename="pascal"):
    admit: PodIn | None = None
    remove: str = ""
    devices: list[DevicesIn] | None = None
    restart: RestartIn | None = None


class CaseIn(msgspec.Struct, rename="pascal", kw_only=True):
    id: str = msgspec.field(name="ID", default="")
    machine: list[NumaIn]
    config: ConfigIn
    devices: list[DevicesIn] | None = None
    state: StateIn | None = None
    steps: list[StepIn] | None = None
    keep_state: bool = False


class CaseError(ValueError):
    """A line that is no case."""


_DECODER = msgspec.json.Decoder(CaseIn)


def read(line: bytes | str) -> CaseIn:
    """A case from one line of JSON. Raises CaseError, which names the field."""
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise CaseError(str(error)) from None


def answer(line: bytes, minor: int = NEWEST) -> bytes:
    """The answer to a case, both as JSON.

    Raises:
        CaseError, quantity.QuantityError, errors.UnsupportedError: the line is no case, or one that cannot be judged.
    """
    return msgspec.json.encode(judge(read(line), minor))


def judge(case: CaseIn, minor: int = NEWEST) -> Answer:
    """The kubelet's answer, in `open` all others that it may give as well; `open_unfinished` where there are still more ways.

    Raises:
        quantity.QuantityError, errors.UnsupportedError: the case cannot be judged.
    """
    given: list[Answer] = []
    runs = 0
    for answers in every(lambda choices: _answers(case, minor, choices), MOST_ANSWERS + 1):
        runs += 1
        given += [answer for answer in answers if answer not in given]
    first, *others = given
    unfinished = {"open_unfinished": True} if runs > MOST_ANSWERS else {}
    return first | ({"open": others} if others else {}) | unfinished


def _answers(case: CaseIn, minor: int, choices: Choices) -> list[Answer]:
    """The answer of one way through the open choices; several where only the words of an error are open."""
    found = case.state or StateIn()
    files = node.StateFiles(found.cpu, found.memory)
    choices.devices_alike = not any(step.devices for step in case.steps or [])
    steps: list[Answer] | None = None
    try:
        running = _started(case, minor, choices)
        steps = []
        for step in case.steps or []:
            files = node.state_files(running) if step.restart else files
            running, told = _step(running, step, choices)
            steps.append(told)
            if told.get("reason") in (errors.PANIC, errors.HANG):
                break
        return [{"id": case.id, "steps": steps or None, **_kept(case, node.state_files(running))}]
    except (StartError, PanicError) as error:
        kept = _kept(case, msgspec.structs.replace(files, cpu=error.cpu_file or files.cpu))
        if steps is None:
            return [{"id": case.id, **end, "steps": None, **kept} for end in _ends(error)]
        return [
            {"id": case.id, "steps": [*steps, {"admit": False, "shared": "", **end}], **kept}
            for end in _ends(error)
        ]


def _ends(error: StartError | PanicError) -> list[Answer]:
    """The words of a kubelet that does not start, all that are possible."""
    if isinstance(error, PanicError):
        return [{"start_panic": str(error)}]
    return [{"start_error": text} for text in (str(error), *error.alternatives)]


def _kept(case: CaseIn, files: node.StateFiles) -> Answer:
    """The state files at the end, where the case asks for them."""
    if not case.keep_state:
        return {}
    return {"state": {name: text for name, text in (("cpu", files.cpu), ("memory", files.memory)) if text}}


def _started(case: CaseIn, minor: int, choices: Choices) -> node.Node:
    found = case.state or StateIn()
    known = msgspec.structs.replace(
        node.empty_state(), pods={each.uid: pod(each) for each in found.pods or []}
    )
    files = node.StateFiles(found.cpu or None, found.memory or None)
    running = node.start(settings(case.config, minor), machine(case.machine), known, files, choices)
    return node.report_devices(running, devices(case.devices or []))


def _step(running: node.Node, step: StepIn, choices: Choices) -> tuple[node.Node, Answer]:
    if step.admit:
        running, verdict = node.admit(running, pod(step.admit), choices)
        return running, _told(verdict)
    if step.restart:
        config, changed = step.restart.config, step.restart.machine
        running = node.restart(
            running,
            settings(config, running.settings.minor) if config else None,
            machine(changed) if changed else None,
            choices,
        )
    if step.remove:
        running = node.remove(running, step.remove)
    if step.devices is not None:
        running = node.report_devices(running, devices(step.devices))
    return running, {"admit": True, "shared": str(node.shared_pool(running))}


def _told(verdict: Verdict) -> Answer:
    if verdict.outcome in ("panics", "hangs"):
        verb = "crashes" if verdict.outcome == "panics" else "hangs"
        return {
            "admit": False,
            "reason": verdict.reason,
            "message": f"kubelet {verb}: {verdict.message}",
            "shared": "",
        }
    placed = verdict.placements
    told: Answer = {
        "admit": verdict.admitted,
        "reason": verdict.reason,
        "message": verdict.message,
        "qos": verdict.qos,
        "cpus": {name: str(each.cpus) for name, each in placed.items() if each.cpus is not None},
        "memory": {
            name: [
                {"Numa": list(block.numa), "Type": block.kind, "Size": block.size}
                for block in sorted(each.memory, key=lambda block: block.kind)
            ]
            for name, each in placed.items()
            if each.memory
        },
        "devices": {
            name: {kind: sorted(map(list, held.numa)) for kind, held in each.devices.items()}
            for name, each in placed.items()
            if each.devices
        },
    }
    always = ("admit", "shared")
    return {name: value for name, value in told.items() if value or name in always} | {
        "shared": str(verdict.shared)
    }


def machine(nodes: Iterable[NumaIn]) -> Machine:
    """The machine of a case."""
    return Machine(
        tuple(
            Node(
                id=each.id,
                memory=each.memory,
                hugepages={int(size): number for size, number in sorted((each.huge_pages or {}).items())},
                distances=None if each.distances is None else tuple(each.distances),
                cores=tuple(
                    Core(core.id, core.socket, tuple(core.threads), core.uncore) for core in each.cores or []
                ),
            )
            for each in nodes
        )
    )


def settings(config: ConfigIn, minor: int) -> Settings:
    """The settings of a case."""
    return Settings(
        minor=minor,
        topology_manager_policy=config.topology_policy,
        topology_manager_scope=config.scope,
        topology_manager_policy_options=config.topology_options or {},
        cpu_manager_policy=config.cpu_policy,
        cpu_manager_policy_options=config.cpu_options or {},
        reserved_system_cpus=config.reserved_cpus,
        reservation=config.reservation or {},
        memory_manager_policy=config.memory_policy,
        reserved_memory=tuple(
            MemoryReservation(each.numa, each.limits or {}) for each in config.reserved_memory or []
        ),
        feature_gates=config.gates or {},
    )


def pod(given: PodIn) -> Pod:
    """The pod of a step."""
    whole = given.pod_requests is not None or given.pod_limits is not None
    return Pod(
        uid=given.uid,
        containers=tuple(map(_container, given.containers or [])),
        init=tuple(map(_container, given.init or [])),
        resources=PodResources(given.pod_requests or {}, given.pod_limits or {}) if whole else None,
    )


def _container(given: ContainerIn) -> Container:
    return Container(given.name, given.requests or {}, given.limits or {}, given.restart_policy == "Always")


def devices(report: Iterable[DevicesIn]) -> dict[str, tuple[Device, ...]]:
    """What device plugins report in a case."""
    return {
        each.resource: tuple(
            Device(device.id, tuple(device.numa or ()), not device.unhealthy) for device in each.devices or []
        )
        for each in report
    }
