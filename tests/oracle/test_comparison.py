"""What counts as the same answer, and what is kept of a case that has none."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import __main__ as command
from tests.oracle import comparison, program, shrinking
from tests.oracle.comparison import Answer, Case

CASE = {"ID": "one"}


def answer(shared: str, **more: Any) -> Answer:
    return {"id": "one", "steps": [{"admit": True, "shared": shared}]} | more


def always(*answers: Answer) -> comparison.Ask:
    """A program that gives these answers in turn."""
    asked = iter(range(10_000))
    return lambda cases: [answers[next(asked) % len(answers)] for _ in cases]


def differ(oracle: comparison.Ask, engine: Answer) -> int:
    return len(comparison.differences([CASE], oracle, always(engine)))


def test_equal_answers_agree() -> None:
    assert differ(always(answer("0-3")), answer("0-3")) == 0


def test_other_answers_differ() -> None:
    assert differ(always(answer("0-3")), answer("0-2")) == 1


@pytest.mark.parametrize("nothing", [{"start_error": ""}, {"state": None}, {"open": []}])
def test_what_says_nothing_is_no_difference(nothing: dict[str, Any]) -> None:
    assert differ(always(answer("0-3", **nothing)), answer("0-3")) == 0


def test_no_steps_are_no_steps() -> None:
    refused = {"id": "one", "start_error": "no"}
    assert differ(always(refused | {"steps": None}), refused | {"steps": []}) == 0


def test_an_open_choice_agrees_whichever_way_it_falls() -> None:
    ours = answer("0-3", open=[answer("0-2")])
    assert differ(always(answer("0-2")), ours) == 0
    assert differ(always(answer("0-2"), answer("0-3")), ours) == 0


def test_a_choice_that_we_do_not_know_of_differs() -> None:
    """The first answer is not ours, another one is: the kubelet's choice is open and ours is not."""
    assert differ(always(answer("0-2"), answer("0-3")), answer("0-3")) == 1


def test_where_we_stop_counting_it_does_not_matter_which_devices() -> None:
    def held(device: int, shared: str = "0-3") -> Answer:
        step = {"admit": True, "devices": {"c0": {"gpu": [[device]]}}, "shared": shared}
        return {"id": "one", "steps": [step]}

    many = held(0) | {"open": [held(device) for device in range(1, comparison.MANY)]}
    assert differ(always(held(99)), many) == 0
    assert differ(always(held(99, shared="0-2")), many) == 1
    assert differ(always(held(99)), held(0) | {"open": [held(1)]}) == 1


def test_words_about_a_hang_are_ours_alone() -> None:
    theirs = {
        "id": "one",
        "steps": [{"admit": False, "reason": "Hang", "message": "kubelet hangs", "shared": ""}],
    }
    ours = {"id": "one", "steps": [{"admit": False, "reason": "Hang", "message": "it loops", "shared": ""}]}
    assert differ(always(theirs), ours) == 0
    ours["steps"][0]["reason"] = "Panic"
    assert differ(always(theirs), ours) == 1


def kept_file(*kinds: str, checksum: int = 1) -> Answer:
    entries = {"entries": {"p": {"c": [{"type": kind, "size": 1} for kind in kinds]}}}
    text = json.dumps(entries | {"checksum": checksum, "data": json.dumps(entries), "dataChecksum": checksum})
    return answer("0-3", state={"memory": text})


def test_the_order_of_blocks_in_a_file_is_open() -> None:
    assert differ(always(kept_file("a", "b", checksum=1)), kept_file("b", "a", checksum=2)) == 0
    assert differ(always(kept_file("a", "b")), kept_file("a", "c")) == 1


def test_so_is_it_in_a_file_from_before_1_37() -> None:
    def kept(*kinds: str, checksum: int) -> Answer:
        blocks = [{"type": kind, "size": 1} for kind in kinds]
        return answer(
            "0-3", state={"memory": json.dumps({"entries": {"p": {"c": blocks}}, "checksum": checksum})}
        )

    assert differ(always(kept("a", "b", checksum=1)), kept("b", "a", checksum=2)) == 0
    assert differ(always(kept("a", checksum=1)), kept("a", checksum=2)) == 1


def test_a_checksum_counts_where_there_is_one_order() -> None:
    assert differ(always(kept_file("a", checksum=1)), kept_file("a", checksum=2)) == 1


def shrunk(case: Case, *needed: str) -> Case:
    return shrinking.shrunk(case, lambda some: all(word in json.dumps(some) for word in needed))


def test_a_case_is_shrunk_to_what_matters() -> None:
    cores = [{"ID": nth, "Threads": [nth]} for nth in range(3)]
    case = {
        "ID": "one",
        "Machine": [{"ID": nth, "Distances": [10, 20, 30], "Cores": cores} for nth in (0, 7, 9)],
        "Config": {"CPUOptions": {"this": "true", "that": "true"}, "Gates": {"Gate": True}},
        "Devices": [{"Resource": "gpu", "Devices": [{"ID": "d0"}]}],
        "Steps": [
            {"Remove": "a"},
            {"Admit": {"UID": "b", "Init": [{"Name": "i0"}], "Containers": [{"Name": "c0"}, {"Name": "c1"}]}},
        ],
    }
    assert shrunk(case, '"ID": 7', "that", "c1") == {
        "ID": "one",
        "Machine": [{"ID": 7, "Distances": [20], "Cores": []}],
        "Config": {"CPUOptions": {"that": "true"}, "Gates": {}},
        "Steps": [{"Admit": {"UID": "b", "Init": [], "Containers": [{"Name": "c1"}]}}],
    }


def test_shrinking_leaves_the_case_that_it_was_given_alone() -> None:
    case = {"Steps": [{"Remove": "a"}, {"Remove": "b"}]}
    assert shrunk(case, '"b"') == {"Steps": [{"Remove": "b"}]}
    assert case == {"Steps": [{"Remove": "a"}, {"Remove": "b"}]}


def test_shrinking_gives_up_after_so_many_tries() -> None:
    tried: list[Case] = []

    def never(case: Case) -> bool:
        tried.append(case)
        return False

    shrinking.shrunk({"Steps": [{"Remove": str(nth)} for nth in range(50)]}, never, most=7)
    assert len(tried) == 7


def test_the_command_prints_its_seed_and_keeps_what_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An engine that never knows an answer, and an oracle that has one: every case differs."""

    def oracle(_: Path, cases: Sequence[Case]) -> list[Answer]:
        return [{"id": case["ID"], "steps": [], "start_error": "no"} for case in cases]

    def silent(cases: Sequence[Case], minor: int) -> list[Answer]:
        return [{"id": case["ID"], "steps": []} for case in cases]

    monkeypatch.setattr(program, "oracle", lambda minor: tmp_path)
    monkeypatch.setattr(program, "ask_oracle", oracle)
    monkeypatch.setattr(program, "ask_engine", silent)
    monkeypatch.setattr(command, "shrink", lambda difference, binary, minor: difference)
    assert command.main(["--cases", "3", "--seed", "5", "--keep", "2", "--into", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "seed 5, 3 cases" in told
    assert "3 of 3 cases differ" in told
    assert sorted(file.name for file in tmp_path.glob("*.json")) == ["5-0.json", "5-1.json"]
    kept = json.loads((tmp_path / "5-0.json").read_text())
    assert kept["kubelet"] == [{"start_error": "no", "steps": []}]
    assert kept["case"]["ID"] == "5-0"
