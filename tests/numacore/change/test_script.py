"""The script and the playbook bring exactly the text that the preview showed, in any shell, whatever stands in it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from numacore.change import order as orders
from numacore.change import script, undo
from numacore.change.order import Order
from numacore.change.script import Given, ScriptError

BEFORE = "kind: KubeletConfiguration\n"


def given(text: str | None, *, node: str = "node-a", **more: Any) -> Given:
    rest: dict[str, Any] = {"state_files": ("cpu_manager_state", "memory_manager_state")} | more
    order = Order(
        act="apply",
        node=node,
        epoch=5,
        rollout="by hand",
        path="/var/lib/kubelet/config.yaml",
        before=orders.sha256(BEFORE),
        after=orders.sha256(text),
        expires=2_000_000_000,
        **rest,
    )
    return Given(order=order, text=text, diff=("-old", "+new"), intended={"cpuManagerPolicy": "static"})


def called(text: str, function: str, folder: Path, shell: str = "/bin/sh") -> bytes:
    """What one of the script's functions prints. What checks and acts is left out."""
    file = folder / "part.sh"
    file.write_bytes(text.partition("set -u\n")[0].encode() + function.encode() + b"\n")
    return subprocess.run([shell, str(file)], capture_output=True, check=True, cwd=folder).stdout


@pytest.mark.parametrize(
    "text",
    [
        "a: b\n",
        "a: b",
        "a: b\r\nc: d\r\n",
        "# 运维\na: b\n",
        "END_OF_FILE\nrm -rf nothing\n",
        "",
        "\n\n",
        "\ta\\n: $(touch made) `touch made` '\"${HOME}\n",
        "# \x1b[2Jnothing to see\n",
    ],
)
@pytest.mark.parametrize("shell", ["/bin/dash", "/bin/bash"])
def test_the_text_arrives_byte_for_byte(text: str, shell: str, tmp_path: Path) -> None:
    assert called(script.script(given(text)), "new_text", tmp_path, shell) == text.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["part.sh"]


def test_the_dead_mans_units_are_the_appliers(tmp_path: Path) -> None:
    asked = given("a: b\n")
    text = script.script(asked)
    assert called(text, "undo_service", tmp_path).decode() == undo.service(asked.order)
    root = f"ROOT={tmp_path}\n"
    assert called(text, f"{root}undo_state_service", tmp_path).decode() == undo.state_service(asked.order, ())
    (tmp_path / "memory_manager_state").touch()
    assert called(text, f"{root}undo_state_service", tmp_path).decode() == undo.state_service(
        asked.order, ("memory_manager_state",)
    )


def test_the_timer_fires_at_a_fixed_hour_as_well(tmp_path: Path) -> None:
    text = called(script.script(given("a: b\n")), "date() { echo 1796000000; }\nundo_timer", tmp_path)
    assert b"OnCalendar=1796000000\n" in text
    real = called(script.script(given("a: b\n")), "undo_timer", tmp_path).decode()
    assert undo.timer(given("a: b\n").order, real.partition("OnCalendar=")[2].split("\n")[0]) == real
    assert real.partition("OnCalendar=")[2].split("\n")[0].endswith(" UTC")


@pytest.mark.parametrize(
    ("state", "there"),
    [
        ('{"policyName":"static","checksum":1}', True),
        ('{"policyName": "none"}', False),
        ('{"data":"{\\"policyName\\":\\"static\\"}","checksum":1}', True),
        (None, False),
    ],
)
def test_a_state_file_tells_what_is_in_force(state: str | None, there: bool, tmp_path: Path) -> None:
    if state is not None:
        (tmp_path / "cpu_manager_state").write_text(state)
    text = script.script(given("a: b\n"))
    asking = text[text.index("has_policy() {") : text.index("room() {")]
    said = called(text, f"{asking}ROOT={tmp_path}\nif in_force; then echo yes; fi 2>/dev/null", tmp_path)
    assert (said == b"yes\n") is there


def test_a_line_of_the_diff_stays_a_comment() -> None:
    shown = Given(order=given("a: b\n").order, text="a: b\n", diff=("+\x1b[2Jx\x85rm -rf /\u2028rm",))
    lines = [line for line in script.script(shown).split("\n") if "rm -rf" in line]
    assert lines == ["#   +?[2Jx?rm -rf /?rm"]


@pytest.mark.parametrize("more", [{"node": "a'; rm -rf /; '"}, {"machine_id": "$(id)"}])
def test_what_would_be_more_than_a_word_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(ScriptError, match="cannot stand in a script"):
        script.script(given("a: b\n", **more))


def test_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(ScriptError, match="cpuManagerPolicy"):
        script.script(Given(order=given("").order, text="", intended={"cpuManagerPolicy": "a; b"}))


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))  # type: ignore[arg-type]


def test_the_playbook_brings_the_same_script_to_each_node_in_turn() -> None:
    nodes = [given("a: '{{ b }}'\n"), given("c: d\r\n", node="node-b")]
    plays = yaml.load(script.playbook(nodes), _Loader)
    assert [play["hosts"] for play in plays] == ["node-a", "node-b"]
    assert all(play["any_errors_fatal"] is True for play in plays)
    for play, each in zip(plays, nodes, strict=True):
        copied = play["tasks"][1]["ansible.builtin.copy"]
        assert copied["content"] == script.script(each)
        commands = [task["ansible.builtin.command"] for task in play["tasks"][2:]]
        assert commands == [f"/bin/sh {copied['dest']} look", f"/bin/sh {copied['dest']} apply"]
