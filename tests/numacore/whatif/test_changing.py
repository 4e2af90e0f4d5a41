"""What a wish comes to on a node, seen before anything is done."""

from __future__ import annotations

import msgspec
import pytest

from numacore.change import order
from numacore.change.editing import drop_in, edit
from numacore.change.managed import NodeInfo
from numacore.change.order import Order
from numacore.change.wish import Wish
from numacore.cpuset import CpuSet
from numacore.facts import Facts
from numacore.kubelet.checks import documents
from numacore.kubeletstate import CpuManagerState, Kubelet, KubeletFile, Setting
from numacore.whatif import changing
from numacore.whatif.changing import Change
from tests.numacore import machines
from tests.numacore.whatif import nodes

PATH = "/var/lib/kubelet/config.yaml"
FOLDER = "/etc/kubernetes/kubelet.conf.d"
TEXT = """\
# ours
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
topologyManagerPolicy: restricted  # since May
reservedSystemCPUs: "0"
"""


def file(text: str = TEXT, path: str = PATH) -> KubeletFile:
    return KubeletFile(
        path=path, kind="file" if path == PATH else "drop-in", sha256=order.sha256(text), text=text
    )


def node(*files: KubeletFile, **fields: object) -> Facts:
    told = nodes.kubelet()
    settings = {name: msgspec.structs.replace(each, where=PATH) for name, each in told.settings.items()}
    told = msgspec.structs.replace(told, files=files or (file(),), config_path=PATH, settings=settings)
    return nodes.facts(msgspec.structs.replace(told, **fields))


def asked(wish: Wish, facts: Facts | None = None, info: NodeInfo | None = None) -> Change:
    return changing.preview(facts or node(), wish, info or NodeInfo())


def codes(found: Change) -> list[str]:
    return [reason.code for reason in found.refusals]


def test_a_stricter_policy_changes_one_line_and_no_state_file_goes() -> None:
    found = asked(Wish(topology_policy="single-numa-node"))
    assert found.refusals == ()
    assert [line for line in found.diff if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "-topologyManagerPolicy: restricted  # since May",
        "+topologyManagerPolicy: single-numa-node  # since May",
    ]
    assert (found.path, found.drop_in, found.state_files) == (PATH, False, ())
    assert (found.keys, found.removed) == ({"topologyManagerPolicy": "single-numa-node"}, ())
    assert found.changed is not None
    assert found.changed.survives
    assert found.unchanged.survival is not None


def test_an_order_can_be_made_of_it() -> None:
    found = asked(Wish(cpu_policy="none", topology_policy="none"))
    made = Order(
        act="apply", node="n1", epoch=1, rollout="r", path=found.path, keys=found.keys, removed=found.removed, before=found.before, after=found.after,
        state_files=tuple(each.file for each in found.state_files), expires=1,
    )  # fmt: skip
    assert order.decode(order.encode(made)) == made
    assert order.sha256(TEXT) == found.before
    assert order.sha256(edit(TEXT, found.keys | dict.fromkeys(found.removed))) == found.after
    assert made.state_files == ("cpu_manager_state",)


def test_what_is_so_already_changes_nothing() -> None:
    found = asked(Wish(topology_policy="restricted", cpu_policy="static"))
    assert found.refusals == ()
    assert (found.diff, found.keys, found.state_files, found.new_text) == ((), {}, (), TEXT)
    assert found.before == found.after


def test_pods_that_would_be_refused_after_the_restart_are_named_with_the_reason() -> None:
    """web holds CPUs of both sockets, which single-numa-node does not take on again."""
    state = CpuManagerState("static", CpuSet.parse("0,2-6"), {"u1": {"web": CpuSet.parse("1,7")}})
    loose = node(file(TEXT.replace("restricted", "best-effort")), cpu_state=state)
    assert loose.kubelet is not None
    settings = loose.kubelet.settings | {"topologyManagerPolicy": Setting("best-effort", "file", PATH)}
    loose = msgspec.structs.replace(loose, kubelet=msgspec.structs.replace(loose.kubelet, settings=settings))
    found = asked(Wish(topology_policy="single-numa-node"), loose)
    assert found.changed is not None
    assert [(each.pod.uid, each.verdict.reason) for each in found.changed.lost] == [
        ("u1", "TopologyAffinityError")
    ]
    assert found.unchanged.survival is not None
    assert found.unchanged.survival.survives, "without the change nothing happens to it"


