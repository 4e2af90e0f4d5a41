"""Every cause that collector, watcher or exporter can write down has its sentence in the reader's language, and a remedy where it is a reader's.

Texts are found in the sources themselves: what is handed to an error or to a reader's note. Values in them are replaced by samples.
"""

from __future__ import annotations

import ast
import os
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from django.utils import translation

from monitoring.figures import causes, causetexts, reading
from numacore import wire
from numacore.wire import Problem
from tests.architecture import source
from tests.servers import ROOT

PLACES = (
    *(
        "numaagent/readers/",
        "numaagent/exporter/",
        "monitoring/sources/",
        "monitoring/kube/",
        "monitoring/hot/",
    ),
    *("monitoring/services/", "policies/services/rollout/signing.py"),
    *("numacore/wire.py", "numacore/cpuset.py", "numacore/usage.py", "numacore/topology.py"),
)
ELSEWHERE = (
    *(
        "monitoring/sources/manifest.py",
        "monitoring/kube/selector.py",
        "monitoring/services/watching/service.py",
    ),
    *("numaagent/exporter/http.py", "numaagent/exporter/command.py", "numaagent/exporter/server.py"),
)
"""What they say reaches no page: codes with sentences of their own, answers of the exporter's server, its command line."""
ERRORS = re.compile(
    r"(Error|Unreachable|Silent|Untrusted|Unauthorized|NotServed|Gone|TooMany|Garbled|TooLarge)$"
)
QUIET = (
    "NotImplementedError",
    "OSError",
    "AttributeError",
    "_RefusedAddressError",
    "ServerError",
    "SelectorError",
    "LeaseLostError",
    "NotReadyError",
)
"""What nobody is shown, or in other words."""
NOTED = ("fail", "note", "give_up", "_fail")
SAID = ("_cause", "cause_of", "forbidden", "_words")
"""Functions that return a cause."""
KEPT = ("cause", "text", "wanted", "early", "late", "_CAUSES")
"""Names that hold one before it is handed on."""
CODE = re.compile(r"\S*")
"""A word alone is a reason, a remedy or the field at fault, and no sentence."""
INSIDE = "Connection refused"
NESTED = re.compile(r"error|cause|_words")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def texts() -> Iterator[tuple[str, str]]:
    """Every text with the place where it stands."""
    for name in source.tracked():
        if name.startswith(PLACES) and name.endswith(".py") and name not in ELSEWHERE:
            for line, node in told(ast.parse((ROOT / name).read_text())):
                for text in spelled(node):
                    if not CODE.fullmatch(text):
                        yield f"{name}:{line}", text


def told(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=func, args=args):
                called = ast.unparse(func).split(".")[-1]
                if (ERRORS.search(called) and called not in QUIET) or called in NOTED:
                    yield from ((node.lineno, each) for each in args)
            case ast.FunctionDef(name=name) if name in SAID:
                for each in ast.walk(node):
                    if isinstance(each, ast.Return) and each.value is not None:
                        yield each.lineno, each.value
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in KEPT:
                yield node.lineno, value


