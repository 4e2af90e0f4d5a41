"""Every code that a part of the product may send to a page has a sentence there."""

import ast

import pytest
from django.utils import translation

from monitoring.figures import attention, sentences
from monitoring.models import NodeEvent
from monitoring.selectors import Attention, Component
from monitoring.sources import failures
from numacore.diagnosis import Reason
from tests.servers import ROOT


def codes(file: str, name: str, argument: int = 0) -> set[str]:
    """Texts that a source file gives as an argument to a call of that name."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == name:
            for each in ast.walk(node.args[argument]) if len(node.args) > argument else ():
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    found.add(each.value)
    return found


def test_it_has_a_sentence_for_every_reason_of_the_core() -> None:
    known = codes("numacore/diagnosis.py", "Reason") | codes("numacore/report.py", "Reason")
    words = {"Guaranteed", "narrowed"}  # compared with in the same expressions
    assert known - words <= set(sentences.REASONS)
    assert len(known) >= 17


def test_it_fills_in_what_the_reason_knows() -> None:
    assert (
        sentences.reason(Reason("pinned", {"cpus": 8})).text
        == "Pinned: the kubelet gave it 8 CPUs of its own."
    )
    assert "is none, which pins nobody" in sentences.reason(Reason("policy-none", {"policy": "none"})).text


def test_it_leaves_no_place_empty_when_a_value_is_missing() -> None:
    for code in sentences.REASONS:
        said = sentences.spoken(code)
        assert "%(" not in said.text + said.remedy


def test_it_names_a_code_from_a_newer_core() -> None:
    assert sentences.spoken("moon-phase").text == "Unknown reason “moon-phase”."


def test_it_has_a_remedy_for_every_way_in_which_an_exporter_fails() -> None:
    wanted = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, str)}
    assert wanted <= set(sentences.REMEDIES)


def test_it_has_a_sentence_for_everything_that_needs_attention() -> None:
    wanted = codes("monitoring/selectors/attention.py", "Attention", 1)
    assert "container-crossing" in wanted
    assert wanted - {"node-", "container-crossing"} <= set(attention.NOTES)
    assert {"node-stale", "node-no-data"} <= set(attention.NOTES)


def test_it_has_a_sentence_for_every_cause_of_old_data() -> None:
    wanted = codes("monitoring/selectors/nodestate.py", "_stored", 3)
    text = (ROOT / "monitoring/selectors/nodestate.py").read_text()
    for code in (
        "endpoint-missing",
        "cluster-disabled",
        "endpoint-disabled",
        "endpoint-failing",
        "not-collected",
    ):
        assert code in text
        assert code in sentences.CAUSES
    assert wanted <= set(sentences.CAUSES)


def test_it_tells_what_crosses_how_bad_and_where() -> None:
    values = {"container": "shop/cart/main", "cpu": True, "memory": True, "device": None, "cost": 1.384}
    (told,) = attention.told([Attention("danger", "container-crossing", values, "node-07", "abc")])
    assert told.text == "shop/cart/main"
    assert told.detail == "Crosses with: CPU, memory. About 1.38 times the local access cost."
    assert (told.node, told.container_id, told.tab) == ("node-07", "abc", "containers")


def test_it_tells_how_each_part_of_the_service_does() -> None:
    parts = [
        Component("exporter", "failing", {"ok": 3, "total": 5}),
        Component("prometheus", "failing", {}, "connection refused"),
        Component("redis", "absent"),
        Component("database", "ok", {"kind": "postgresql"}),
    ]
    assert [each.detail for each in attention.components(parts)] == [
        "3 of 5 answer",
        "connection refused",
        "not needed here",
        "PostgreSQL",
    ]


@pytest.mark.parametrize("code", NodeEvent.Code.values)
def test_it_names_every_event_in_both_languages(code: str) -> None:
    english = str(NodeEvent.Code(code).label)
    with translation.override("zh-hans"):
        assert str(NodeEvent.Code(code).label) != english


@pytest.mark.parametrize("code", list(sentences.EVENTS))
def test_it_says_of_an_event_only_what_is_known(code: str) -> None:
    assert sentences.event(code, {}) == ""
    assert "%(" not in sentences.event(code, {"something": "else", "version": None})


def test_it_speaks_chinese() -> None:
    with translation.override("zh-hans"):
        assert (
            sentences.reason(Reason("pinned", {"cpus": 8})).text
            == "已绑核：kubelet 为它分配了 8 个独占 CPU。"
        )


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason("pinned", {"cpus": 1}), "Pinned: the kubelet gave it 1 CPU of its own."),
        (Reason("pinned", {"cpus": 21}), "Pinned: the kubelet gave it 21 CPUs of its own."),
        (Reason("pinned", {}), "Pinned: the kubelet gave it ? CPUs of its own."),
    ],
)
def test_one_of_something_is_not_several(reason: Reason, text: str) -> None:
    assert sentences.reason(reason).text == text
