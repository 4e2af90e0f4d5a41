"""Every code that the engine, the manifest reader or the linter may give has a sentence in each language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

import pytest
from django.utils import translation

from monitoring.figures import evidence, manifests, sentences, verdicts
from monitoring.figures.sentences import Form
from numacore import lint
from numacore.diagnosis import Reason
from numacore.kubelet.advice import Fit
from numacore.volcano import plugin
from numacore.whatif import disagreement, explaining
from tests.monitoring.pages.test_sentences import codes

FORMS = (verdicts.ALL, verdicts.VOLCANO, verdicts.CAUSES, manifests.FAULTS, manifests.FINDINGS)


def test_every_refusal_of_the_kubelet_has_one() -> None:
    by_words = {code for code, _form in explaining._FORMS}
    built = {"numa-lacks", "numa-set-lacks", "kubelet-panics", "kubelet-hangs"}
    known = codes("numacore/whatif/explaining.py", "Reason") | by_words | built
    known -= {"kubelet-"}
    assert "not-enough-free" in known
    assert known - {"code"} <= set(verdicts.REFUSALS)


def test_every_node_that_cannot_be_judged_and_every_assumption_has_one() -> None:
    known = codes("numacore/whatif/candidate.py", "Reason") | codes("numacore/whatif/judging.py", "Reason")
    known |= codes("monitoring/selectors/planning/nodes.py", "Reason")
    assert {"no-data", "policy-pending", "version-assumed", "would-not-start"} <= known
    assert known <= set(verdicts.ALL)
    assert codes("monitoring/selectors/planning/plan.py", "Reason") <= set(verdicts.REFUSALS)
    assert codes("monitoring/figures/plan.py", "Reason") <= set(verdicts.NOTES)


def test_every_verdict_of_volcano_has_one() -> None:
    causes = {each or "fits" for each in get_args(plugin.Cause)}
    skipped = {f"skipped-{each}" for each in get_args(plugin.Skipped) if each}
    assert causes | skipped == set(verdicts.VOLCANO)


def test_every_cause_of_a_disagreement_has_one() -> None:
    assert set(get_args(disagreement.Cause)) == set(verdicts.CAUSES)


def test_every_fault_of_a_manifest_has_one() -> None:
    known = codes("numacore/manifest.py", "Reason") | codes("numacore/manifest.py", "fault", 1)
    known |= codes("monitoring/sources/manifest.py", "Reason")
    assert len(known) > 20
    assert known == set(manifests.FAULTS)


def test_every_finding_of_the_linter_has_one() -> None:
    chosen = {"policy-case", "policy-unknown", "sidecar-fraction", "cpu-fraction"}
    known = codes("numacore/lint.py", "Reason") | chosen
    assert len(known) > 10
    assert known == set(manifests.FINDINGS)


@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_no_sentence_leaves_a_place_empty(forms: Mapping[str, Form], language: str) -> None:
    with translation.override(language):
        for code in forms:
            said = verdicts.said(forms, code, {})
            assert said.text
            assert "%(" not in said.text + said.remedy


def test_a_code_from_a_newer_engine_is_shown_as_it_is() -> None:
    assert verdicts.reason(Reason("moon-phase")).text == "Unknown reason “moon-phase”."


def test_amounts_are_in_the_unit_of_their_resource() -> None:
    values: dict[str, str | int | float] = {
        "container": "web",
        "resource": "memory",
        "numa": "3",
        "policy": "restricted",
    }
    said = verdicts.reason(
        Reason("numa-lacks", values | {"asked": 8 << 30, "free": 1536 << 20, "total": 16 << 30})
    )
    assert "Container “web” must fit into one NUMA node (restricted)." in said.text
    assert "1.5 GiB of 16.0 GiB memory are free there, 8.0 GiB are asked for." in said.text


def test_findings_of_the_linter_say_what_and_where() -> None:
    said = manifests.finding(
        lint.Finding(
            "error",
            "spec",
            Reason("larger-than-numa", {"container": "web", "resource": "cpu", "asked": "40", "most": 32}),
        )
    )
    assert said.text == "Container “web” asks for 40 CPUs; the largest NUMA node has 32 to give."


SEVERAL_OF_ONE = re.compile(r"(?<![0-9.])1 (?:CPUs|NUMA nodes|containers|pods|threads|are\b)")
NEVER_ONE = {"memory-lacks", "cpu-fraction", "sidecar-fraction", "fraction"}
"""Bytes in units, and parts of CPUs."""
AT_LEAST_TWO = {"per_core": 2, "most": 2, "fewest": 1, "total": 2}


@pytest.mark.parametrize("forms", [*FORMS, sentences.REASONS])
def test_one_of_anything_is_not_several(forms: Mapping[str, Form]) -> None:
    """Where everything that may be one is one."""
    names = ("cpus", "asked", "free", "count", "number", "least", "pods", "nodes")
    for code in forms.keys() - NEVER_ONE:
        said = verdicts.said(forms, code, dict.fromkeys(names, 1) | AT_LEAST_TWO | {"resource": "cpu"})
        assert not SEVERAL_OF_ONE.search(said.text + said.remedy), code


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            Reason("scheduler-short", {"resource": "cpu", "asked": 1, "free": 0}),
            "Not enough left on the whole node: 1 CPU is asked for; not requested yet: 0.",
        ),
        (
            Reason("scheduler-short", {"resource": "cpu", "asked": 1.5, "free": 1}),
            "Not enough left on the whole node: 1.50 CPUs are asked for; not requested yet: 1.",
        ),
        (
            Reason("cpus-short", {"container": "web", "asked": 1, "free": 0}),
            "Container “web” asks for 1 CPU of its own; 0 can still be given away.",
        ),
        (
            Reason("cpus-short", {"container": "web", "asked": 11, "free": 1}),
            "Container “web” asks for 11 CPUs of its own; 1 can still be given away.",
        ),
        (
            Reason(
                "devices-short", {"container": "web", "resource": "example.com/gpu", "asked": 2, "free": 1}
            ),
            "Container “web” asks for 2 × example.com/gpu; 1 is free.",
        ),
        (
            Reason("requests-unknown", {"count": 1}),
            "The requests of 1 container are unknown to its node; the scheduler may count more than is counted here.",
        ),
    ],
)
def test_a_sentence_with_a_number_is_grammatical(reason: Reason, text: str) -> None:
    assert verdicts.reason(reason).text == text


def test_advice_for_one_cpu_speaks_of_one() -> None:
    assert evidence.advice(Fit("request", "cpu", "1", "web", "1"), {}) == (
        "Container “web” asks for 1 CPU; 1 more would be refused."
    )
    assert evidence.advice(Fit("request", "cpu", "2", "", "1"), {}) == (
        "The pod as a whole asks for 2 CPUs; 1 more would be refused."
    )


def test_pods_that_would_have_to_leave_beyond_the_first_few_are_counted() -> None:
    leaving = [Fit("leaving", "pod", f"p{at}") for at in range(evidence.MOST_LEAVING + 2)]
    assert evidence.each_alone(leaving[:-1], {})[-1] == "and 1 other pod, alone"
    assert evidence.each_alone(leaving, {})[-1] == "and 2 other pods, each alone"
    assert evidence.each_alone(leaving[:-2], {})[-1] == f"The pod p{evidence.MOST_LEAVING - 1} leaves."
