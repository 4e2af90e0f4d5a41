"""What the kubelet was asked to do, and where: file, drop-ins, flags."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from numaagent.readers import yamlfile
from numaagent.readers.files import Files
from numacore.kubeletstate import Setting
from tests.numaagent import trees
from tests.numaagent.conftest import Open, Seen, seen

Look = Callable[..., Seen]
FILE = """
var/lib/kubelet/config.yaml <<
	apiVersion: kubelet.config.k8s.io/v1beta1
	kind: KubeletConfiguration
	cpuManagerPolicy: static
	cpuManagerPolicyOptions: {full-pcpus-only: "true"}
	reservedSystemCPUs: "0,4"
	featureGates: {A: true, B: false}
	reservedMemory:
	- {numaNode: 0, limits: {memory: 256Mi}}
	staticPodURLHeader: {Authorization: [secret]}
	topologyManagerScope: null
"""
PROCESS = "proc/77/comm = kubelet\nproc/77/cmdline = /usr/bin/kubelet"


def process(*flags: str) -> str:
    return PROCESS + "".join(f"\\0{flag}" for flag in flags) + "\\0\n"


def test_it_reads_the_file_without_being_told_where(look: Look) -> None:
    kubelet = look(FILE).kubelet
    assert kubelet.present is True
    assert kubelet.config_path == "/var/lib/kubelet/config.yaml"
    assert kubelet.settings["cpuManagerPolicy"] == Setting("static", "file", "/var/lib/kubelet/config.yaml")
    assert kubelet.settings["reservedMemory"].value == [{"numaNode": 0, "limits": {"memory": "256Mi"}}]


def test_it_tells_only_what_was_asked_and_no_secret(look: Look) -> None:
    assert set(look(FILE).kubelet.settings) == {
        "cpuManagerPolicy", "cpuManagerPolicyOptions", "featureGates", "reservedMemory", "reservedSystemCPUs",
    }  # fmt: skip


def test_it_follows_the_kubelets_own_flags(look: Look) -> None:
    found = look(
        FILE.replace("var/lib/kubelet/config.yaml", "etc/kubelet/main.yaml")
        + process("--config=/etc/kubelet/main.yaml", "--root-dir", "/data/kubelet")
        + 'data/kubelet/cpu_manager_state = {"policyName":"none","defaultCpuSet":""}\n'
    ).kubelet
    assert found.config_path == "/etc/kubelet/main.yaml"
    assert found.settings["cpuManagerPolicy"].value == "static"
    assert found.cpu_state is not None


def test_it_lets_drop_ins_beat_the_file_in_the_order_of_their_names(look: Look) -> None:
    kubelet = look(
        FILE
        + process("--config-dir=/etc/kubelet.d")
        + """
etc/kubelet.d/20-late.conf <<
	cpuManagerPolicyOptions: {distribute-cpus-across-numa: "true"}
	reservedMemory: []
etc/kubelet.d/10-early.conf <<
	cpuManagerPolicy: none
	topologyManagerPolicy: restricted
etc/kubelet.d/30-ignored.yaml <<
	cpuManagerPolicy: static
