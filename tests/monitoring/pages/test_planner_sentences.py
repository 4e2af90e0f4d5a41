"""Every code that the engine, the manifest reader or the linter may give has a sentence in each language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest
from django.utils import translation

from monitoring.figures import manifests, verdicts
from monitoring.figures.sentences import Form
from numacore import lint
from numacore.diagnosis import Reason
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
