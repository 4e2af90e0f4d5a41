"""Every container is found, with where it may run, how much it may use, who it is and what it owns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from numacore.cpuset import EMPTY, CpuSet
from numacore.workload import MemoryBlock
from tests.numaagent import trees
from tests.numaagent.conftest import Open, Seen, seen

Look = Callable[..., Seen]
WEB, SIDE, PAUSE, DB = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
POD = "11111111-2222-3333-4444-555555555555"
OTHER = "66666666-7777-8888-9999-aaaaaaaaaaaa"
MACHINE = """
sys/devices/system/cpu/online = 0-7
sys/devices/system/cpu/cpu[0-7]/topology/core_id = self
sys/devices/system/node/node0/cpulist = 0-3
sys/devices/system/node/node1/cpulist = 4-7
sys/devices/system/node/node0/distance = 10 21
sys/devices/system/node/node1/distance = 21 10
"""
V2 = "sys/fs/cgroup"
MOUNT_V2 = f"proc/mounts <<\n\tcgroup2 /{V2} cgroup2 rw 0 0\n"
SLICE = f"{V2}/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice"
SYSTEMD_V2 = f"""
{MACHINE}
{MOUNT_V2}
{V2}/cgroup.controllers = cpuset cpu io memory hugetlb pids
{V2}/cpuset.cpus.effective = 0-7
{V2}/cpuset.mems.effective = 0-1
{SLICE}/cpuset.cpus.effective = 0-7
{SLICE}/cri-containerd-{WEB}.scope/cpuset.cpus.effective = 4-5
{SLICE}/cri-containerd-{WEB}.scope/cpuset.mems.effective = 1
{SLICE}/cri-containerd-{WEB}.scope/cpu.max = 200000 100000
{SLICE}/cri-containerd-{WEB}.scope/memory.max = 1073741824
{SLICE}/cri-containerd-{SIDE}.scope/cpu.max = max 100000
{SLICE}/cri-containerd-{SIDE}.scope/memory.max = max
{SLICE}/cri-containerd-{PAUSE}.scope/cpu.max = max 100000
{V2}/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{OTHER.replace("-", "_")}.slice/cri-containerd-{DB}.scope/
"""
NAMES = f"""
var/log/containers/web-0_shop_web-{WEB}.log -> /var/log/pods/shop_web-0_{POD}/web/0.log
var/log/containers/web-0_shop_side-car-{SIDE}.log -> /var/log/pods/shop_web-0_{POD}/side-car/0.log
var/log/pods/shop_web-0_{POD}/web/
var/log/pods/shop_db-0_{OTHER}/
"""
STATE = f"""
var/lib/kubelet/cpu_manager_state = {{"policyName":"static","defaultCpuSet":"0-3,6-7","entries":{{"{POD}":{{"web":"4-5"}}}},"checksum":1}}
var/lib/kubelet/memory_manager_state = {{"policyName":"Static","machineState":{{}},"entries":{{"{POD}":{{"web":[{{"numaAffinity":[1],"type":"memory","size":1073741824}}]}}}},"checksum":1}}
"""


def test_it_reads_where_containers_run_and_what_they_may_use(look: Look) -> None:
    found = look(SYSTEMD_V2)
    web, side = found.container(f"{WEB}.scope"), found.container(f"{SIDE}.scope")
    assert (str(web.cpus), str(web.mems)) == ("4-5", "1")
    assert (web.cpu_limit, web.memory_limit, web.cpu_request) == (2.0, 1 << 30, 2.0)
    assert (web.qos, web.runtime, web.pod_uid) == ("Guaranteed", "containerd", POD)
    # What the container's own group does not say holds from the groups above.
    assert (str(side.cpus), str(side.mems)) == ("0-7", "0-1")
    assert (side.cpu_limit, side.memory_limit, side.cpu_request) == ("max", "max", None)


def test_it_knows_that_best_effort_asks_for_nothing(look: Look) -> None:
    assert look(SYSTEMD_V2).container(f"{DB}.scope").cpu_request == 0.0


def test_it_joins_names_ids_and_what_the_kubelet_gave(look: Look) -> None:
    web = look(SYSTEMD_V2 + NAMES + STATE).container(f"{WEB}.scope")
    assert (web.namespace, web.pod, web.name, web.id) == ("shop", "web-0", "web", WEB)
    assert web.exclusive == CpuSet.parse("4-5")
    assert web.memory_blocks == (MemoryBlock("memory", 1 << 30, (1,)),)


def test_it_leaves_out_the_pods_sandbox(look: Look) -> None:
    found = look(SYSTEMD_V2 + NAMES)
    assert not [each for each in found.containers if each.id == PAUSE]
    assert {each.name for each in found.containers} == {"web", "side-car", None}


def test_it_keeps_containers_whose_names_are_unknown(look: Look) -> None:
    """A pod with no named container may be all new: nothing tells its sandbox from the rest."""
    db = look(SYSTEMD_V2 + NAMES).container(f"{DB}.scope")
    assert (db.namespace, db.pod, db.name) == ("shop", "db-0", None)


def test_it_hides_nothing_where_no_name_is_known(look: Look) -> None:
    assert {each.id for each in look(SYSTEMD_V2).containers} == {WEB, SIDE, PAUSE, DB}


def test_it_names_a_pinned_container_by_its_cpus(look: Look) -> None:
    """Where no log links can be read, the state file and the cpuset still agree on one container."""
    found = look(SYSTEMD_V2 + STATE)
    assert found.container(f"{WEB}.scope").name == "web"
    assert found.container(f"{WEB}.scope").exclusive == CpuSet.parse("4-5")


def test_it_owns_nothing_under_the_policy_none(look: Look) -> None:
    state = STATE.replace('"static"', '"none"').replace(f'"{POD}":{{"web":"4-5"}}', "")
    assert look(SYSTEMD_V2 + NAMES + state).container(f"{SIDE}.scope").exclusive == EMPTY


def test_it_does_not_know_what_containers_own_where_nobody_tells(look: Look) -> None:
    assert look(SYSTEMD_V2 + NAMES).container(f"{WEB}.scope").exclusive is None


V1 = """
proc/mounts <<
	cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
	cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
	cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
	cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
