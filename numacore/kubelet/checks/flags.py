"""The kubelet's command line: which flags set fields of KubeletConfiguration, and what they make of their text.

Rules: pflag's FlagSet.Parse; component-base cli/flag; pkg/util/flag/flags.go; cmd/kubelet/app/options/options.go. Flags beat the file
and its drop-ins; a map given by a flag replaces the file's map whole, but for feature gates, which are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from numacore.kubelet.checks import quantities
from numacore.kubelet.checks.tables import FLAGS
from numacore.kubelet.options import quoted

FIELD_OF = {
    "cgroups-per-qos": "cgroupsPerQOS",
    "cpu-manager-policy": "cpuManagerPolicy",
    "cpu-manager-policy-options": "cpuManagerPolicyOptions",
    "enforce-node-allocatable": "enforceNodeAllocatable",
    "eviction-hard": "evictionHard",
    "feature-gates": "featureGates",
    "kube-reserved": "kubeReserved",
    "kube-reserved-cgroup": "kubeReservedCgroup",
    "max-pods": "maxPods",
    "memory-manager-policy": "memoryManagerPolicy",
    "qos-reserved": "qosReserved",
    "reserved-cpus": "reservedSystemCPUs",
    "reserved-memory": "reservedMemory",
    "system-reserved": "systemReserved",
    "system-reserved-cgroup": "systemReservedCgroup",
    "topology-manager-policy": "topologyManagerPolicy",
    "topology-manager-policy-options": "topologyManagerPolicyOptions",
    "topology-manager-scope": "topologyManagerScope",
}
"""Flags whose fields the checks look at; others are only checked for their name."""
CONFIG_DIR = "config-dir"


class Given(msgspec.Struct, frozen=True):
    """One flag on the command line."""

    name: str
    text: str


class FlagError(Exception):
    """In the kubelet's words. `flag`: the one at fault, "" = a word that is no flag."""

    def __init__(self, flag: str, words: str) -> None:
        super().__init__(words)
        self.flag = flag


def parse(arguments: Sequence[str], minor: int) -> tuple[Given, ...]:
    """Raises FlagError at the first that the kubelet does not take, of values too."""
    found: list[Given] = []
    fields: dict[str, Any] = {}
    rest: list[str] = []
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        if word == "--":
            rest += queue
            break
        if not word.startswith("-") or word == "-":
            rest.append(word)
        else:
            found.append(_long(word[2:], queue, minor) if word.startswith("--") else _short(word, queue))
            _set(fields, found[-1], minor)
    if rest:
        raise FlagError("", f"unknown command {rest[0]}")
    return tuple(found)


def _long(word: str, queue: list[str], minor: int) -> Given:
    name, equals, text = word.partition("=")
    if not name or name[0] in "-=":
        raise FlagError("", f"bad flag syntax: --{word}")
    name = name.replace("_", "-")
    kind, since, until = FLAGS.get(name, ("", 99, 0))
    if name == "help":
        kind, since = "bool", 0
    if minor < since or (until and minor >= until):
        raise FlagError(name, f"unknown flag: --{name}")
    if equals:
        return Given(name, text)
    if kind in ("bool", "version"):
        return Given(name, "true")
    if not queue:
        raise FlagError(name, f"flag needs an argument: --{name}")
    return Given(name, queue.pop(0))


def _short(word: str, queue: list[str]) -> Given:
    """The kubelet has -v and -h."""
    letter = word[1]
    if letter == "v":
        if len(word) > 2:
            return Given("v", word[2:].removeprefix("="))
        if not queue:
            raise FlagError("v", "flag needs an argument: 'v' in -v")
        return Given("v", queue.pop(0))
    if letter == "h":
        return Given("help", "true")
    raise FlagError(letter, f"unknown shorthand flag: {quoted(letter).replace(chr(34), chr(39))} in {word}")


def fields(given: Sequence[Given], minor: int) -> dict[str, Any]:
    """What flags set, by field."""
    found: dict[str, Any] = {}
    for each in given:
        _set(found, each, minor)
    return found


