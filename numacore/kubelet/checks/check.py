"""The one call: what a kubelet of this version would say to these settings on this machine, and what it would make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from numacore.diagnosis import Reason
from numacore.kubelet import restart
from numacore.kubelet.checks import running, validation
from numacore.kubelet.checks.assembly import Sources, assemble
from numacore.kubelet.checks.findings import PROVEN, STAGES, Finding, Stage
from numacore.kubelet.checks.traps import traps
from numacore.kubelet.checks.validation import Broken
from numacore.kubelet.errors import StartError
from numacore.kubelet.machine import Machine
from numacore.kubelet.node import State, StateFiles
from numacore.kubelet.pod import Pod
from numacore.kubelet.restart import Survival
from numacore.kubelet.settings import Settings


class Checked(msgspec.Struct, frozen=True):
    """Findings in the order in which the kubelet meets them, up to the first stage that has any that stop it.

    `fields`: the configuration in force, with the defaults that the checks know; None = it cannot be put together.
    `settings`: the managers'; None = the kubelet does not start, or does not get to them.
    `survival`: what a restart on the state files would bring; None = there are none, or it does not come that far.
    """

    findings: tuple[Finding, ...]
    fields: dict[str, Any] | None
    settings: Settings | None
    survival: Survival | None = None

    @property
    def starts(self) -> bool:
        return not any(finding.stops for finding in self.findings)

    @property
    def told(self) -> tuple[Finding, ...]:
        """What the kubelet itself would say before it ends: the findings that stop it. They are of one stage: no later one is
        looked at."""
        return tuple(finding for finding in self.findings if finding.stops)


class Running(msgspec.Struct, frozen=True):
    """What a restart finds on the node: its state files, the pods that run (oldest first), devices that have registered again."""

    files: StateFiles
    pods: tuple[Pod, ...] = ()
    devices: State | None = None


def check(sources: Sources, machine: Machine | None = None, found: Running | None = None) -> Checked:
    """Everything up to the stage at which the kubelet ends.

    Without a machine only what does not depend on one is checked. `found` asks besides whether the kubelet would survive a
    restart now.
    """
    assembly = assemble(sources)
    findings = list(assembly.findings)
    if assembly.fields is None:
        return Checked(_in_order(findings), None, None)
    fields, minor = assembly.fields, sources.minor
    findings += _broken(validation.validate(fields, minor), "validate", assembly.origin, minor)
    if _stopped(findings):
        return Checked(_in_order(findings), fields, None)
    try:
        findings += _broken(running.refusals(fields, minor, machine), "run", assembly.origin, minor)
    except StartError as error:
        findings.append(_machine(error, minor))
    if _stopped(findings):
        return Checked(_in_order(findings), fields, None)
    settings = running.settings(fields, minor, machine)
    findings += traps(fields, assembly.origin, minor, machine)
    if machine is not None:
        findings += running.start(settings, machine, fields)
    survival = None
    if machine is not None and found is not None and not _stopped(findings):
        survival = restart.survival(settings, machine, found.files, found.pods, found.devices)
        findings += _restart(survival, minor)
    return Checked(_in_order(findings), fields, None if _stopped(findings) else settings, survival)


def _stopped(findings: Iterable[Finding]) -> bool:
    return any(finding.stops for finding in findings)


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: STAGES.index(finding.stage)))


def _broken(rules: Iterable[Broken], stage: Stage, origin: dict[str, str], minor: int) -> Iterator[Finding]:
    for broken in rules:
        top = broken.field.partition(".")[0].partition("[")[0]
        yield Finding(
            severity="fatal",
            stage=stage,
            field=broken.field,
            where=origin.get(top, ""),
            words=broken.words,
            reason=broken.reason,
            remedy=broken.remedy,
            proven=minor in PROVEN,
        )


def _machine(error: StartError, minor: int) -> Finding:
    return Finding(
        severity="fatal",
        stage="run",
        field="reservedSystemCPUs",
        words=f"unable to discover CPU topology info: {error}",
        reason=Reason("no-topology"),
        remedy=Reason("look-at-machine"),
        proven=minor in PROVEN,
    )


def _restart(survival: Survival, minor: int) -> Iterator[Finding]:
    if survival.refusal:
        yield Finding(
            severity="crash" if survival.panics else "fatal",
            stage="state",
            field="",
            words=survival.refusal,
            alternatives=survival.alternatives,
            reason=Reason("state-refused", {"differences": len(survival.differences)}),
            remedy=Reason("remove-state"),
            proven=minor in PROVEN,
        )
    for lost in survival.lost:
        yield Finding(
            severity="silent",
            stage="state",
            field="",
            words=lost.verdict.message,
            reason=Reason("pod-lost", {"uid": lost.pod.uid, "reason": lost.verdict.reason}),
            remedy=Reason("drain-first"),
            proven=minor in PROVEN,
        )