"""
BELOW = f"kubepods/burstable/pod{POD}/{WEB}"
CGROUPFS_V1 = f"""
{MACHINE}
{V1}
sys/fs/cgroup/cpuset/cpuset.cpus = 0-7
sys/fs/cgroup/cpuset/cpuset.mems = 0-1
sys/fs/cgroup/cpuset/{BELOW}/cpuset.cpus = 2-3
sys/fs/cgroup/cpuset/{BELOW}/cpuset.mems = 0
sys/fs/cgroup/cpu,cpuacct/{BELOW}/cpu.shares = 102
sys/fs/cgroup/cpu,cpuacct/{BELOW}/cpu.cfs_quota_us = 50000
sys/fs/cgroup/cpu,cpuacct/{BELOW}/cpu.cfs_period_us = 100000
sys/fs/cgroup/cpu,cpuacct/{BELOW}/cpuacct.usage = 7000000
sys/fs/cgroup/cpu,cpuacct/{BELOW}/cpuacct.usage_percpu = 1000000 1000000 1000000 1000000 3000000 0 0 0
sys/fs/cgroup/memory/{BELOW}/memory.limit_in_bytes = 9223372036854771712
sys/fs/cgroup/memory/{BELOW}/memory.usage_in_bytes = 8192
sys/fs/cgroup/memory/{BELOW}/memory.numa_stat <<
	total=2 N0=1 N1=1
	file=1 N0=1 N1=0
	anon=1 N0=0 N1=1
	unevictable=0 N0=0 N1=0
	hierarchical_total=4 N0=1 N1=3
	hierarchical_file=1 N0=1 N1=0
	hierarchical_anon=3 N0=0 N1=3
	hierarchical_unevictable=0 N0=0 N1=0
