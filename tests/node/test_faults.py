"""What may go wrong around a change, on a real node: afterwards it is the whole old one or the whole new one, with a kubelet that lasts."""

import pytest

from numacore.change.order import CPU_STATE, Order
from tests.appliers.contract import WISH, code
from tests.node import pods
from tests.node.applier import HOME, Applier
from tests.node.lab import Lab
from tests.node.test_changes import NONE

STANDS = ("stop", "take", "write", "clear")
"""Steps after which the kubelet stands still, so that no Job could begin here any more."""
RUNS = ("keep", "arm", "start", "health", "in-force")
"""The others."""
SOON = {"healthy_within": 60, "steady_for": 20, "dead_man": 120}
"""Seconds of an order whose dead-man is waited for."""
SOONER = {"healthy_within": 10, "steady_for": 5, "dead_man": 90}
"""The same where the applier never comes to the start of the kubelet. One that is so slow that its dead-man is quicker finds its new file gone."""
LASTING = """
pid() { systemctl show kubelet.service --property=MainPID --value; }
for try in $(seq 60); do
  before=$(pid); sleep 20
  [ "$before" != 0 ] && [ "$before" = "$(pid)" ] && exit 0
done
exit 1
"""
"""Ends when a kubelet has been the same process for 20 s."""


@pytest.fixture
def plain(shared_lab: Lab) -> Lab:
    """A node whose kubelet aligns nothing, with a pod on it."""
    shared_lab.fresh(*NONE)
    shared_lab.plane.api.create(pods.pinned("one", cpus=2))
    shared_lab.until_phase("one", "Running")
    return shared_lab


class Before:
    """The node as it was, to be compared with."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._seen = self._look()

    def _look(self) -> tuple[str, object, dict[str, str]]:
        return self._lab.settings(), self._lab.state(CPU_STATE), self._lab.containers("one")

    def is_back(self) -> None:
        assert self._look() == self._seen
        self._lab.run(LASTING)

    def until_undone(self) -> None:
        """Returns when the dead-man has gone back."""
        self._lab.run(f"until [ -e {HOME}/undo/undone ] && [ ! -e {HOME}/undo/armed ]; do sleep 0.5; done")
        self.is_back()


def change(applier: Applier, **fields: object) -> Order:
    return applier.order(WISH, **{"state_files": (CPU_STATE,), **fields})


def is_new(lab: Lab) -> None:
    assert f"topologyManagerPolicy: {WISH['topologyManagerPolicy']}" in lab.settings()
    assert lab.configz()["topologyManagerPolicy"] == WISH["topologyManagerPolicy"]
    assert lab.state(CPU_STATE)["policyName"] == "static"
    assert list(lab.containers("one")) == ["one"]
    lab.run(LASTING)


@pytest.mark.parametrize(
    "step", [pytest.param(each, marks=pytest.mark.short if each == "write" else ()) for each in STANDS]
)
def test_killed_while_the_kubelet_stands_the_dead_man_goes_back(step: str, plain: Lab) -> None:
    before, applier = Before(plain), Applier(plain)
    applier.killed(change(applier, **SOONER), step)
    before.until_undone()


def test_a_reboot_midway_comes_back_to_the_old_settings(plain: Lab) -> None:
    settings, applier = plain.settings(), Applier(plain)
    applier.killed(change(applier, **SOON), "write")
    plain.reboot()
    plain.run(f"until [ -e {HOME}/undo/undone ] && [ ! -e {HOME}/undo/armed ]; do sleep 0.5; done")
    assert plain.settings() == settings
    plain.run(LASTING)
    assert plain.configz()["topologyManagerPolicy"] == "none"


def test_killed_while_the_kubelet_runs_the_next_one_goes_on(plain: Lab) -> None:
    applier = Applier(plain)
    order = change(applier, dead_man=3600)
    for step in RUNS:
        applier.killed(order, step)
    answer = applier.give(order)
    assert (answer.outcome, answer.words) == ("applied", "")
    is_new(plain)
    assert applier.leftovers() == ""


def test_without_d_bus_nothing_is_touched(plain: Lab) -> None:
    before, applier = Before(plain), Applier(plain)
    plain.run("systemctl stop dbus.socket dbus.service")
    answer = applier.give(change(applier))
    assert (answer.outcome, code(answer)) == ("refused", "no-dbus"), answer.words
    before.is_back()
    assert applier.leftovers() == ""


def test_d_bus_that_goes_away_once_the_kubelet_is_stopped(plain: Lab) -> None:
    before, applier = Before(plain), Applier(plain)
    order = change(applier, **SOON)
    name = applier.start(order)
    applier.until_noted(order, "stop")
    plain.run("systemctl stop dbus.socket dbus.service")
    before.until_undone()
    plain.run("systemctl start dbus.socket dbus.service")
    assert applier.answer(name).outcome in ("failed", "restored")


def test_a_full_disk_is_told_before_anything_is_touched(plain: Lab) -> None:
    before, applier = Before(plain), Applier(plain)
    plain.run(
        "fallocate --length=$(($(df --output=avail --block-size=1 / | tail -1) - 100000)) /full || true"
    )
    answer = applier.give(change(applier))
    plain.run("rm /full")
    assert (answer.outcome, code(answer)) == ("refused", "no-room"), answer.words
    before.is_back()


def test_the_control_plane_is_cut_off_after_the_write(plain: Lab) -> None:
    """The node needs nobody: its applier goes on, and the answer comes when somebody hears it again."""
    applier = Applier(plain)
    order = change(applier)
    name = applier.start(order)
    applier.until_noted(order, "write")
    plain.plane.apiserver.kill()
    try:
        plain.run(f"until [ -e {HOME}/changes/{order.epoch}/answer.json ]; do sleep 0.5; done")
    finally:
        plain.plane.apiserver.start()
    answer = applier.answer(name)
    assert (answer.outcome, answer.source) == ("applied", "state-files")
    is_new(plain)


def test_a_kubelet_that_crashes_on_a_pod_goes_back(plain: Lab) -> None:
    """A huge page size that the machine does not have ends the memory manager's calculation and with it the kubelet (seen on 1.37)."""
    before, applier = Before(plain), Applier(plain)
    keys = {**WISH, "topologyManagerPolicy": "best-effort", "memoryManagerPolicy": "Static"}
    order = applier.order(keys, state_files=(CPU_STATE, "memory_manager_state"))
    name = applier.start(order)
    applier.until_noted(order, "stop")
    amounts = {"cpu": "1", "memory": "64Mi", "hugepages-4Mi": "4Mi"}
    plain.plane.api.create(pods.waiting("huge", resources={"requests": amounts, "limits": amounts}))
    answer = applier.answer(name)
    assert (answer.outcome, code(answer)) == ("restored", "kubelet-dies"), answer.words
    before.is_back()
    assert "panic" in plain.run("journalctl --unit=kubelet --no-pager --output=cat | grep -m 1 panic")


def test_the_optimal_distance_is_switched_on(lab: Lab) -> None:
    applier = Applier(lab)
    options = {"prefer-closest-numa-nodes": "true"}
    answer = applier.give(applier.order({"topologyManagerPolicyOptions": options}))
    assert (answer.outcome, answer.source) == ("applied", "configz")
    assert lab.configz()["topologyManagerPolicyOptions"] == options
