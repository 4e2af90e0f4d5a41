"""Whether two programs say the same of a case, where either may have more than one right answer."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

Case = dict[str, Any]
Answer = dict[str, Any]
Ask = Callable[[Sequence[Case]], list[Answer]]

REPEATS = 12
"""How often the oracle is asked again when its first answer is not ours."""
MANY = 64
"""With so many answers the engine may have stopped counting, which it does where devices are equal; then which ones does not count."""


SHORT = re.compile(r"unavailable for \S+\. Requested: \d+, Available: \d+")


INDEX = re.compile(r"index out of range \[\d+\]")
"""Of the NUMA nodes past the end of a list the kubelet dies on the one that it comes to first, which is chance where a pod asks for several
kinds of devices (a Go map of hints)."""


class Difference(msgspec.Struct, frozen=True):
    """A case, the kubelet's answers that are not among ours, and ours."""

    case: Case
    kubelet: list[Answer]
    ours: list[Answer]


def differences(cases: Sequence[Case], oracle: Ask, engine: Ask) -> list[Difference]:
    """The cases of which the two say different things."""
    pairs = zip(cases, oracle(cases), engine(cases), strict=True)
    doubtful = [(case, ours) for case, theirs, ours in pairs if plain(theirs) not in every(ours)]
    found = (difference(case, oracle([case] * REPEATS), ours) for case, ours in doubtful)
    return [each for each in found if each is not None]


def difference(case: Case, kubelet: Iterable[Answer], ours: Answer) -> Difference | None:
    """None = each of the kubelet's answers is one of ours."""
    right = every(ours)
    theirs = distinct(map(plain, kubelet))
    if len(right) >= MANY or ours.get("open_unfinished"):
        right, theirs = distinct(map(_without_devices, right)), distinct(map(_without_devices, theirs))
    wrong = [answer for answer in theirs if answer not in right]
    return Difference(case, wrong, right) if wrong else None


def kind(difference: Difference) -> tuple[str, ...]:
    """What it is about: the fields that differ in the first step that does, or of the start."""
    theirs, ours = difference.kubelet[0], difference.ours[0]
    steps = [{"steps": len(theirs["steps"])}, {"steps": len(ours["steps"])}]
    for mine, other in [
        (theirs | {"steps": None}, ours | {"steps": None}),
        *zip(ours["steps"], theirs["steps"], strict=False),
        tuple(steps),
    ]:
        if fields := [name for name in sorted({*mine, *other}) if mine.get(name) != other.get(name)]:
            return tuple(fields)
    return ()


def every(answer: Answer) -> list[Answer]:
    """The answer and those that it names as just as right."""
    return distinct(plain(each) for each in (answer, *answer.get("open", [])))


def distinct(answers: Iterable[Answer]) -> list[Answer]:
    found: list[Answer] = []
    for answer in answers:
        if answer not in found:
            found.append(answer)
    return found


def plain(answer: Answer) -> Answer:
    """The answer without what says nothing, and without words that only one of the two can know (how a kubelet hangs)."""
    kept = {
        name: value
        for name, value in answer.items()
        if name not in {"open", "open_unfinished", "id"} and value
    }
    kept["steps"] = [_plain_step(step) for step in answer.get("steps") or []]
    if "state" in kept and "memory" in kept["state"]:
        kept["state"] = kept["state"] | {"memory": _plain_memory(kept["state"]["memory"])}
    return kept


def _plain_memory(text: str) -> Any:
    """A memory manager's file, with a container's blocks in one order; which they have is Go's choice, and the checksums
    tell it too, so that they count only where there is no choice."""
    try:
        state = json.loads(text)
        inner = json.loads(state.get("data", "{}"))
    except (ValueError, AttributeError):
        return text
    blocks = [
        each
        for entries in (state, inner)
        for pod in entries.get("entries", {}).values()
        for each in pod.values()
    ]
    if any(len(each) > 1 for each in blocks):
        state = {name: value for name, value in state.items() if name not in ("checksum", "dataChecksum")}
    for each in blocks:
        each.sort(key=lambda block: block["type"])
    return state | {"data": inner}


def _without_devices(answer: Answer) -> Answer:
    """Also without which of several devices that are short a refusal names: Go's order of a map decides."""
    steps = [{name: value for name, value in step.items() if name != "devices"} for step in answer["steps"]]
    for step in steps:
        if "message" in step:
            step["message"] = SHORT.sub("unavailable for some device", step["message"])
    return answer | {"steps": steps}


def _plain_step(step: Answer) -> Answer:
    kept = {name: value for name, value in step.items() if value and name != "where"}
    if kept.get("reason") == "Hang":
        kept.pop("message", None)
    if kept.get("reason") == "Panic":
        kept["message"] = INDEX.sub("index out of range", kept["message"])
    return kept
