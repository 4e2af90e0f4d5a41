"""The small print of a change: what goes out of the file, which texts count, what is said where it would come to nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numacore.change import order
from numacore.change.editing import drop_in
from numacore.change.managed import NodeInfo
from numacore.change.wish import Wish
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubelet.checks import documents
from numacore.kubelet.restart import Survival
from numacore.kubeletstate import CpuManagerState, KubeletFile, MemoryManagerState, MemoryTable, Setting
from numacore.whatif import changing
from numacore.whatif.changing import Change
from tests.numacore.whatif.test_changing import FOLDER, PATH, TEXT, asked, file, node

GIB = 1 << 30
MIB = 1 << 20
OPTIONS = 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n'


def own(content: dict[str, Any]) -> KubeletFile:
    return file(drop_in(content), f"{FOLDER}/90-numa.conf")


def other(name: str, text: str) -> KubeletFile:
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    return file(head + text, f"{FOLDER}/{name}")


def test_a_field_that_goes_is_named_apart_from_those_that_are_set() -> None:
    found = asked(Wish(cpu_policy="none", topology_policy="none"), node(file(TEXT + OPTIONS)))
    assert found.removed == ("cpuManagerPolicyOptions",)
    assert found.keys == {"cpuManagerPolicy": "none", "topologyManagerPolicy": "none"}


def test_options_that_our_drop_in_set_are_taken_back_there() -> None:
    facts = node(file(), own({"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}), drop_in_dir=FOLDER)
    found = asked(Wish(cpu_policy="none", topology_policy="none"), facts)
    assert found.refusals == ()
    assert (found.removed, found.keys) == (
        (),
        {"cpuManagerPolicyOptions": None, "cpuManagerPolicy": "none", "topologyManagerPolicy": "none"},
    )
    assert documents.read(found.new_text).value["cpuManagerPolicyOptions"] is None


def test_a_fault_of_the_file_names_file_line_and_field() -> None:
    twice = node(file(TEXT + "topologyManagerPolicy: none\n"))
    (found,) = asked(Wish(topology_policy="single-numa-node"), twice).refusals
    assert (found.code, found.values) == (
        "edit-duplicates",
        {"file": PATH, "line": 7, "field": "topologyManagerPolicy"},
    )


def test_what_a_later_drop_in_says_otherwise_would_be_without_effect() -> None:
    """The settings that the exporter read do not name it: they are older than the file."""
    facts = node(file(), other("99-site.conf", "topologyManagerScope: container\n"), drop_in_dir=FOLDER)
    (found,) = asked(Wish(scope="pod"), facts).refusals
    assert (found.code, found.values) == (
        "change-no-effect",
        {"field": "topologyManagerScope", "file": f"{FOLDER}/90-numa.conf"},
    )


def test_drop_ins_count_in_the_order_of_their_names_wherever_they_are_listed() -> None:
    later, earlier = (
        other("20-b.conf", "topologyManagerScope: pod\n"),
        other("10-a.conf", "topologyManagerScope: container\n"),
    )
    facts = node(later, file(), earlier, drop_in_dir=FOLDER)
    assert asked(Wish(scope="pod"), facts).keys == {}
    assert asked(Wish(scope="container"), facts).keys == {"topologyManagerScope": "container"}


def test_where_the_text_of_a_file_is_withheld_the_settings_that_were_read_count() -> None:
    secret = msgspec.structs.replace(file(), text=None, withheld="secret")
    found = asked(Wish(topology_policy="single-numa-node"), node(secret, drop_in_dir=FOLDER))
    assert found.refusals == ()
    assert found.keys == {"topologyManagerPolicy": "single-numa-node"}
    assert asked(Wish(topology_policy="restricted"), node(secret, drop_in_dir=FOLDER)).keys == {}


def test_a_flag_counts_as_it_does_for_the_kubelet() -> None:
    """Three CPUs are reserved by a flag, one by the file: the wish for the first two is so already."""
    facts = node()
    assert facts.kubelet is not None
    settings = facts.kubelet.settings | {"reservedSystemCPUs": Setting("0,3-7", "flag", "--reserved-cpus")}
    found = asked(Wish(reserved_cpus="3,7"), node(settings=settings))
    assert (found.refusals, found.diff) == ((), ())


# Memory

STATIC = "memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]\n"


def memory_state(policy: str) -> MemoryManagerState:
    def table(reserved: int) -> dict[str, MemoryTable]:
        return {"memory": MemoryTable(16 * GIB, reserved, 16 * GIB - reserved, 0, 16 * GIB - reserved)}

    if policy == "None":
        return MemoryManagerState("None", {}, {}, {})
    return MemoryManagerState("Static", {0: table(100 * MIB), 1: table(0)}, {0: (0,), 1: (1,)}, {})


def with_memory(policy: str) -> Facts:
    """The file asks for the Static policy; the kubelet runs with `policy`."""
    facts = node(file(TEXT + STATIC), memory_state=memory_state(policy))
    assert facts.kubelet is not None
    settings = facts.kubelet.settings | {
        "memoryManagerPolicy": Setting("Static", "file", PATH),
        "reservedMemory": Setting([{"numaNode": 0, "limits": {"memory": "100Mi"}}], "file", PATH),
    }
    return msgspec.structs.replace(facts, kubelet=msgspec.structs.replace(facts.kubelet, settings=settings))


def test_the_memory_managers_file_goes_with_its_policy_and_the_kubelet_starts_without_it() -> None:
    found = asked(Wish(memory_policy="None"), with_memory("Static"))
    assert [(each.file, each.reason.code) for each in found.state_files] == [
        ("memory_manager_state", "leave-memory-policy")
    ]
    assert found.changed is not None
    assert found.changed.refusal == ""


def test_a_file_of_the_policy_that_is_still_in_force_goes_with_the_restart_that_ends_it() -> None:
    found = asked(Wish(scope="pod"), with_memory("None"))
    assert [(each.file, each.reason.values) for each in found.state_files] == [
        ("memory_manager_state", {"before": "None", "after": "Static"})
    ]


def test_state_files_stay_where_nothing_concerns_them() -> None:
    found = asked(Wish(scope="pod"), with_memory("Static"))
    assert (found.refusals, found.state_files) == ((), ())


# Pods, findings, Volcano


def test_pods_that_keep_their_cpus_are_told_by_uid() -> None:
    owners = {uid: {"c": CpuSet.parse(str(cpu))} for cpu, uid in enumerate(("d", "b", "c", "a"), 1)}
    state = CpuManagerState("static", CpuSet.parse("0,5-7"), owners)
    assert asked(Wish(cpu_policy="none", topology_policy="none"), node(cpu_state=state)).keeps == (
        "a",
        "b",
        "c",
        "d",
    )
    assert asked(Wish(reserved_cpus="1"), node(cpu_state=state)).moves == ("a", "b", "c", "d")
    assert asked(Wish(scope="pod"), node(cpu_state=state)).keeps == ()


@pytest.mark.parametrize(
    ("changed", "crashes"), [(None, False), (Survival(), False), (Survival(refusal="x", panics=True), True)]
)
def test_a_crash_is_told_only_of_a_restart_that_was_judged(changed: Survival | None, crashes: bool) -> None:
    assert Change(changed=changed).crashes is crashes


def test_what_a_restart_brings_without_the_change_depends_on_who_came_first_too() -> None:
    """Three CPUs are left for two pods of two each, before the change as after it."""
    facts = node(
        file(TEXT.replace('"0"', '"0,4-7"')), cpu_state=CpuManagerState("static", CpuSet.parse("0-7"), {})
    )
    assert facts.kubelet is not None
    settings = facts.kubelet.settings | {"reservedSystemCPUs": Setting("0,4-7", "file", PATH)}
    [web] = facts.containers
    pods = tuple(
        msgspec.structs.replace(
            web, id=uid, pod_uid=uid, exclusive=CpuSet(), cpu_request=2.0, memory_limit=GIB
        )
        for uid in ("a", "b")
    )
    told = msgspec.structs.replace(facts.kubelet, settings=settings)
    facts = msgspec.structs.replace(facts, kubelet=told, containers=pods)
    for oldest, lost in (("a", "b"), ("b", "a")):
        ages = {"a": 5.0, "b": 5.0} | {oldest: 1.0}
        found = changing.preview(facts, Wish(scope="pod"), NodeInfo(), ages).unchanged.survival
        assert found is not None
        assert [each.pod.uid for each in found.lost] == [lost]


def test_volcano_hears_of_the_fields_that_its_exporter_reads() -> None:
    told = asked(Wish(topology_policy="single-numa-node", reserved_cpus="3", scope="pod")).volcano
    assert told is not None
    assert (told.code, told.values) == (
        "volcano-told",
        {"fields": "reservedSystemCPUs, topologyManagerPolicy", "file": PATH},
    )
    assert asked(Wish(scope="pod")).volcano is None


def test_a_new_file_is_shown_whole_and_known_by_the_hash_of_its_text() -> None:
    found = asked(Wish(scope="pod"), node(drop_in_dir=FOLDER))
    assert (found.before, found.after) == ("", order.sha256(found.new_text))
    assert found.diff[:2] == (f"--- {found.path}", f"+++ {found.path}")
    assert [line[1:] for line in found.diff[3:]] == found.new_text.splitlines()
