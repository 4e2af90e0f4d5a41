"""Every fault that a wish can have is a sentence with its values, and every switch of the kubelet is explained."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from numacore.change import wish
from numacore.change.wish import Wish
from numacore.kubelet import topology_manager
from policies.forms import WishForm
from policies.words import policy as words

FAULTY: dict[str, dict[str, Any]] = {
    "wish-choice": {"topology_policy": "strict"},
    "wish-max-nodes": {"max_allowable_numa_nodes": 4},
    "wish-closest-without-policy": {"topology_policy": "none", "prefer_closest": True},
    "wish-option-unknown": {"cpu_options": {"full-cpus": True}},
    "wish-options-exclude": {
        "cpu_options": {"distribute-cpus-across-numa": True, "distribute-cpus-across-cores": True}
    },
    "wish-options-without-static": {"cpu_policy": "none", "cpu_options": {"full-pcpus-only": True}},
    "wish-socket-single-numa": {
        "topology_policy": "single-numa-node",
        "cpu_options": {"align-by-socket": True},
    },
    "wish-cpus": {"reserved_cpus": "3-"},
    "wish-amount": {"kube_reserved_cpu": "lots"},
    "wish-memory-without-static": {"memory_policy": "None", "reserved_memory": "even"},
    "wish-memory-amounts": {"reserved_memory": {0: 0}},
}


@pytest.mark.parametrize("code", FAULTY)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_fault_is_a_sentence_with_its_values(code: str, language: str) -> None:
    faults = {each.reason.code: each for each in wish.check(Wish(**FAULTY[code]))}
    with translation.override(language):
        said = words.fault(faults[code])
    assert "%(" not in said
    assert all(str(value) in said for value in faults[code].reason.values.values())


def test_no_sentence_is_left_without_a_fault() -> None:
    assert set(FAULTY) == set(words.FAULTS)


def test_the_form_offers_what_the_kubelet_knows() -> None:
    assert tuple(each.policy for each in words.SWITCHES) == topology_manager.POLICIES
    offered = {choice.data["value"] for choice in WishForm()["cpu_options"]}
    assert offered == set(wish.CPU_OPTIONS)


def test_every_field_of_a_wish_is_in_the_form() -> None:
    fields = set(WishForm.base_fields) - {"on", "version"}
    assert fields == set(Wish.__struct_fields__)
