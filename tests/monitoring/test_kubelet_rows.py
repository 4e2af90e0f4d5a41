"""What is asked of a kubelet beside what the kubelet itself says is in force."""

from __future__ import annotations

import pytest

from monitoring.figures.kubelet import Row, rows
from numacore.kubeletstate import Kubelet, Setting


def row(field: str, kubelet: Kubelet, configz: dict[str, object] | None) -> Row:
    return next(each for each in rows(kubelet, None, (), configz) if each.field == field)


def asking(**settings: object) -> Kubelet:
    return Kubelet(present=True, settings={name: Setting(value, "file") for name, value in settings.items()})


@pytest.mark.parametrize(
    ("asked", "force", "differs"),
    [
        ("single-numa-node", "single-numa-node", False),
        ("single-numa-node", "none", True),
        ({"memory.available": "1Gi"}, {"memory.available": "1Gi"}, False),
        ({"memory.available": "1Gi"}, {"memory.available": "100Mi"}, True),
        (
            [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            [{"limits": {"memory": "1Gi"}, "numaNode": 0}],
            False,
        ),
    ],
)
def test_a_difference_is_shown_as_such(asked: object, force: object, differs: bool) -> None:
    found = row("evictionHard", asking(evictionHard=asked), {"evictionHard": force})
    assert found.differs is differs


def test_a_field_in_the_wrong_case_is_seen_by_what_is_in_force() -> None:
    kubelet = asking(topologymanagerpolicy="single-numa-node")
    found = row("topologyManagerPolicy", kubelet, {"topologyManagerPolicy": "none"})
    assert (found.asked, found.in_force, found.differs) == ("none", "none", False)
    other = row("topologymanagerpolicy", kubelet, {"topologyManagerPolicy": "none"})
    assert (other.asked, other.in_force) == ("single-numa-node", "")


def test_a_default_of_the_kubelet_that_nobody_asked_for_is_no_difference() -> None:
    found = row("evictionHard", asking(), {"evictionHard": {"memory.available": "100Mi"}})
    assert (found.in_force, found.differs) == ('{"memory.available": "100Mi"}', False)


def test_what_the_kubelet_leaves_out_stays_unknown() -> None:
    found = row("reservedSystemCPUs", asking(), {"topologyManagerPolicy": "none"})
    assert (found.in_force, found.cause) == ("", "the kubelet does not tell it")


def test_without_the_kubelets_word_nothing_changes() -> None:
    found = row("topologyManagerPolicy", asking(topologyManagerPolicy="restricted"), None)
    assert (found.in_force, found.cause, found.differs) == ("", "no file on the node tells it", False)
