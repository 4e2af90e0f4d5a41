"""What a node tells of its kubelet: what is asked for, what is in force."""

import msgspec
import pytest

from numacore.cpuset import CpuSet
from numacore.kubeletstate import CpuManagerState, Kubelet, MemoryManagerState, Setting
from numacore.topology import dec_hook

STATIC = CpuManagerState("static", CpuSet.parse("0-3"), {})


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({}, "none"),
        ({"topologyManagerPolicy": Setting("restricted", "file")}, "restricted"),
        ({"topologyManagerPolicy": Setting("", "file")}, "none"),
        ({"topologyManagerPolicy": Setting(None, "file")}, "none"),
        ({"topologyManagerPolicy": Setting(["restricted"], "file")}, "none"),
    ],
)
def test_a_text_setting_falls_back_to_the_kubelets_default(settings: dict[str, Setting], answer: str) -> None:
    assert Kubelet(settings=settings).asked("topologyManagerPolicy", "none") == answer


def test_where_a_file_cannot_be_read_only_what_others_ask_for_is_known() -> None:
    kubelet = Kubelet(
        present=True,
        settings={"cpuManagerPolicy": Setting("static", "flag", "--cpu-manager-policy")},
        unread=("/etc/kubernetes/kubelet.yaml",),
    )
    assert kubelet.cpu_policy == "static"
    assert kubelet.memory_policy is None
    assert kubelet.asked("topologyManagerPolicy", "none") is None


@pytest.mark.parametrize(
    ("state", "asked", "policy"),
    [
        (STATIC, "none", "static"),
        (None, "static", "static"),
        (None, None, "none"),
        (CpuManagerState("none", CpuSet(), {}), "static", "none"),
    ],
)
def test_the_cpu_policy_in_force_wins(state: CpuManagerState | None, asked: str | None, policy: str) -> None:
    settings = {"cpuManagerPolicy": Setting(asked, "flag")} if asked else {}
    assert Kubelet(cpu_state=state, settings=settings).cpu_policy == policy


def test_the_memory_policy_in_force_wins() -> None:
    state = MemoryManagerState("Static", {}, {}, {})
    assert Kubelet(memory_state=state).memory_policy == "Static"
    assert Kubelet(settings={"memoryManagerPolicy": Setting("Static", "drop-in")}).memory_policy == "Static"
    assert Kubelet().memory_policy == "None"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"cpu_state":{"policy":"static","default":"x","entries":{}}}', "$.cpu_state.default"),
        (b'{"cpu_state":{"policy":"static","default":"","entries":{"u":{"c":1}}}}', "$.cpu_state.entries"),
        (b'{"settings":{"a":{"value":1,"source":"rumour"}}}', "source"),
        (
            b'{"memory_state":{"policy":"Static","nodes":{"0":{"memory":{}}},"groups":{},"entries":{}}}',
            "total",
        ),
        (b'{"allocatable_memory":[{"kind":"memory","size":-1,"numa":[0]}]}', "$.allocatable_memory[0].size"),
    ],
)
def test_a_wrong_field_is_named(data: bytes, field: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(data, type=Kubelet, dec_hook=dec_hook)
    assert field in str(raised.value)
