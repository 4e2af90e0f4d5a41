"""A kubelet's file gets new settings, and every other byte of it stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numacore.change.editing import REMOVE, EditError, drop_in, edit, same
from numacore.kubelet.checks import documents

KUBEADM = """\
# written by kubeadm, then by hand
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous: {enabled: false}   # never
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
clusterDNS:
- 10.96.0.10
kind: KubeletConfiguration
systemReserved:   # measured in May
  memory: 1Gi   # for sshd
  cpu: '250m' # small
unknownField: kept
# topologyManagerPolicy: restricted
topologyManagerPolicy: none
shutdownGracePeriod: 0s

# the end
"""
REFERENCE = """\
# written by kubeadm, then by hand
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous: {enabled: false}   # never
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
clusterDNS:
- 10.96.0.10
kind: KubeletConfiguration
systemReserved:   # measured in May
  memory: 1Gi   # for sshd
  cpu: '500m' # small
  pid: "100"
unknownField: kept
# topologyManagerPolicy: restricted
topologyManagerPolicy: single-numa-node
shutdownGracePeriod: 0s
cpuManagerPolicy: static
cpuManagerPolicyOptions:
  full-pcpus-only: "true"
reservedMemory:
- numaNode: 0
  limits:
    memory: 1124Mi
reservedSystemCPUs: "0,16"

