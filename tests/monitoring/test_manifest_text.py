"""Pasted text as documents: YAML and JSON are read; what is rubbish, huge or a trap is refused by name, in no time."""

from __future__ import annotations

import json

import pytest

from monitoring.sources import manifest
from numacore.manifest import ManifestError

POD = "kind: Pod\nspec: {containers: [{name: web, resources: {limits: {cpu: 2}}}]}\n"


def bomb(merge: bool = False) -> str:
    """A few lines that stand for 9 to the power of 8 values."""
    lines = ["a: &a {k: 1}" if merge else "a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, now in zip("abcdefgh", "bcdefghi", strict=True):
        nine = ", ".join([f"*{before}"] * 9)
        lines.append(f"{now}: &{now} {{<<: [{nine}]}}" if merge else f"{now}: &{now} [{nine}]")
    return "\n".join(lines)


def refusals(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(ManifestError) as caught:
        manifest.read(text)
    return [(each.document, each.field, each.reason.code) for each in caught.value.faults]


def test_it_reads_several_documents() -> None:
    assert [group.kind for group in manifest.read(f"{POD}---\nkind: Service\n---\n{POD}")] == ["Pod", "Pod"]


def test_it_reads_json_with_tabs() -> None:
    document = {"kind": "Pod", "spec": {"containers": [{"name": "web"}]}}
    assert manifest.read(json.dumps(document, indent="\t"))[0].pod.containers[0].name == "web"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("a: b: c", "not-yaml"),
        ("kind: Pod\n\tspec: 1", "not-yaml"),
        ("a: \x00", "not-yaml"),
        ("!!python/object/apply:os.system ['id']", "not-yaml"),
        ("? [a]\n: b", "not-yaml"),
        ("[" * 5000, "not-yaml"),
        ("[" * 100 + "]" * 100, "too-deep"),
        ("a: &a x\nb: [" + "*a, " * 3000 + "]", "too-many-aliases"),
        (bomb(), "too-many-nodes"),
        (bomb(merge=True), "too-many-nodes"),
        ("a: &x [*x]", "too-many-nodes"),
        ("x" * (manifest.MOST_CHARACTERS + 1), "too-long"),
    ],
    ids=lambda each: each[:18],
)
def test_it_refuses(text: str, code: str) -> None:
    assert [each for _, _, each in refusals(text)] == [code]


def test_it_names_the_line_of_what_is_no_yaml() -> None:
    with pytest.raises(ManifestError) as caught:
        manifest.read("kind: Pod\nspec: {\n")
    assert caught.value.faults[0].reason.values["line"] == 3


def test_it_names_a_key_that_stands_twice_with_its_document_and_line() -> None:
    text = f"{POD}---\nkind: Pod\nspec:\n  containers: [{{name: a}}]\n  containers: [{{name: b}}]\n"
    assert refusals(text) == [(2, "spec.containers", "duplicate-key")]


def test_a_number_longer_than_any_amount_is_no_number() -> None:
    text = "kind: Pod\nspec: {containers: [{name: a, resources: {limits: {cpu: 0x" + "f" * 6000 + "}}}]}"
    assert refusals(text) == [(1, "spec.containers[0].resources.limits.cpu", "no-quantity")]


@pytest.mark.parametrize("value", ["1:30", "1:30.5", "2001-12-14", "2001-99-99"])
def test_times_and_dates_are_texts_as_for_kubernetes(value: str) -> None:
    text = f"kind: Job\nspec: {{parallelism: {value}, template: {{spec: {{containers: [{{name: a}}]}}}}}}"
    with pytest.raises(ManifestError) as caught:
        manifest.read(text)
    (fault,) = caught.value.faults
    assert (fault.field, fault.reason.values["found"]) == ("spec.parallelism", repr(value))


def test_a_key_that_a_merge_brings_along_may_be_overwritten() -> None:
    text = "base: &base {kind: Job}\n<<: *base\nkind: Pod\nspec: {containers: [{name: a}]}"
    assert manifest.read(text)[0].kind == "Pod"
