"""Whether what the kubelet's program says to a case and what the checks say are the same."""

import re
from collections import Counter
from typing import Any

import msgspec

from numacore.kubelet import resource
from numacore.kubelet.checks.case import QuestionIn, judged
from numacore.kubelet.checks.check import Checked
from numacore.kubelet.checks.findings import STAGES, Finding

Case = dict[str, Any]
Answer = dict[str, Any]

SHOWN = (
    "cpuManagerPolicy", "cpuManagerPolicyOptions", "memoryManagerPolicy", "topologyManagerPolicy", "topologyManagerScope", "topologyManagerPolicyOptions",
    "reservedSystemCPUs", "reservedMemory", "kubeReserved", "systemReserved", "evictionHard", "enforceNodeAllocatable", "featureGates",
    "memoryThrottlingFactor", "memoryReservationPolicy",
)  # fmt: skip
"""Fields that the program prints of a configuration that it takes."""
_PANIC = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
_NEXT = re.compile(r", (?=\w+ is enabled|unrecognized|cannot set)")
_OWN_WORDS = ("yaml-syntax", "json-syntax")
"""Here the kubelet's words are those of its YAML library, which the checks do not repeat."""


def differences(case: Case, said: Answer, minor: int) -> list[str]:
    """What differs, in words; empty = nothing."""
    checked = judged(msgspec.convert(_with_machine(case), QuestionIn), minor)
    stops = [each for each in checked.told if each.stage not in ("managers", "state")]
    if "panic" in said:
        return _panic(said["panic"], stops)
    if "stage" in said:
        return _refusal(said, stops)
    found = [f"the kubelet goes on, the checks say {each.words!r} ({each.reason.code})" for each in stops]
    return found or [*_effective(said["effective"], checked), *_notes(said.get("notes", []), checked)]


def _with_machine(case: Case) -> Case:
    cores = [{"ID": cpu, "Socket": 0, "Threads": [cpu]} for cpu in case["Online"]]
    return case | {"Machine": [{"ID": 0, "Memory": 16 << 30, "Cores": cores}]}


def _panic(words: str, stops: list[Finding]) -> list[str]:
    parts = set(_parts(words.removeprefix(_PANIC)))
    ours = {each.words.removeprefix(_PANIC) for each in stops}
    if all(each.severity == "crash" for each in stops) and stops and parts <= ours:
        return []
    return [f"the kubelet panics with {words!r}, the checks say {_shown(stops)}"]


def _parts(aggregate: str) -> list[str]:
    """The errors of one that Go put together: [a, b]."""
    whole = re.fullmatch(r"\[(.*)\]", aggregate, re.DOTALL)
    return _NEXT.split(whole[1]) if whole else [aggregate]


def _refusal(said: Answer, stops: list[Finding]) -> list[str]:
    stage, words = said["stage"], said["errors"]
    if not stops or stops[0].stage != stage or stops[0].severity != "fatal":
        return [f"the kubelet refuses at {stage} with {words}, the checks say {_shown(stops)}"]
    ours = [each.words for each in stops]
    match stage:
        case "validate":
            same = Counter(words) == Counter(ours)
        case "load" | "merge":
            same = any(
                each.reason.code in _OWN_WORDS or (each.words and each.words in words[0])
                for each in (stops if stage == "merge" else stops[:1])
            )
        case "gates":
            same = set(_parts(words[0])) <= set(ours)
        case _:
            same = words[0] in ours
    return [] if same else [f"the kubelet says {words}, the checks {ours}"]


def _shown(stops: list[Finding]) -> list[tuple[str, str, str]]:
    return [(each.stage, each.severity, each.words or each.reason.code) for each in stops]


def _effective(theirs: dict[str, Any], checked: Checked) -> list[str]:
    ours = dict(checked.fields or {})
    if ours.get("reservedSystemCPUs"):
        ours["kubeReserved"] = {
            kind: size for kind, size in (ours.get("kubeReserved") or {}).items() if kind != "cpu"
        }
        number = (
            len(checked.settings.reservation) and checked.settings.reservation["cpu"]
            if checked.settings
            else None
        )
        if number:
            ours["systemReserved"] = (ours.get("systemReserved") or {}) | {"cpu": number}
    shown = {name: _canonical(ours[name]) for name in SHOWN if ours.get(name) not in (None, "", {}, [])}
    if "systemReserved" in theirs and not checked.settings:
        shown["systemReserved"] = theirs["systemReserved"]
    return [
        f"{name} is {theirs.get(name)!r}, the checks say {shown.get(name)!r}"
        for name in sorted({*theirs, *shown})
        if _canonical(theirs.get(name)) != shown.get(name)
    ]


def _canonical(value: Any) -> Any:
    """Quantities of reservedMemory as they print."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    return [
        {
            "numaNode": each.get("numaNode", 0),
            "limits": {
                kind: str(resource.parse(str(size))) for kind, size in (each.get("limits") or {}).items()
            },
        }
        for each in value
    ]


def _notes(notes: list[str], checked: Checked) -> list[str]:
    logged = "".join(notes).replace('\\"', '"')
    theirs = Counter(re.findall(r'unknown field "[^"]*"|key "[^"]*" already set in map', logged))
    ours = Counter(
        re.sub(r"^line [0-9]+: ", "", each.words)
        for each in checked.findings
        if each.severity == "silent" and each.stage == "load" and each.words
    )
    return [] if theirs == ours else [f"the kubelet logs {dict(theirs)}, the checks {dict(ours)}"]


def in_order(findings: tuple[Finding, ...]) -> bool:
    """Whether findings stand in the order of the kubelet's start."""
    stages = [STAGES.index(each.stage) for each in findings]
    return stages == sorted(stages)
