"""The text of a file as the kubelet's YAML library reads it."""

from typing import Any

import pytest

from numacore.kubelet.checks.documents import MAX_BYTES, MAX_DEPTH, read, scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("static", "static"), ("yes", True), ("off", False), ("y", True), ("N", False), ("~", None), ("null", None), ("", None),
        ("0", 0), ("010", 8), ("0x10", 16), ("0b11", 3), ("08", 8.0), ("1_000", 1000), ("-5", -5), ("+5", 5), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0),
        ("0-3", "0-3"), ("0,8", "0,8"), ("1:30", "1:30"), ("2026-01-01", "2026-01-01"), ("1Gi", "1Gi"), ("100Mi", "100Mi"), ("10%", "10%"), (".", "."), ("-", "-"),
    ],
)  # fmt: skip
def test_what_a_plain_scalar_means(text: str, value: Any) -> None:
    found = scalar(text)
    assert (found, type(found)) == (value, type(value))


def test_quotes_and_tags_make_texts() -> None:
    assert read("a: \"0\"\nb: 'true'\nc: !!str 5\n").value == {"a": "0", "b": "true", "c": "5"}


def test_keys_are_texts_as_in_json() -> None:
    assert read("1: a\ntrue: b\nyes: c\n").value == {"1": "a", "true": "c"}


def test_a_key_that_stands_twice_is_named_with_its_line_and_the_last_wins() -> None:
    found = read("a:\n  b: 1\n  b: 2\nc: 3\na: 4\n")
    assert found.value == {"a": 4, "c": 3}
    assert found.duplicates == (("a.b", 3), ("a", 5))


def test_merges_and_aliases() -> None:
    assert read("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\ne: *x\n").value == {
        "a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": {"b": 1, "c": 2}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"), [("a: [1", 1), ("a: 1\n\tb: 2\n", 2), ("a: b: c\n", 1), ("? [1]\n: 2\n", 1)]
)
def test_broken_syntax_names_its_line(text: str, line: int) -> None:
    found = read(text)
    assert found.fault
    assert abs(found.line - line) <= 1


def test_what_begins_with_a_brace_is_json() -> None:
    assert read('{"a": 1, "a": 2}').duplicates == (("a", 0),)
    assert read("{a: 1}").fault


def test_only_the_first_document_counts() -> None:
    found = read("a: 1\n---\nb: 2\n")
    assert (found.value, found.documents) == ({"a": 1}, 2)


def test_no_text_is_too_much() -> None:
    laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    assert "values" in read(laughs).fault
    assert "nested" in read("a: " + "[" * (MAX_DEPTH + 5) + "]" * (MAX_DEPTH + 5)).fault
    assert "nested" in read("a: &a [*a]\n").fault
    assert "bytes" in read("#" * (MAX_BYTES + 1)).fault
