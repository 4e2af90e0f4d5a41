"""One emulated node for all tests of this folder, as fresh for each of them as it was when it joined.

Programs, trees and the disk are made before the first test and its clock, since from nothing that takes minutes. A machine that
lacks something for them fails these tests and says what to install: a real kubelet is what they are about. With
NUMAWEB_TEST_NODE=optional it skips them by that name.
"""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import goprograms
from tests.cluster import programs as control
from tests.cluster.controlplane import ControlPlane
from tests.node import disk as disks
from tests.node import images, needs, network
from tests.node import machine as machines
from tests.node import programs as node_programs
from tests.node.disk import Disk
from tests.node.lab import Lab
from tests.node.lacking import lacks
from tests.node.machine import Machine
from tests.node.network import Network, NetworkError

HERE = Path(__file__).parent
TIMEOUT_SECONDS = 3600
"""Longer than elsewhere: everything on the node is emulated, and each step has a limit of its own."""


class Parts(NamedTuple):
    """What a lab is made of."""

    programs: control.Programs
    disk: Disk
    agent: Path
    """The archive of the agent's image."""


PARTS = pytest.StashKey[Parts | str]()
"""They, or what the machine lacks for them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any("shared_lab" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly:
        session.config.stash[PARTS] = _parts()


def _parts() -> Parts | str:
    say = goprograms.announce
    try:
        needs.check()
        programs = control.control_plane(say)
        disk = disks.disk(node_programs.node(say), say)
        return Parts(programs, machines.booted(disk, say), images.agent(say))
    except goprograms.LackingError as lacking:
        return str(lacking)
    except subprocess.CalledProcessError as failure:
        pytest.exit(f"{failure}; what Go said stands above", returncode=1)


@pytest.fixture(scope="session")
def shared_lab(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab of the run, in whatever state the last test left it."""
    parts = pytestconfig.stash[PARTS]
    if isinstance(parts, str):
        lacks(parts)
    plane_folder = tmp_path_factory.mktemp("plane")
    with contextlib.ExitStack() as stack:
        try:
            wire = stack.enter_context(Network())
        except NetworkError as error:
            lacks(str(error))
        # Sockets of ssh and QEMU lie in it: their paths may have 100 letters.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="numaweb-node-"))
        plane = stack.enter_context(ControlPlane(parts.programs, plane_folder, address=network.HOST))
        lab = Lab(plane, stack.enter_context(Machine(parts.disk, wire, Path(folder))))
        lab.join(parts.agent)
        yield lab


@pytest.fixture
def lab(shared_lab: Lab) -> Lab:
    """A node that has just joined: single-numa-node, nothing on it, its kubelet just started. Some seconds for each test."""
    shared_lab.fresh()
    return shared_lab