# the end
"""
WANTED: dict[str, Any] = {
    "topologyManagerPolicy": "single-numa-node",
    "systemReserved": {"memory": "1Gi", "cpu": "500m", "pid": "100"},
    "cpuManagerPolicy": "static",
    "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1124Mi"}}],
    "reservedSystemCPUs": "0,16",
}


def test_only_what_is_asked_for_changes() -> None:
    assert edit(KUBEADM, WANTED) == REFERENCE


def test_what_was_added_goes_again_and_every_byte_is_as_before() -> None:
    back: dict[str, Any] = {
        name: REMOVE for name in WANTED if name not in ("topologyManagerPolicy", "systemReserved")
    }
    back |= {"topologyManagerPolicy": "none", "systemReserved": {"memory": "1Gi", "cpu": "250m"}}
    assert edit(REFERENCE, back) == KUBEADM


def test_line_breaks_of_windows_stay() -> None:
    text = KUBEADM.replace("\n", "\r\n")
    assert edit(text, WANTED) == REFERENCE.replace("\n", "\r\n")


def test_a_file_without_a_last_line_break_stays_without() -> None:
    assert edit("kind: K\ntopologyManagerPolicy: none", {"cpuManagerPolicy": "static"}) == (
        "kind: K\ntopologyManagerPolicy: none\ncpuManagerPolicy: static"
    )


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("a: 1\nreservedSystemCPUs: 0-1 # two\n", {"reservedSystemCPUs": "0-3"}, 'a: 1\nreservedSystemCPUs: "0-3" # two\n'),
        ("a: 1\nsystemReserved:   # todo\nb: 2\n", {"systemReserved": {"cpu": "500m"}}, "a: 1\nsystemReserved: {cpu: 500m}   # todo\nb: 2\n"),
        ("a: 1\nsystemReserved: {}  # none\n", {"systemReserved": {"cpu": "1"}}, 'a: 1\nsystemReserved: {cpu: "1"}  # none\n'),
        ("a: 1\nsystemReserved: {cpu: 250m, memory: 1Gi} # x\n", {"systemReserved": {"cpu": "1500m", "memory": "1Gi"}},
         "a: 1\nsystemReserved: {cpu: 1500m, memory: 1Gi} # x\n"),
        ("a: 1\nsystemReserved:  # why\n  cpu: 250m\nb: 2\n", {"systemReserved": {}}, "a: 1\nsystemReserved: {}  # why\nb: 2\n"),
        ("a: 1\nreservedMemory: # why\n- numaNode: 0\n  limits: {memory: 1Gi} # big\n- numaNode: 1\n  limits:\n    memory: 1Gi # too\nb: 2\n",
         {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}, {"numaNode": 1, "limits": {"memory": "3Gi"}}]},
         "a: 1\nreservedMemory: # why\n- numaNode: 0\n  limits: {memory: 2Gi} # big\n- numaNode: 1\n  limits:\n    memory: 3Gi # too\nb: 2\n"),
        ("---\na: 1\ntopologyManagerPolicy: none\n...\n", {"topologyManagerPolicy": REMOVE, "cpuManagerPolicy": "static"}, "---\na: 1\ncpuManagerPolicy: static\n...\n"),
        ("  a: 1\n  b: 2\n", {"cpuManagerPolicy": "static"}, "  a: 1\n  b: 2\n  cpuManagerPolicy: static\n"),
        ("\ufeffa: 1\n", {"cpuManagerPolicy": "static"}, "\ufeffa: 1\ncpuManagerPolicy: static\n"),
        ("x: |\n  # not a comment\n  y\n# a comment\n", {"cpuManagerPolicy": "static"}, "x: |\n  # not a comment\n  y\ncpuManagerPolicy: static\n# a comment\n"),
        ("a: &one {x: 1}\nb: *one\n", {"cpuManagerPolicy": "static"}, "a: &one {x: 1}\nb: *one\ncpuManagerPolicy: static\n"),
        ('"cpuManagerPolicy" : "none"\nb: 1\n', {"cpuManagerPolicy": "static"}, '"cpuManagerPolicy" : "static"\nb: 1\n'),
    ],
)  # fmt: skip
def test_forms_that_people_write(before: str, keys: dict[str, Any], after: str) -> None:
    assert edit(before, keys) == after


def test_json_stays_json_with_its_indentation() -> None:
    before = '{\n\t"kind": "KubeletConfiguration",\n\t"systemReserved": {\n\t\t"memory": "1Gi"\n\t},\n\t"maxPods": 110\n}\n'
    after = (
        '{\n\t"kind": "KubeletConfiguration",\n\t"systemReserved": {\n\t\t"memory": "1Gi",\n\t\t"cpu": "500m"\n\t},\n'
        '\t"reservedMemory": [\n\t\t{\n\t\t\t"numaNode": 0,\n\t\t\t"limits": {\n\t\t\t\t"memory": "1Gi"\n\t\t\t}\n\t\t}\n\t]\n}\n'
    )
    keys = {
        "systemReserved": {"memory": "1Gi", "cpu": "500m"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        "maxPods": REMOVE,
    }
    assert edit(before, keys) == after
    assert edit('{"kind":"K","a":1}', {"a": REMOVE, "cpuManagerPolicy": "static"}) == (
        '{"kind":"K","cpuManagerPolicy":"static"}'
    )


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "duplicates", 3),
        ("a: 1\n---\nb: 2\n", "several-documents", 0),
        ("- a\n", "not-a-mapping", 0),
        ("# nothing\n", "empty", 0),
        ("", "empty", 0),
        ("a: [1\n", "syntax", 2),
        ('{"a": 1,}', "syntax", 1),
        ("a: 1\nsystemReserved: &r {cpu: 1}\nkubeReserved: *r\n", "alias", 2),
        ("x: &r {cpu: 1}\nsystemReserved: *r\n", "alias", 2),
        ("x: &r\n  cpuManagerPolicy: none\n  systemReserved: {cpu: 1}\n<<: *r\n", "form", 0),
        ("# flow\n{a: 1, b: 2}\n", "form", 0),
        ("? systemReserved\n: {cpu: 1}\n", "form", 0),
        ("a: '" + "x" * (1 << 20) + "'\n", "too-large", 0),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str, reason: str, line: int) -> None:
    with pytest.raises(EditError) as refused:
        edit(text, {"systemReserved": REMOVE if "?" in text else {"cpu": "2", "memory": "1Gi"}})
    assert (refused.value.reason, refused.value.line) == (reason, line)


def test_a_drop_in_is_whole_and_null_takes_away() -> None:
    made = drop_in(
        {
            "reservedSystemCPUs": None,
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true", "strict-cpu-reservation": None},
        }
    )
    assert made == (
        "# Written by numaweb, which owns this file: change the policy there, not here.\n"
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        'cpuManagerPolicyOptions:\n  full-pcpus-only: "true"\n  strict-cpu-reservation: null\nreservedSystemCPUs: null\n'
    )  # fmt: skip


# Files as people and programs write them: each entry with comments before it, beside it and in it.

NAMES = ["cpuManagerPolicy", "cpuManagerPolicyOptions", "kubeReserved", "memoryManagerPolicy", "reservedMemory", "reservedSystemCPUs",
         "systemReserved", "topologyManagerPolicy", "clusterDNS", "maxPods", "featureGates", "yes", "tlsMinVersion", "notAField"]  # fmt: skip
TEXTS = st.sampled_from(
    [
        "none",
        "static",
        "0-3",
        "0,8",
        "1",
        "0",
        "true",
        "1:30",
        "500m",
        "1Gi",
        "a b",
        "a: b",
        "x # y",
        "",
        "~",
        "it's",
        'say "x"',
        "é",
        "-",
        "\\",
    ]
)
COMMENTS = st.sampled_from(["", "", "", "# plain", "# key: value", "#- list", "# 注"])
SCALARS: st.SearchStrategy[Any] = TEXTS | st.booleans() | st.integers(-5, 1 << 40)
KEYS = st.sampled_from(["cpu", "memory", "full-pcpus-only", "memory.available", "pid", "1", "true"])
MAPS: st.SearchStrategy[Any] = st.dictionaries(KEYS, SCALARS, max_size=3)
VALUES: st.SearchStrategy[Any] = (
    SCALARS
    | MAPS
    | st.lists(SCALARS, max_size=3)
    | st.lists(st.fixed_dictionaries({"numaNode": st.integers(0, 3), "limits": MAPS}), min_size=1, max_size=3)
)


@st.composite
def entries(draw: st.DrawFn, name: str) -> tuple[str, Any]:
    """One top-level entry in one of the ways to write it, and its value."""
    value = draw(VALUES)
    before = "".join(f"{each}\n" for each in draw(st.lists(COMMENTS, max_size=2)))
    beside = draw(COMMENTS)
    beside = f"  {beside}" if beside else ""
    key = draw(st.sampled_from([name, f'"{name}"']))
    key = name if name != "yes" else '"yes"'
    if isinstance(value, dict | list) and value and draw(st.booleans()):
        step = draw(st.sampled_from([2, 4]))
        lines = _lines(draw, value, step if isinstance(value, dict) else draw(st.sampled_from([0, 2])), step)
        return f"{before}{key}:{beside}\n" + "".join(f"{each}\n" for each in lines), value
    return f"{before}{key}: {_short(draw, value)}{beside}\n", value


def _lines(draw: st.DrawFn, value: Any, column: int, step: int) -> list[str]:
    made: list[str] = []
    margin = " " * column
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        if comment := draw(COMMENTS):
            made.append(f"{margin}{comment}")
        head = "-" if isinstance(value, list) else f"{json.dumps(name)}:"
        if isinstance(each, dict | list) and each and draw(st.booleans()):
            inner = _lines(draw, each, column + 2, step)
            if head == "-" and not inner[0].lstrip().startswith("#"):
                made += [f"{margin}- {inner[0].lstrip()}", *inner[1:]]
                continue
            made += [f"{margin}{head}", *inner]
        else:
            beside = draw(COMMENTS)
            made.append(f"{margin}{head} {_short(draw, each)}" + (f" {beside}" if beside else ""))
    return made


def _short(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, str):
        plain = documents.read(f"a: {value}\n")
        ways = [json.dumps(value, ensure_ascii=False), "'" + value.replace("'", "''") + "'"]
        if plain.value == {"a": value} and value.isalnum():
            ways.append(value)
        return draw(st.sampled_from(ways))
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(name)}: {_short(draw, each)}" for name, each in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_short(draw, each) for each in value) + "]"
    return json.dumps(value)


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, tuple[str, Any]], str, str]:
    """The entries by name, what stands after them, and the file's line break."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=7, unique=True))
    made = {name: draw(entries(name)) for name in names}
    made["kind"] = ("kind: KubeletConfiguration\n", "KubeletConfiguration")
    tail = draw(st.sampled_from(["", "\n", "# end\n", "\n\n# end\n", "...\n"]))
    return made, tail, draw(st.sampled_from(["\n", "\r\n"]))


