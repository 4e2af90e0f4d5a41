"""`python -m numacore`: a line in, a line out."""

import io
import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from numacore import __main__ as numacore
from tests.servers import ROOT

Command = Callable[..., "subprocess.CompletedProcess[str]"]
CASE = {"ID": "one", "Containers": [{"Name": "c0"}], "Nodes": [{"Name": "n0"}]}


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Runs it in this process, with lines on standard input."""

    def run(*arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        try:
            code = numacore.main(arguments)
        except SystemExit as end:
            code = int(str(end.code))
        sys.stdout.flush()
        said = capfdbinary.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out.decode(), said.err.decode())

    return run


def test_it_is_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "numacore", "score", "--volcano", "1.15"],
        cwd=ROOT,
        input=json.dumps(CASE) + "\nnothing\n",
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)["id"] == "one"
    assert (done.returncode, done.stderr.split(":")[0]) == (1, "line 2")


def test_score_answers_each_line(command: Command) -> None:
    done = command(
        "score", "--volcano", "1.15", lines=json.dumps(CASE) + "\n\n" + json.dumps(CASE | {"ID": "two"})
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["one", "two"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_bad_line_is_named_and_the_others_go_on(command: Command) -> None:
    done = command("score", lines="{}\n" + json.dumps(CASE) + "\nnothing\n")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["one"]
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["line 1", "line 3"]
    assert done.returncode == 1


def test_a_version_known_from_documents_says_so(command: Command) -> None:
    done = command("score", "--volcano", "1.9", lines=json.dumps(CASE))
    assert done.stderr.startswith("Volcano 1.9: its rules are taken from documents")
    assert done.returncode == 0


@pytest.mark.parametrize("arguments", [[], ["guess"], ["score", "--volcano", "0.1"]])
def test_a_wrong_command_says_what_is_possible(arguments: list[str], command: Command) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert "usage: python -m numacore" in done.stderr


POD = {"UID": "u", "Containers": [{"Name": "c0", "Requests": {"cpu": "2"}, "Limits": {"cpu": "2"}}]}
KUBELET_CASE = {
    "ID": "one",
    "Machine": [{"ID": 0, "Cores": [{"ID": 0, "Socket": 0, "Threads": [0, 1]}]}],
    "Config": {"TopologyPolicy": "none", "CPUPolicy": "none", "MemoryPolicy": "None"},
    "Steps": [{"Admit": POD}],
}


def test_judge_answers_each_line_and_names_bad_ones(command: Command) -> None:
    bad = KUBELET_CASE | {"Config": {"TopologyPolicy": 1}}
    done = command("judge", "--kubelet", "v1.34.2", lines=f"{json.dumps(bad)}\n{json.dumps(KUBELET_CASE)}\n")
    assert [json.loads(line)["steps"][0]["admit"] for line in done.stdout.splitlines()] == [True]
    assert done.stderr.splitlines() == ["line 1: Expected `str`, got `int` - at `$.Config.TopologyPolicy`"]
    assert done.returncode == 1


def test_judge_says_of_which_kubelets_it_knows_from_documents_only(command: Command) -> None:
    done = command("judge", "--kubelet", "1.28", lines=json.dumps(KUBELET_CASE))
    assert done.stderr.startswith("Kubelet 1.28: its rules are taken from documents")
    assert done.returncode == 0


@pytest.mark.parametrize("version", ["1.20", "1.38", "2.30", "1", "latest"])
def test_judge_refuses_versions_that_it_does_not_know(version: str, command: Command) -> None:
    done = command("judge", "--kubelet", version)
    assert (done.returncode, "is not a version from 1.21 to 1.37" in done.stderr) == (2, True)


QUESTION = {
    "ID": "one",
    "File": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerpolicy: static\ntopologyManagerPolicy: Restricted\n",
    "DropIns": [{"Name": "10.yaml", "Text": ""}],
    "Machine": KUBELET_CASE["Machine"],
}


def test_check_tells_findings_and_the_kubelets_words(command: Command) -> None:
    done = command("check", "--kubelet", "1.37", lines=f"{json.dumps(QUESTION)}\n{json.dumps({'File': 1})}\n")
    (answer,) = map(json.loads, done.stdout.splitlines())
    assert (answer["id"], answer["starts"]) == ("one", False)
    assert [each["reason"]["code"] for each in answer["findings"]] == ["wrong-case", "not-conf", "value-case"]
    assert answer["words"] == [
        "invalid configuration: topologyManagerPolicy (--topology-manager-policy) "
        '"Restricted" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]'
    ]
    assert done.stderr.startswith("line 2: ")
    assert done.returncode == 1


def test_check_joins_the_restart_on_state_files(command: Command) -> None:
    files = {"CPU": '{"policyName":"static","defaultCpuSet":"0-1","checksum":0}'}
    asked = {
        "File": str(QUESTION["File"]).replace("Restricted", "none"),
        "Machine": QUESTION["Machine"],
        "State": files,
    }
    done = command("check", "--kubelet", "1.36", lines=json.dumps(asked))
    answer = json.loads(done.stdout)
    assert answer["restart"]["survives"] is False
    assert "differs from state checkpoint policy" in answer["words"][0]