"""
    ).kubelet
    assert kubelet.drop_in_dir == "/etc/kubelet.d"
    assert kubelet.settings["cpuManagerPolicy"] == Setting("none", "drop-in", "/etc/kubelet.d/10-early.conf")
    assert kubelet.settings["topologyManagerPolicy"].value == "restricted"
    assert kubelet.settings["reservedMemory"].value == []
    assert kubelet.settings["cpuManagerPolicyOptions"].value == {
        "full-pcpus-only": "true",
        "distribute-cpus-across-numa": "true",
    }


def test_it_lets_flags_beat_everything(look: Look) -> None:
    kubelet = look(
        FILE
        + process(
            "--cpu-manager-policy=none",
            "--cpu-manager-policy-options=align-by-socket=true",
            "--feature-gates=B=true,C=true",
            "--reserved-memory=0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=2Gi",
            "--eviction-hard=memory.available<100Mi,nodefs.available<10%",
            "--kube-reserved=cpu=500m,memory=1Gi",
            "--max-pods",
            "200",
        )
    ).kubelet
    settings = {name: setting.value for name, setting in kubelet.settings.items()}
    assert kubelet.settings["cpuManagerPolicy"] == Setting("none", "flag", "--cpu-manager-policy")
    assert settings["cpuManagerPolicyOptions"] == {"align-by-socket": "true"}
    assert settings["featureGates"] == {"A": True, "B": True, "C": True}
    assert settings["reservedMemory"] == [
        {"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": "1Gi"}},
        {"numaNode": 1, "limits": {"memory": "2Gi"}},
    ]
    assert settings["evictionHard"] == {"memory.available": "100Mi", "nodefs.available": "10%"}
    assert settings["kubeReserved"] == {"cpu": "500m", "memory": "1Gi"}
    assert settings["maxPods"] == 200


def test_it_tells_a_flag_that_cannot_be_read(look: Look) -> None:
    found = look(FILE + process("--reserved-memory=everything"))
    assert found.causes("kubelet-config") == ["'everything' is not a value of this flag"]
    assert found.kubelet.settings["reservedMemory"].source == "file"


def test_it_says_that_a_named_file_is_missing(look: Look) -> None:
    found = look(process("--config=/etc/nowhere.yaml"))
    assert found.kubelet.present is True
    assert [(p.what, p.cause) for p in found.problems if p.reader == "kubelet-config"] == [
        ("/etc/nowhere.yaml", "it does not exist")
    ]
    assert found.kubelet.unread == ("/etc/nowhere.yaml",)
    assert found.kubelet.cpu_policy is None


def test_a_kubelet_without_a_file_asks_by_flags_alone(look: Look) -> None:
    kubelet = look(process("--topology-manager-policy=restricted")).kubelet
    assert kubelet.unread == ()
    assert kubelet.asked("topologyManagerPolicy", "none") == "restricted"
    assert kubelet.cpu_policy == "none"


@pytest.mark.parametrize("file", ["", "var/lib/kubelet/config.yaml = {broken"])
def test_where_neither_flags_nor_file_are_to_be_seen_nobody_knows(look: Look, file: str) -> None:
    kubelet = look(f"var/lib/kubelet/pods/\n{file}\n").kubelet
    assert kubelet.present is True
    assert kubelet.unread == ("/var/lib/kubelet/config.yaml",)
    assert kubelet.asked("topologyManagerPolicy", "none") is None


def test_a_broken_drop_in_leaves_open_what_it_may_ask_for(look: Look) -> None:
    found = look(
        FILE
        + process("--config-dir=/etc/k.d", "--config=/var/lib/kubelet/config.yaml")
        + "etc/k.d/1.conf = {broken\n"
    )
    assert found.kubelet.unread == ("/etc/k.d/1.conf",)
    assert found.kubelet.cpu_policy == "static"
    assert found.kubelet.asked("topologyManagerPolicy", "none") is None


def test_it_knows_a_machine_without_a_kubelet(look: Look) -> None:
    found = look("proc/88/comm = bash\nvar/lib/kubelet/")
    assert found.kubelet.present is False
    assert found.kubelet.settings == {}


def test_it_reads_the_file_again_when_it_changed(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(FILE, tmp_path)
    node = open_node(root)
    assert seen(node, 100).kubelet.settings["cpuManagerPolicy"].value == "static"
    file = root / "var/lib/kubelet/config.yaml"
    file.write_text(file.read_text().replace("static", "none"))
    node.adopt(node.survey(110, 0))
    assert seen(node, 110).kubelet.settings["cpuManagerPolicy"].value == "none"


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{c}: &{c} [*{b}, *{b}]\n" for b, c in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (LAUGHS, "it was not used: it has aliases (*name), which configuration files do not need"),
        ("[" * 60 + "]" * 60, "it was not used: it has more than 10000 values or 32 levels"),
        ("- a\n" * 10_001, "it was not used: it has more than 10000 values or 32 levels"),
        ("a: [", "it is not YAML: "),
        ("\x00\x01", "it is not YAML: "),
        ("just words", "it holds no table"),
        ("x" * (1 << 20), f"it is larger than {yamlfile.LIMIT} bytes and was not used"),
        ("a: !!python/object/apply:os.system [ls]", "it is not YAML: "),
    ],
)
def test_it_refuses_hostile_files(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    files = Files(str(tmp_path))
    assert yamlfile.table(files.reader("kubelet-config"), f"{tmp_path}/config.yaml") is None
    [problem] = files.problems.listed()
    assert problem.cause.startswith(cause)


def test_it_sends_values_that_json_cannot_hold_as_text(look: Look) -> None:
    found = look("""
