"""Questions and answers of the checks as JSON, one a line: `python -m numacore check`.

docs tell every field; machines, state files and pods have the forms of `numacore.kubelet.case`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from numacore.kubelet import case
from numacore.kubelet.case import CaseError, NumaIn, PodIn
from numacore.kubelet.checks.assembly import File, Sources
from numacore.kubelet.checks.check import Checked, Running, check
from numacore.kubelet.checks.documents import read as read_text
from numacore.kubelet.node import StateFiles
from numacore.kubelet.restart import Survival


class FileIn(msgspec.Struct, rename="pascal"):
    name: str
    text: str


class StateIn(msgspec.Struct, rename="pascal"):
    cpu: str | None = msgspec.field(name="CPU", default=None)
    memory: str | None = None
    pods: list[PodIn] | None = None


class QuestionIn(msgspec.Struct, rename="pascal", kw_only=True):
    id: str = msgspec.field(name="ID", default="")
    file: str | None = None
    drop_ins: list[FileIn] | None = None
    flags: list[str] = []
    machine: list[NumaIn] | None = None
    state: StateIn | None = None


_DECODER = msgspec.json.Decoder(QuestionIn)


def answer(line: bytes, minor: int) -> bytes:
    """The answer to a question, both as JSON. Raises CaseError, errors.UnsupportedError, quantity.QuantityError."""
    try:
        asked = _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise CaseError(str(error)) from None
    return msgspec.json.encode(told(asked.id, judged(asked, minor)))


def judged(asked: QuestionIn, minor: int) -> Checked:
    """What the checks say to a question."""
    sources = Sources(
        minor=minor,
        file=None if asked.file is None else File("config.yaml", read_text(asked.file)),
        drop_ins=None
        if asked.drop_ins is None
        else tuple(File(each.name, read_text(each.text)) for each in asked.drop_ins),
        flags=tuple(asked.flags),
    )
    machine = None if asked.machine is None else case.machine(asked.machine)
    return check(sources, machine, None if asked.state is None else _running(asked.state))


def _running(state: StateIn) -> Running:
    pods = tuple(case.pod(each) for each in state.pods or ())
    return Running(StateFiles(state.cpu, state.memory), pods)


def told(identity: str, checked: Checked) -> dict[str, Any]:
    """An answer: `starts`, `findings`, `words` (what the kubelet would say before it ends), `fields` and `restart`."""
    answer: dict[str, Any] = {
        "id": identity,
        "starts": checked.starts,
        "findings": [msgspec.to_builtins(finding) for finding in checked.findings],
        "words": [finding.words for finding in checked.told],
        "fields": checked.fields,
    }
    if checked.survival is not None:
        answer["restart"] = _restart(checked.survival)
    return answer


def _restart(survival: Survival) -> dict[str, Any]:
    return {
        "survives": survival.survives,
        "refusal": survival.refusal,
        "panics": survival.panics,
        "chance": survival.chance,
        "lost": [
            {"uid": each.pod.uid, "reason": each.verdict.reason, "message": each.verdict.message}
            for each in survival.lost
        ],
    }
