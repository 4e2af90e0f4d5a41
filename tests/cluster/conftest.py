"""One real control plane for all tests of this folder, clean for each of them, or one of a test's own where it is to be broken.

The programs are built before the first test and its clock, since from nothing that takes minutes.
"""

import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests import goprograms, servers
from tests.cluster import programs as go
from tests.cluster.cleaning import clean, make_namespace
from tests.cluster.controlplane import ControlPlane
from tests.cluster.programs import Programs

BUILT = pytest.StashKey[Programs | str]()
"""The programs, or what the machine lacks for building them."""
HERE = Path(__file__).parent
TIMEOUT_SECONDS = 400
"""Longer than elsewhere: a test may start a control plane twice, and each step of that has a limit of its own."""
NUMBERS = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any("programs" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly:
        session.config.stash[BUILT] = _built()


def _built() -> Programs | str:
    try:
        return go.control_plane()
    except goprograms.LackingError as lacking:
        return str(lacking)
    except subprocess.CalledProcessError as failure:
        pytest.exit(f"{failure}; what Go said stands above", returncode=1)


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> Programs:
    built = pytestconfig.stash[BUILT]
    if isinstance(built, str):
        pytest.skip(f"{servers.NOT_HERE} {built}")
    return built


@pytest.fixture(scope="session")
def shared_plane(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(programs, tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture
def plane(shared_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane of the run, without anything that an earlier test made. It stays up: to break one, take `own_plane`."""
    yield shared_plane
    clean(shared_plane)


@pytest.fixture
def own_plane(programs: Programs, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that a test may kill, empty and start again; it costs some ten seconds."""
    with ControlPlane(programs, tmp_path) as plane:
        yield plane


@pytest.fixture
def namespace(plane: ControlPlane) -> str:
    """A fresh namespace in which pods can be made at once; `plane` takes it away."""
    name = f"test-{next(NUMBERS)}"
    make_namespace(plane, name)
    return name