var/lib/kubelet/config.yaml <<
	cpuManagerPolicy: 2024-01-02
	maxPods: 99999999999999999999999
	clusterDomain: "\\ud800"
	clusterDNS: ["a\\x00b"]
	evictionHard: {1: 2}
""").kubelet.settings
    assert found["cpuManagerPolicy"].value == "2024-01-02"
    assert found["maxPods"].value == "99999999999999999999999"
    assert found["evictionHard"].value == {"1": 2}
    assert found["clusterDNS"].value == ["ab"]


PLAIN = """
var/lib/kubelet/config.yaml <<
	# by hand
	kind: KubeletConfiguration
	cpuManagerPolicy: static   # since May
"""
TEXT = "# by hand\nkind: KubeletConfiguration\ncpuManagerPolicy: static   # since May\n"
CONFIG = "--config=/var/lib/kubelet/config.yaml"


def test_it_tells_the_text_of_what_the_kubelet_reads_byte_for_byte(look: Look) -> None:
    kubelet = look(
        PLAIN
        + process(CONFIG, "--config-dir=/etc/k.d")
        + "etc/k.d/b.conf = b: 1\netc/k.d/a.conf = a: 1\netc/k.d/note.txt = x\n"
    ).kubelet
    assert kubelet.files is not None
    assert [(each.path, each.kind, each.text) for each in kubelet.files] == [
        ("/var/lib/kubelet/config.yaml", "file", TEXT),
        ("/etc/k.d/a.conf", "drop-in", "a: 1\n"),
        ("/etc/k.d/b.conf", "drop-in", "b: 1\n"),
    ]
    assert kubelet.files[0].sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    assert kubelet.root_dir == "/var/lib/kubelet"


@pytest.mark.parametrize(
    ("content", "withheld"),
    [
        ("\tkind: K\n\tstaticPodURLHeader: {Authorization: [secret]}\n", "secret"),
        ("\tkind: K\n\t# staticPodURLHeader: {Authorization: [secret]}\n", "secret"),
        ('\t"static\\x50odURLHeader": {Authorization: [secret]}\n', "secret"),
        ("\tstaticPodURL: https://me:secret@pods.example.com/all\n", "secret"),
        ("\tkind: \\0K\n", "not-text"),
        (f"\t# {'x' * 131_072}\n", "too-large"),
    ],
)
def test_a_text_that_is_not_told_has_its_reason(look: Look, content: str, withheld: str) -> None:
    seen = look(f"var/lib/kubelet/config.yaml <<\n{content}" + process(CONFIG))
    assert seen.kubelet.files is not None
    (file,) = seen.kubelet.files
    assert (file.text, file.withheld) == (None, withheld)
    assert "secret@" not in repr(file)
    assert "[secret]" not in repr(file)
    assert bool(file.sha256) == (withheld != "too-large")


def test_a_file_that_is_missing_is_named_with_its_reason(look: Look) -> None:
    files = look(process("--config=/etc/nowhere.yaml")).kubelet.files
    assert files is not None
    assert [(each.path, each.withheld) for each in files] == [("/etc/nowhere.yaml", "unreadable")]


def test_nobody_tells_texts_where_the_command_line_is_not_to_be_seen(look: Look) -> None:
    """The file may not be the one that the kubelet reads, and a flag may beat it."""
    assert look(PLAIN).kubelet.files is None


def test_a_kubelet_that_is_told_of_no_file_reads_none(look: Look) -> None:
    assert look(PLAIN + process("--cpu-manager-policy=static")).kubelet.files == ()


def test_the_texts_are_told_anew_when_they_change(open_node: Open, tmp_path: Path) -> None:
    root = trees.build(PLAIN + process(CONFIG), tmp_path)
    node = open_node(root)
    first = seen(node, 100).kubelet.files
    (root / "var/lib/kubelet/config.yaml").write_text(TEXT + "maxPods: 50\n")
    node.adopt(node.survey(110, 0))
    second = seen(node, 110).kubelet.files
    assert first is not None
    assert second is not None
    assert second[0].text == TEXT + "maxPods: 50\n"
    assert first[0].sha256 != second[0].sha256