"""


def test_it_reads_the_trees_of_version_1(look: Look) -> None:
    found = look(CGROUPFS_V1)
    [web] = found.containers
    assert (str(web.cpus), str(web.mems), web.qos) == ("2-3", "0", "Burstable")
    assert (web.cpu_limit, web.memory_limit) == (0.5, "max")
    assert web.cpu_request == 0.1  # 102 shares are 100 thousandths of a CPU
    use = found.usage.containers
    assert use is not None
    assert use.cpu_time == (7000,)
    assert use.memory == (8192,)
    assert use.cpu_time_by_numa == {0: (4000,), 1: (3000,)}
    page = 4096
    assert use.pages == {0: (page,), 1: (3 * page,)}


@pytest.mark.parametrize(
    ("shares", "request_"), [(2, 0.0), (10, 0.010), (1024, 1.0), (2048, 2.0), (256, 0.25), (4710, 4.6)]
)
def test_it_turns_shares_back_into_the_request(look: Look, shares: int, request_: float) -> None:
    [web] = look(CGROUPFS_V1.replace("cpu.shares = 102", f"cpu.shares = {shares}")).containers
    assert web.cpu_request == request_


def test_it_reads_both_versions_side_by_side(look: Look) -> None:
    found = look(f"""
{MACHINE}
proc/mounts <<
	cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0
	cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
sys/fs/cgroup/unified/cgroup.controllers =
sys/fs/cgroup/unified/{BELOW}/cpu.stat = usage_usec 12
sys/fs/cgroup/cpuset/cpuset.cpus = 0-7
sys/fs/cgroup/cpuset/{BELOW}/cpuset.cpus = 1
""")
    [web] = found.containers
    assert str(web.cpus) == "1"
    assert found.usage.containers is not None
    assert found.usage.containers.cpu_time == (12,)


def test_it_honours_mounts_wherever_they_are(look: Look) -> None:
    found = look(f"""
{MACHINE}
proc/1/mountinfo <<
	30 25 0:26 / /opt/groups rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
