"""Every code that stands in a rollout has a sentence with its values in both languages: the planner's, the engine's, the applier's, the checks'."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, cast, get_args

import pytest
from django.utils import translation

from numacore.change import order
from numacore.diagnosis import Reason
from numacore.kubelet.checks.findings import Finding, Severity
from policies import plan as plans
from policies.models import Act
from policies.services.rollout import causes, error
from policies.words import ACTIONS, findings
from policies.words import rollout as words
from tests.numacore.kubelet.checks.test_checks import CRASHES, FATAL, SILENT, checked, the
from tests.servers import ROOT

CODE = re.compile(r"\| `([a-z0-9-]+)` \|")
MARKED = re.compile(r"\{(\w+)\}")


def told_by_the_applier() -> Iterator[tuple[str, set[str]]]:
    """Codes in the applier's sources, with the names of their values."""
    for file in sorted((ROOT / "numaagent/applier").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("RefusedError", "FailedError"):
                code = node.args[0]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield code.value, {each.arg for each in node.keywords if each.arg}
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason":
                code = node.args[0]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield code.value, set()


def named(code: str) -> set[str]:
    """Values that a sentence and its remedy name."""
    asked = Asked()
    for each in words.FORMS[code]:
        if each:
            cast(Any, each) % asked
    return set(asked.names)


class Asked(dict[str, object]):
    """Values for a sentence, which note their names. What decides between singular and plural is asked for as a number."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __missing__(self, key: str) -> int:
        if not key.startswith("number of "):
            self.names.append(key)
        return 2


def test_everything_that_an_applier_says_has_a_sentence() -> None:
    told = dict(told_by_the_applier())
    assert len(told) > 35
    assert set(told) | {"dbus-refused", "no-systemd"} == set(words.APPLIER) | {"no-systemd"}


def test_everything_that_the_engine_says_has_a_sentence() -> None:
    assert set(causes.CODES) - {"order"} == set(words.ENGINE)
    assert "order" in words.FORMS


def noted() -> dict[str, set[str]]:
    """Values of the engine's codes, as its list notes them: a word in braces stands for a value."""
    text = (ROOT / "policies/services/rollout/causes.py").read_text()
    lines = re.findall(r'^    "([a-z-]+)",(?:  # (.*))?$', text, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for code, note in lines:
        found.setdefault(code, set()).update(MARKED.findall(note or ""))
    return found


def test_sentences_of_the_engine_name_no_value_that_it_does_not_give() -> None:
    known = noted()
    assert set(known) == set(causes.CODES)
    shared = {"off", "nothing", "order"}
    wrong = {code: named(code) - known[code] for code in known if code not in shared}
    assert {code: names for code, names in wrong.items() if names} == {}


def test_sentences_of_the_applier_name_no_value_that_it_never_gives() -> None:
    given: dict[str, set[str]] = {}
    for code, names in told_by_the_applier():
        given.setdefault(code, set()).update(names)
    given["dbus-refused"] = given["no-systemd"] = {"call"}
    given["system"] = {"error"}
    wrong = {code: named(code) - given[code] for code in words.APPLIER if code != "order"}
    assert {code: names for code, names in wrong.items() if names} == {}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_sentence_is_whole_in_each_language(language: str) -> None:
    with translation.override(language):
        for code in words.FORMS:
            values: dict[str, str | int | float] = dict.fromkeys(named(code), "value")
            said = words.said(Reason(code, values))
            assert said.text, code
            assert "%(" not in said.text + said.remedy, code
            assert "?" not in said.text, code
            if language != "en":
                assert re.search(r"[\u4e00-\u9fff]", said.text), code


def test_a_code_of_a_newer_applier_is_shown_as_it_is() -> None:
    assert words.said(Reason("from-the-future")).text == "Unknown reason “from-the-future”."


def test_why_a_node_could_not_go_back_is_said_in_words() -> None:
    assert "systemd cannot be reached" in words.said(Reason("undo-failed", {"why": "no-dbus"})).text
    assert "from-the-future" in words.said(Reason("undo-failed", {"why": "from-the-future"})).text


def test_every_refusal_to_do_something_has_a_sentence_and_a_remedy() -> None:
    assert set(get_args(error.Obstacle)) | {"number"} == set(words.OBSTACLES)
    for code in words.OBSTACLES:
        text, remedy = words.obstacle(code, "cause")
        assert text.endswith("cause")
        assert remedy


def test_every_fault_of_an_option_has_a_sentence() -> None:
    source = (ROOT / "policies/plan.py").read_text()
    told = set(re.findall(r'OptionFault\([^,]+, "([a-z-]+)"\)', source))
    told |= set(re.findall(r'\("\w+", "([a-z-]+)", [^"]', source))
    assert told == set(words.FAULTS)
    assert "10%" in words.option_fault("no-amount")


def test_every_kind_of_act_has_a_word() -> None:
    kinds = re.split(r"[,.\s]+", "cordon, evict, job, tidy, uncordon, note.")
    assert set(filter(None, kinds)) == set(words.ACTS)
    assert words.act("new-kind") == "new-kind"
    assert Act.State("begun").label


def test_every_answer_of_an_applier_has_a_word() -> None:
    assert set(get_args(order.Outcome)) == set(words.ANSWERS)
    assert "went back by itself" in words.said(Reason("answered", {"outcome": "restored", "why": ""})).text


def test_options_are_told_in_words() -> None:
    window = {"start": "22:00", "end": "02:00", "zone": "UTC", "days": list(plans.DAYS)}
    told = dict(words.options({"batch": "10%", "pause_between": 90, "drain_within": 7200, "window": window}))
    assert told["Nodes in a batch"] == "10%"
    assert told["Pause between batches"] == "90 seconds"
    assert told["Drain each node before"] == "yes, within 2 hours a node"
    assert told["Maintenance window"] == "22:00–02:00 UTC, every day"
    assert dict(words.options({"drain": False}))["Drain each node before"] == "no"


def test_what_is_written_into_the_audit_log_has_a_name() -> None:
    source = (ROOT / "policies/services/rollout/telling.py").read_text()
    told = set(re.findall(r'^ACT\w* = "(.+)"$', source, re.MULTILINE))
    assert told
    assert told <= set(ACTIONS)


# ---------------------------------------------------------------- findings of the checks


@pytest.mark.parametrize(
    ("heading", "known"), [("Reasons", findings.REASONS), ("Remedies", findings.REMEDIES)]
)
def test_every_finding_has_the_sentence_that_the_document_has(heading: str, known: dict[str, object]) -> None:
    text = (ROOT / "docs/en/kubelet-settings.md").read_text()
    part = next(each for each in text.split("\n## ") if each.startswith(heading))
    assert set(CODE.findall(part)) == set(known)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_finding_is_shown_in_each_language_with_its_remedy(language: str) -> None:
    finding = Finding(
        severity="silent",
        stage="load",
        field="topologymanagerpolicy",
        reason=Reason("wrong-case", {"field": "topologyManagerPolicy"}),
        remedy=Reason("rename-field", {"field": "topologyManagerPolicy"}),
        words="unknown field",
    )
    with translation.override(language):
        found = findings.shown(finding)
    assert "topologyManagerPolicy" in found.text
    assert "topologyManagerPolicy" in found.remedy
    assert found.words == "unknown field"
    assert ("ignored" in found.text) == (language == "en")


EVERY_RULE = [
    *[(text, code) for text, code, *_ in FATAL],
    *[(text, code) for text, _, code, _ in SILENT],
    *CRASHES,
]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_no_finding_of_any_rule_leaves_a_place_empty(language: str) -> None:
    with translation.override(language):
        for text, code in EVERY_RULE:
            found = findings.shown(the(checked(text), code))
            assert "?" not in found.text + found.remedy, code


def test_a_field_that_resembles_none_is_not_compared_with_one() -> None:
    finding = Finding(
        severity="silent",
        stage="load",
        field="x",
        reason=Reason("unknown-field"),
        remedy=Reason("remove-field"),
    )
    assert findings.shown(finding).text == "The kubelet does not know this field and ignores it."


def test_every_severity_has_a_word() -> None:
    assert set(get_args(Severity)) == set(findings.SEVERITIES)