def test_without_the_static_policy_pods_go_on_with_the_cpus_that_they_have() -> None:
    found = asked(Wish(cpu_policy="none", topology_policy="none"))
    assert [(each.file, each.reason.code) for each in found.state_files] == [
        ("cpu_manager_state", "leave-cpu-policy")
    ]
    assert (found.keeps, found.moves) == (("u1",), ())


def test_reserved_cpus_that_a_pod_holds_send_the_state_file_away_and_the_pod_moves() -> None:
    found = asked(Wish(reserved_cpus="1"))
    assert found.keys == {"reservedSystemCPUs": "0-1"}
    assert [(each.file, each.reason.code) for each in found.state_files] == [
        ("cpu_manager_state", "leave-reserved-cpus")
    ]
    assert (found.keeps, found.moves) == ((), ("u1",))


def test_where_drop_ins_are_read_an_own_one_is_written_and_volcano_does_not_see_it() -> None:
    found = asked(Wish(topology_policy="single-numa-node", prefer_closest=True), node(drop_in_dir=FOLDER))
    assert found.refusals == ()
    assert (found.path, found.drop_in, found.text, found.before) == (f"{FOLDER}/90-numa.conf", True, None, "")
    assert found.new_text == drop_in(found.keys)
    assert found.keys == {
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
    }
    assert found.volcano is not None
    assert found.volcano.code == "volcano-blind"
    told = asked(Wish(topology_policy="single-numa-node")).volcano
    assert told is not None
    assert told.code == "volcano-told"


def test_a_second_change_of_our_drop_in_keeps_what_the_first_said() -> None:
    own = drop_in(
        {"topologyManagerPolicy": "best-effort", "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
    )
    facts = node(file(), file(own, f"{FOLDER}/90-numa.conf"), drop_in_dir=FOLDER)
    found = asked(
        Wish(
            topology_policy="single-numa-node",
            cpu_options={"full-pcpus-only": False, "strict-cpu-reservation": True},
        ),
        facts,
    )
    assert found.refusals == ()
    assert documents.read(found.new_text).value == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": "single-numa-node",
        "cpuManagerPolicyOptions": {"full-pcpus-only": None, "strict-cpu-reservation": "true"},
    }  # fmt: skip


def test_an_option_of_the_main_file_is_taken_away_by_the_drop_in() -> None:
    text = TEXT + 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n'
    found = asked(Wish(cpu_policy="none", topology_policy="none"), node(file(text), drop_in_dir=FOLDER))
    assert found.refusals == ()
    assert found.keys["cpuManagerPolicyOptions"] is None
    made = Order(
        act="apply", node="a", epoch=1, rollout="r", path=found.path, drop_in=True, keys=found.keys, before="", after=found.after, expires=1
    )  # fmt: skip
    assert order.decode(order.encode(made)).keys == found.keys


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (nodes.facts(Kubelet()), "kubelet-unknown"),
        (node(version="v1.99.0"), "change-version"),
        (node(version=None), "change-version-unknown"),
        (node(files=None), "route-not-told"),
        (node(file(TEXT + "topologyManagerPolicy: none\n")), "edit-duplicates"),
        (node(file(TEXT + "---\na: 1\n")), "edit-several-documents"),
        (node(file("x: &a restricted\n" + TEXT.replace("restricted ", "*a "))), "edit-alias"),
    ],
)
def test_what_cannot_be_done_says_why(facts: Facts, code: str) -> None:
    found = asked(Wish(topology_policy="single-numa-node"), facts)
    assert codes(found) == [code]
    assert (found.diff, found.keys, found.after) == ((), {}, "")


