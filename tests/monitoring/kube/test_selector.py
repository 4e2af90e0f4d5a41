"""A label selector means the nodes that it means in Kubernetes, and one that Kubernetes refuses says which part is wrong."""

import pytest

from monitoring.kube import selector
from monitoring.kube.selector import SelectorError
from tests.labelselectors import MEANT, NODES, REFUSED


@pytest.mark.parametrize("text", MEANT)
def test_it_means_the_same_nodes(text: str) -> None:
    found = selector.parse(text)
    assert {name for name, labels in NODES.items() if found.holds(labels)} == MEANT[text]


@pytest.mark.parametrize("text", REFUSED)
def test_a_part_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        selector.parse(text)
    assert caught.value.code == REFUSED[text]


def test_nothing_is_no_selector_for_everybody() -> None:
    for text in ("", "   "):
        with pytest.raises(SelectorError) as caught:
            selector.parse(text)
        assert caught.value.code == "empty"


def test_an_endless_text_is_refused_before_it_is_read() -> None:
    with pytest.raises(SelectorError) as caught:
        selector.parse("a," * selector.LONGEST)
    assert caught.value.code == "too-long"


def test_numbers_beyond_64_bits_are_no_numbers() -> None:
    assert not selector.parse("cores>1").holds({"cores": "9" * 30})
    with pytest.raises(SelectorError):
        selector.parse(f"cores>{'9' * 30}")