CHANGES = st.dictionaries(st.sampled_from(NAMES[:8]), st.just(REMOVE) | VALUES, min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(file=files(), keys=CHANGES)
def test_any_file_says_what_was_meant_and_keeps_the_rest(
    file: tuple[dict[str, tuple[str, Any]], str, str], keys: dict[str, Any]
) -> None:
    made, tail, ending = file
    text = ("".join(chunk for chunk, _ in made.values()) + tail).replace("\n", ending)
    values = {name: value for name, (_, value) in made.items()}
    assert documents.read(text).value == values, "the test's own writing"

    edited = edit(text, keys)

    found = documents.read(edited)
    intended = {name: value for name, value in (values | keys).items() if value is not REMOVE}
    assert found.value == intended
    assert not found.fault
    assert edit(edited, keys) == edited, "once more changes nothing"
    assert edit(text, {name: value for name, value in values.items() if name != "kind"}) == text
    at = 0
    for name, (chunk, value) in made.items():
        kept = chunk if name not in keys or same(keys[name], value) else _comments(chunk)
        found_at = edited.find(kept.replace("\n", ending), at)
        assert found_at >= 0, f"{name} did not stay as it was:\n{text}\n->\n{edited}"
        at = found_at + len(kept)
    assert edited.endswith(tail.replace("\n", ending))
    assert ending == "\n" or edited.count("\n") == edited.count("\r\n")


def _comments(chunk: str) -> str:
    """The lines of comment before an entry."""
    lines = chunk.splitlines(keepends=True)
    return "".join(lines[: next(at for at, line in enumerate(lines) if line[0] not in "#\n")])


JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(
    values=st.dictionaries(st.sampled_from(NAMES), JSON_VALUES, max_size=6),
    keys=st.dictionaries(st.sampled_from(NAMES[:8]), st.just(REMOVE) | JSON_VALUES, min_size=1, max_size=4),
    indent=st.sampled_from([None, 2, "\t"]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_any_json_stays_as_its_writer_wrote_it(
    values: dict[str, Any], keys: dict[str, Any], indent: int | str | None, ending: str
) -> None:
    before = {"kind": "KubeletConfiguration", **values}
    separators = (",", ":") if indent is None else None
    text = json.dumps(before, indent=indent, ensure_ascii=False, separators=separators).replace("\n", ending)
    edited = edit(text, keys)
    intended = {name: value for name, value in (before | keys).items() if value is not REMOVE}
    assert json.loads(edited) == intended
    wanted = in_order(before, intended)
    as_written = json.dumps(wanted, indent=indent, ensure_ascii=False, separators=separators).replace(
        "\n", ending
    )
    assert edited == as_written
    assert edit(edited, keys) == edited


def in_order(old: Any, new: Any) -> Any:
    """The new value with its keys where the old one had them, what came on behind them."""
    if same(old, new):
        return old
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    kept = {name: in_order(old[name], new[name]) for name in old if name in new}
    return kept | {name: value for name, value in new.items() if name not in old}