def many_numa_nodes() -> Facts:
    """17 NUMA nodes of one CPU each: one more than can be enumerated."""
    on = machines.topology({at: str(at) for at in range(17)})
    state = CpuManagerState("static", CpuSet.parse("0-16"), {})
    known = node(file(TEXT.replace("restricted", "none")), cpu_state=state)
    return msgspec.structs.replace(known, topology=on, attributes=machines.attributes(on), containers=())


def test_where_nobody_can_tell_what_a_restart_would_bring_nothing_is_changed() -> None:
    found = asked(Wish(topology_policy="restricted", max_allowable_numa_nodes=32), many_numa_nodes())
    assert codes(found) == ["change-not-judged"]
    assert "17 NUMA nodes" in str(found.refusals[0].values["words"])
    assert (found.diff, found.keys, found.changed) == ((), {}, None)
    without_a_policy = asked(Wish(reserved_cpus="1"), many_numa_nodes())
    assert without_a_policy.refusals == ()
    assert without_a_policy.changed is not None


def test_a_flag_that_beats_the_file_is_named() -> None:
    facts = node()
    assert facts.kubelet is not None
    settings = facts.kubelet.settings | {
        "topologyManagerPolicy": Setting("best-effort", "flag", "--topology-manager-policy")
    }
    found = asked(Wish(topology_policy="single-numa-node"), node(settings=settings))
    assert [reason.values for reason in found.refusals] == [
        {"field": "topologyManagerPolicy", "flag": "--topology-manager-policy"}
    ]


def test_somebody_elses_node_is_left_alone_and_the_wish_judged_all_the_same() -> None:
    info = NodeInfo(annotations={"machineconfiguration.openshift.io/currentConfig": "rendered"})
    found = asked(Wish(topology_policy="restricted", reserved_cpus="99"), info=info)
    assert codes(found) == ["managed-openshift", "ask-cpus-offline"]


def test_only_what_the_new_settings_bring_is_found() -> None:
    found = asked(Wish(scope="pod", topology_policy="none"))
    assert [finding.reason.code for finding in found.findings] == ["without-policy"]


def two_that_do_not_fit() -> Facts:
    """u1 and u2 ask for three CPUs each and own none. Without CPUs 0, 4 and 5 one socket has three and the other two."""
    facts = node(
        file(TEXT.replace("static", "none").replace("restricted", "none")),
        cpu_state=CpuManagerState("none", CpuSet.parse("0-7"), {}),
    )
    assert facts.kubelet is not None
    settings = facts.kubelet.settings | {
        "cpuManagerPolicy": Setting("none", "file", PATH),
        "topologyManagerPolicy": Setting("none", "file", PATH),
    }
    [web] = facts.containers
    both = tuple(
        msgspec.structs.replace(
            web,
            id=f"c-{uid}",
            pod_uid=uid,
            exclusive=CpuSet.parse(""),
            cpu_request=3.0,
            memory_limit=1 << 30,
        )
        for uid in ("u1", "u2")
    )
    kubelet = msgspec.structs.replace(facts.kubelet, settings=settings)
    return msgspec.structs.replace(facts, kubelet=kubelet, containers=both)


@pytest.mark.parametrize(("oldest", "lost"), [("u1", "u2"), ("u2", "u1")])
def test_of_two_that_cannot_both_stay_the_older_one_does(oldest: str, lost: str) -> None:
    """As a starting kubelet takes pods on, whatever their uids are."""
    facts = two_that_do_not_fit()
    ages = {"u1": 2000.0, "u2": 2000.0} | {oldest: 1000.0}
    found = changing.preview(
        facts, Wish(topology_policy="single-numa-node", reserved_cpus="0,4-5"), NodeInfo(), ages
    )
    assert found.changed is not None
    assert [each.pod.uid for each in found.changed.lost] == [lost]
    assert found.assumed == ()


def test_that_nobody_tells_their_ages_is_said() -> None:
    found = asked(Wish(topology_policy="single-numa-node", reserved_cpus="0,4-5"), two_that_do_not_fit())
    assert [(each.code, each.values) for each in found.assumed] == [("change-ages-unknown", {"pods": 2})]
