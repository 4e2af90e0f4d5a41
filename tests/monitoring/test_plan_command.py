"""`manage.py plan` and `lint`: the same answers in a terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from monitoring.models import Cluster
from monitoring.selectors import planning
from monitoring.services import endpoints
from tests.monitoring import planned

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The newest state is in this process; nobody is asked for more."""
    planning.forget()
    monkeypatch.setattr(endpoints, "ask_once", lambda _nodes: [])
    yield
    planning.forget()


@pytest.fixture
def cluster() -> Cluster:
    return planned.cluster()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "job.yaml"
    made.write_text(planned.job("5"))
    return made


def run(*arguments: object, ends: int = 0) -> str:
    out = io.StringIO()
    try:
        call_command(*map(str, arguments), stdout=out)
        code = 0
    except SystemExit as end:
        code = int(str(end.code))
    assert code == ends
    return out.getvalue()


def test_it_prints_the_plan(cluster: Cluster, file: Path) -> None:
    text = run("plan", file)
    assert text.startswith("Job/train/worker: 1 of 4 nodes would take it. Best: wide, CPUs 3-7 on NUMA 0, 1.")
    assert "\n  wide  admitted  CPUs 3-7 NUMA 0, 1  x1" in text
    assert "NUMA node 1 comes nearest: 4 of 4 CPUs are free there, 5 are asked for." in text


def test_it_reads_standard_input_and_says_what_would_help(
    cluster: Cluster, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(file.read_text()))
    text = run("plan", "-", "--node", "strict", ends=1)
    assert "Container “main” asks for 4 CPUs; 1 more would be refused." in text


def test_it_imagines_another_policy(cluster: Cluster, file: Path) -> None:
    assert "None of 4 nodes would take it." in run("plan", file, "--policy", "single-numa-node", ends=1)


def test_it_lints(cluster: Cluster, tmp_path: Path, file: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(planned.job(policy="Restricted"))
    text = run("lint", wrong, ends=1)
    assert "error spec.tasks[0].topologyPolicy: The policy “Restricted” is written otherwise" in text
    assert run("plan", wrong, "--lint", ends=1) == text
    assert "warning" in run("lint", file)


def test_it_speaks_chinese(cluster: Cluster, file: Path) -> None:
    assert "4 个节点中有 1 个会接纳它。" in run("plan", file, "--language", "zh-hans")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "/no/such/file"), "/no/such/file"),
        (("plan", "{file}", "--cluster", "west"), "name one of east"),
        (("plan", "{file}", "--node", "nowhere"), "no node nowhere"),
        (("plan", "{file}", "--policy", "strict"), "invalid choice"),
        (("plan", "{wrong}"), "document 1: It is neither YAML nor JSON, at line 1, column 5"),
    ],
)
def test_it_says_what_is_wrong(
    arguments: tuple[str, ...], words: str, cluster: Cluster, file: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("a: b: c")
    with pytest.raises(CommandError, match=words):
        run(*(each.format(file=file, wrong=wrong) for each in arguments))


def test_it_writes_what_rest_answers(cluster: Cluster, file: Path) -> None:
    answer = json.loads(run("plan", file, "--json", "--node", "strict", "--language", "zh-hans", ends=1))
    (group,) = answer["groups"]
    (node,) = group["nodes"]
    assert (node["node"], node["outcome"]) == ("strict", "refused")
    advised = {each["name"]: each for each in node["trace"]["advice"]}
    assert (advised["cpu"]["value"], advised["cpu"]["step"]) == ("4", "1")
    assert advised["cpu"]["text"].startswith("容器")


def test_the_linter_writes_json_too(cluster: Cluster, file: Path) -> None:
    (group,) = json.loads(run("lint", file, "--json"))["groups"]
    assert group == {"workload": "Job/train/worker", "findings": group["findings"]}


def test_workloads_may_stand_together_in_a_terminal_too(cluster: Cluster, tmp_path: Path) -> None:
    both = tmp_path / "both.yaml"
    both.write_text(f"{planned.job('4')}---\n{planned.job('2', replicas=2)}")
    assert "x2" in run("plan", both, "--node", "wide")
    text = run("plan", both, "--node", "wide", "--together", ends=1)
    assert "each node as if the pods of Job/train/worker stood on it already" in text
    assert "Volcano, simulated allocation: Container “main” would get the CPUs 4-7 on NUMA 1." in text
