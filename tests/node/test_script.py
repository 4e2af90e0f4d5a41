"""The script that a person runs, on a real node: the same change, the same way back, without a Job."""

from typing import Any

import pytest

from numacore.change import editing, script
from numacore.change.order import CPU_STATE
from numacore.change.script import Given
from tests.appliers.contract import WISH
from tests.node import pods
from tests.node.applier import HOME, Applier
from tests.node.lab import Lab
from tests.node.test_changes import NONE
from tests.node.test_faults import SOON, Before, is_new

FILE = "/root/change.sh"


@pytest.fixture
def plain(shared_lab: Lab) -> Lab:
    """A node whose kubelet aligns nothing, with a pod on it."""
    shared_lab.fresh(*NONE)
    shared_lab.plane.api.create(pods.pinned("one", cpus=2))
    shared_lab.until_phase("one", "Running")
    return shared_lab


def put(lab: Lab, **fields: Any) -> Given:
    """A script on the node; `keys` and what else an order has win."""
    keys = fields.pop("keys", WISH)
    order = Applier(lab).order(keys, **{"state_files": (CPU_STATE,), **fields})
    given = Given(order=order, text=editing.edit(lab.settings(), keys), intended=keys)
    lab.put(FILE, script.script(given))
    return given


def run(lab: Lab, word: str) -> tuple[int, str]:
    """Exit status and last line of the script."""
    said = lab.run(f"sh {FILE} {word} 2>&1; echo $?").strip().splitlines()
    return int(said[-1]), said[-2]


@pytest.mark.short
def test_a_change_by_hand(plain: Lab) -> None:
    before = Before(plain)
    given = put(plain)
    assert run(plain, "look")[0] == 0
    before.is_back()
    assert run(plain, "apply") == (0, f"applied: {given.order.path}")
    is_new(plain)
    assert run(plain, "apply")[1].startswith("unchanged:")


def test_a_kubelet_that_will_not_start_goes_back(plain: Lab) -> None:
    before = Before(plain)
    put(plain, keys={**WISH, "reservedSystemCPUs": "64"}, healthy_within=60)
    assert run(plain, "apply") == (1, "restored: it did not work, and the node is as it was")
    before.is_back()


def test_killed_midway_the_dead_man_goes_back(plain: Lab) -> None:
    before = Before(plain)
    put(plain, **SOON)
    plain.run(
        f"sh {FILE} apply > /dev/null 2>&1 & until [ -e {HOME}/undo/state-taken ] && ! systemctl is-active --quiet kubelet;"
        " do sleep 0.1; done; kill -9 $!"
    )
    before.until_undone()