def _set(found: dict[str, Any], given: Given, minor: int) -> None:
    field = FIELD_OF.get(given.name)
    if field is None:
        return
    read = _thresholds if field == "evictionHard" else _READERS.get(FLAGS[given.name][0])
    if read is None:
        found[field] = given.text
        return
    try:
        read(found, field, given.text)
    except ValueError as error:
        words = _as_before(str(error)) if minor < SPELT_RIGHT_SINCE else str(error)
        raise FlagError(
            given.name, f"invalid argument {quoted(given.text)} for {quoted('--' + given.name)} flag: {words}"
        ) from None


SPELT_RIGHT_SINCE = 35
"""Minor version since which the words about --reserved-memory are spelt as they are here."""


def _as_before(words: str) -> str:
    words = re.sub(r"^(failed to convert the NUMA node ID, )expected", r"\1exptected", words)
    words = re.sub(r"^(the reserved limit has .*type=)quantity", r"\1quantatity", words)
    return re.sub(
        r"^failed to parse the quantity: ", "failed to parse the quantatity, expected quantatity, got ", words
    )


def _pairs(text: str, separator: str, of: str) -> dict[str, str]:
    made: dict[str, str] = {}
    for pair in text.split(","):
        if pair:
            name, found, value = pair.partition(separator)
            if not found:
                raise ValueError(f"malformed pair, expect string{separator}{of}")
            made[name.strip()] = value.strip()
    return made


def _map(found: dict[str, Any], field: str, text: str) -> None:
    if field == "cpuManagerPolicyOptions":
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError("malformed pair, expect string=string")
        pairs = {name.strip(): value.strip()}
    else:
        pairs = _pairs(text, "=", "string")
    found[field] = found.get(field, {}) | pairs


def _thresholds(found: dict[str, Any], field: str, text: str) -> None:
    found[field] = found.get(field, {}) | _pairs(text, "<", "string")


def _gates(found: dict[str, Any], field: str, text: str) -> None:
    made: dict[str, bool] = {}
    for name, value in _pairs(text, "=", "bool").items():
        try:
            made[name] = boolean(value)
        except ValueError as error:
            raise ValueError(f"invalid value of {name}: {value}, err: {error}") from None
    found[field] = found.get(field, {}) | made


def _bool(found: dict[str, Any], field: str, text: str) -> None:
    found[field] = boolean(text)


def boolean(text: str) -> bool:
    """Go's strconv.ParseBool. Raises ValueError in its words."""
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax")


def _int32(found: dict[str, Any], field: str, text: str) -> None:
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise ValueError(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    if int(text) not in range(-(1 << 31), 1 << 31):
        raise ValueError(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    found[field] = int(text)


def _list(found: dict[str, Any], field: str, text: str) -> None:
    found[field] = found.get(field, []) + (text.split(",") if text else [])


def _memory(found: dict[str, Any], field: str, text: str) -> None:
    """`ReservedMemoryVar`: 0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=1Gi."""
    given = [_reservation(each) for each in text.split(";")] if text else []
    found[field] = found.get(field, []) + given


def _reservation(text: str) -> Mapping[str, Any]:
    form = "expected numaNodeID:type=quantity[,type=quantity...]"
    parts = text.split(":")
    if len(parts) != 2:
        raise ValueError(f"the reserved memory has incorrect format, {form}, got {text}")
    if not re.fullmatch(r"[+-]?[0-9]+", parts[0], re.ASCII):
        raise ValueError(f"failed to convert the NUMA node ID, expected integer, got {parts[0]}")
    limits: dict[str, str] = {}
    for each in parts[1].split(","):
        limit = each.split("=")
        if len(limit) != 2:
            raise ValueError(f"the reserved limit has incorrect value, expected type=quantity, got {each}")
        if limit[0] != "memory" and not limit[0].startswith("hugepages-"):
            raise ValueError(f"memory type conversion error, unknown type: {quoted(limit[0])}")
        if quantities.quantity_fault(limit[1]):
            raise ValueError(f"failed to parse the quantity: {limit[1]}")
        limits[limit[0]] = limit[1]
    return {"numaNode": int(parts[0]), "limits": limits}


_READERS: dict[str, Callable[[dict[str, Any], str, str], None]] = {
    "mapStringString": _map,
    "mapStringBool": _gates,
    "bool": _bool,
    "int32": _int32,
    "stringSlice": _list,
    "reserved-memory": _memory,
}