opt/groups/cgroup.controllers = cpuset cpu memory
opt/groups/cpuset.cpus.effective = 0-7
opt/groups/docker/{WEB}/cpuset.cpus.effective = 0-1
""")
    assert [(each.runtime, str(each.cpus)) for each in found.containers] == [("docker", "0-1")]


@pytest.mark.parametrize("kind", ["cpuset rw", "cgroup rw,cpuset,noprefix"])
def test_it_honours_cpusets_of_old_kernels(open_node: Open, tmp_path: Path, kind: str) -> None:
    root = trees.build(
        f"""
{MACHINE}
dev/cpu sets/cpus = 0-7
dev/cpu sets/mems = 0-1
dev/cpu sets/job/cpus = 4-5
dev/cpu sets/job/mems = 1
dev/cpu sets/job/tasks = 99
""",
        tmp_path,
    )
    (root / "proc").mkdir()
    (root / "proc" / "mounts").write_text(f"none /dev/cpu\\040sets {kind} 0 0\nnone /a\0b cgroup2 rw 0 0\n")
    found = seen(open_node(root))
    assert [(each.name, str(each.cpus), str(each.mems)) for each in found.containers] == [("job", "4-5", "1")]


def test_it_finds_the_trees_where_no_mount_is_listed(look: Look) -> None:
    found = look(CGROUPFS_V1.replace(V1, ""))
    assert [str(each.cpus) for each in found.containers] == ["2-3"]


def test_it_takes_the_tree_that_it_is_told(look: Look, tmp_path: Path) -> None:
    place = tmp_path / "root" / "elsewhere"
    found = look(SYSTEMD_V2.replace(V2, "elsewhere"), NUMAAGENT_CGROUP=str(place))
    assert str(found.container(f"{WEB}.scope").cpus) == "4-5"


def test_it_says_that_it_finds_no_cgroups(look: Look) -> None:
    found = look(MACHINE)
    assert found.containers == ()
    assert found.causes("cgroups") == [
        "no cgroup file system is here: mount the host's /sys, or name the folder in NUMAAGENT_CGROUP"
    ]


PLAIN = f"""
{MACHINE}
{MOUNT_V2}
{V2}/cgroup.controllers = cpuset cpu memory
{V2}/cpuset.cpus.effective = 0-7
{V2}/init.scope/cgroup.events = populated 1
{V2}/system.slice/cpuset.cpus.effective = 0-7
{V2}/system.slice/sshd.service/cgroup.events = populated 1
{V2}/system.slice/finished.service/cgroup.events = populated 0
{V2}/system.slice/pinned.service/cgroup.events = populated 0
{V2}/system.slice/pinned.service/cpuset.cpus = 0-1
{V2}/system.slice/pinned.service/cpuset.cpus.effective = 0-1
{V2}/system.slice/dev-hugepages.mount/cgroup.events = populated 0
{V2}/system.slice/docker-{DB}.scope/cgroup.events = populated 1
{V2}/user.slice/user-1000.slice/user@1000.service/cgroup.events = populated 1
{V2}/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service/cgroup.events = populated 1
{V2}/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{WEB}.scope/cgroup.events = populated 1
{V2}/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-conmon-{WEB}.scope/cgroup.events = populated 1
{V2}/lxc.payload.mail/init.scope/cgroup.events = populated 1
{V2}/lxc.monitor.mail/cgroup.procs = 77
{V2}/batch/job_7/cgroup.procs = 4711
{V2}/batch/empty/cgroup.procs =
"""


def test_it_shows_what_matters_on_a_plain_machine(look: Look) -> None:
    found = look(PLAIN)
    assert [(each.runtime, each.name) for each in found.containers] == [
        (None, "job_7"),
        ("systemd", "init.scope"),
        ("lxc", "mail"),
        ("docker", DB[:12]),
        ("systemd", "pinned.service"),
        ("systemd", "sshd.service"),
        ("systemd", "user@1000.service"),
        ("podman", WEB[:12]),
    ]
    assert found.kubelet.present is False
    # Outside Kubernetes nobody owns CPUs alone, and that is known.
    assert {each.exclusive for each in found.containers} == {EMPTY}
    assert not any(each.kubernetes for each in found.containers)


def test_it_notices_containers_that_come_and_go(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(SYSTEMD_V2, tmp_path)
    node = open_node(root)
    assert len(seen(node, 100).containers) == 4
    new = root / SLICE / f"cri-containerd-{'e' * 64}.scope"
    new.mkdir()
    (new / "cpuset.cpus.effective").write_text("6\n")
    node.adopt(node.survey(110, 0))
    assert str(seen(node, 110).container(f"{'e' * 64}.scope").cpus) == "6"
    (new / "cpuset.cpus.effective").write_text("7\n")
    node.adopt(node.survey(120, 0))
    assert str(seen(node, 120).container(f"{'e' * 64}.scope").cpus) == "7"
    (new / "cpuset.cpus.effective").unlink()
    new.rmdir()
    node.adopt(node.survey(130, 0))
    assert len(seen(node, 130).containers) == 4


def test_it_notices_limits_that_change_in_place(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(SYSTEMD_V2, tmp_path)
    node = open_node(root)
    before = seen(node, 100)
    (root / SLICE / f"cri-containerd-{WEB}.scope" / "cpu.max").write_text("300000 100000\n")
    node.adopt(node.survey(200, 0))
    assert before.container(f"{WEB}.scope").cpu_limit == 2.0
    assert seen(node, 200).container(f"{WEB}.scope").cpu_limit == 3.0


def test_it_sends_the_same_bytes_while_nothing_changes(open_node: Open, tmp_path: Path) -> None:
    node = open_node(trees.build(SYSTEMD_V2 + NAMES + STATE, tmp_path))
    first = node.survey(100, 0)
    second = node.survey(700, 0)  # everything was read again
    assert (first.machine, first.kubelet, first.containers) == (
        second.machine,
        second.kubelet,
        second.containers,
    )
    assert first.containers is second.containers