def spelled(node: ast.expr) -> Iterator[str]:
    """The texts that an expression can be, with samples for values."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(
                str(each.value) if isinstance(each, ast.Constant) else sample(each) for each in parts
            )
        case ast.IfExp(body=body, orelse=orelse):
            yield from spelled(body)
            yield from spelled(orelse)
        case ast.Dict(values=values):
            for each in values:
                yield from spelled(each)
        case ast.Tuple(elts=values) | ast.BoolOp(values=values):
            for each in values:
                yield from spelled(each)
        case ast.Call(func=ast.Name(id="_"), args=[ast.Constant(value=str(text))]):
            yield re.sub(r"%\(\w+\)[sd]", "7", text)
        case ast.BinOp(left=ast.Call() as left):
            yield from spelled(left)
        case ast.Subscript(value=value):
            yield from spelled(value)


def sample(value: Any) -> str:
    inside = ast.unparse(value.value).removeprefix("type(error)")
    return INSIDE if NESTED.search(inside) and "!r" not in ast.unparse(value) else "7"


EVERY = sorted({text: place for place, text in texts()}.items(), key=lambda each: each[1])


def left_over(text: str) -> str:
    """What of a text is still English in the Chinese one; "" = nothing."""
    with translation.override("zh-hans"):
        chinese = causes.said(text)
    if INSIDE in chinese or not CHINESE.search(chinese):
        return chinese
    # Names of files, settings, headers and programs stay; four plain words in a row are a sentence.
    found = re.search(r"\b[a-z]+ [a-z]+ [a-z]+ [a-z]+\b", chinese)
    return chinese if found else ""


def test_it_finds_the_texts_of_all_rooms() -> None:
    places = {place.rpartition("/")[0] for _text, place in EVERY}
    assert {"numaagent/readers", "monitoring/sources", "monitoring/kube", "numacore"} <= places
    assert {"it does not exist", "the packed answer is cut off", "it is not a socket"} <= {
        t for t, _ in EVERY
    }
    assert len(EVERY) > 120


@pytest.mark.parametrize(("text", "place"), EVERY, ids=[place for _text, place in EVERY])
def test_it_is_said_in_the_readers_language(text: str, place: str) -> None:
    assert left_over(text) == "", place
    with translation.override("en"):
        assert causes.said(text) == text


@pytest.mark.parametrize(
    "number", sorted(os.strerror(each) for each in (111, 113, 101, 110, 104, 13, 1, 5, 24, 2, 116))
)
def test_it_says_what_the_operating_system_says(number: str) -> None:
    assert left_over(number) == ""
    assert left_over(f"node-a:9797: {number}") == ""


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"",
            b"{",
            b"{]",
            b"[]",
            b'{"version": "x"}',
            b"nonsense",
            b'{"version":1}',
            b"\xff",
            b'{"version":1e99}',
        ),
        b'{"version":1,"exporter":{"node":"a"},"taken":0,"monotonic":0,"sections":[]}',
    ],
)
def test_it_says_what_the_decoder_says(body: bytes) -> None:
    with pytest.raises(wire.WireError) as caught:
        wire.decode(body)
    assert left_over(str(caught.value)) == ""


def test_it_says_why_a_name_is_unknown_and_a_certificate_refused() -> None:
    assert left_over(socket.gaierror(-2, "Name or service not known").strerror or "") == ""
    assert left_over("certificate verify failed: self-signed certificate (_ssl.c:1006)") == ""
    assert left_over(f"TLS with a:443: {ssl.SSLError(1, 'CERTIFICATE_VERIFY_FAILED').strerror}") == ""


def test_what_nobody_knows_stays_as_it_was_said() -> None:
    for text in ("", "the exporter of tomorrow says so", "a: b: c"):
        with translation.override("zh-hans"):
            assert causes.said(text) == text
    nested = "it is damaged: " * 50 + "x"
    with translation.override("zh-hans"):
        assert causes.said(nested).endswith("x")  # bounded, and nothing is lost


def test_every_kind_of_cause_has_a_remedy_for_every_reader() -> None:
    assert set(reading.REMEDIES) == set(causetexts.READING)
    assert {kind for kind, _reader in reading.BY_READER} <= set(causetexts.READING)
    used = set()
    for name in source.tracked():
        if name.startswith("numaagent/") and name.endswith(".py"):
            used |= set(
                re.findall(r'(?:\.reader\(|problems\.note\(|READER = )"([a-z-]+)"', (ROOT / name).read_text())
            )
    assert used == set(reading.READERS)


@pytest.mark.parametrize(
    ("reader", "cause", "code", "remedy"),
    [
        ("topology", "it does not exist", "missing", "/sys"),
        (
            "devices",
            "no right to read it: run the exporter as root, or give its user the right",
            "no-right",
            "uid 0",
        ),
        (
            "cpu-state",
            "it is damaged: JSON is malformed: invalid character (byte 0)",
            "damaged",
            "drain the node",
        ),
        ("topology", "it has 3 distances, the machine has 2 NUMA nodes: not used", "distances", "SLIT"),
        ("limits", "it is larger than 262144 bytes and was not used", "too-large", "that large"),
        (
            "podresources",
            "the kubelet did not answer within 2 s; see whether it is busy or stuck",
            "hangs",
            "journalctl",
        ),
        ("tomorrow", "something new", "", "exporter's log"),
    ],
)
def test_a_problem_tells_its_kind_and_what_to_do(reader: str, cause: str, code: str, remedy: str) -> None:
    shown = reading.problem(Problem(reader, "/a", cause, 3))
    assert (shown.code, shown.count) == (code, 3)
    assert remedy in shown.remedy


def test_msgspec_says_nothing_new() -> None:
    class Row(msgspec.Struct):
        a: int
        b: float = 0.0

    for text in (
        b'{"a":"x"}',
        b'{"a":1.5}',
        b"{}",
        b'{"a":1,"b":1e999}',
        b'{"a":1',
        b'{"a":1}x',
        b"[1]",
    ):
        with pytest.raises(msgspec.DecodeError) as caught:
            msgspec.json.decode(text, type=Row)
        assert left_over(f"it is damaged: {caught.value}") == ""
