"""helm for all tests of this folder, and one control plane where something is installed. Both are built before the first test and its clock."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import goprograms, servers
from tests.cluster import programs as cluster
from tests.cluster.controlplane import ControlPlane
from tests.cluster.programs import Programs
from tests.deploy import programs
from tests.deploy.helm import Helm

HERE = Path(__file__).parent
TIMEOUT_SECONDS = 600
"""Longer than elsewhere: whoever asks first for a release's life waits for all of it, and each step of helm has a limit of its own."""
BUILT = pytest.StashKey[tuple[Path, Programs] | str]()
"""The programs, or what the machine lacks for building them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any("built" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly:
        session.config.stash[BUILT] = _built()


def _built() -> tuple[Path, Programs] | str:
    try:
        return programs.helm(), cluster.control_plane()
    except goprograms.LackingError as lacking:
        return str(lacking)
    except subprocess.CalledProcessError as failure:
        pytest.exit(f"{failure}; what Go said stands above", returncode=1)


@pytest.fixture(scope="session")
def built(pytestconfig: pytest.Config) -> tuple[Path, Programs]:
    found = pytestconfig.stash[BUILT]
    if isinstance(found, str):
        pytest.skip(f"{servers.NOT_HERE} {found}")
    return found


@pytest.fixture(scope="session")
def helm(built: tuple[Path, Programs], tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Without a cluster."""
    return Helm(built[0], tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def plane(built: tuple[Path, Programs], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(built[1], tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def administrator(helm: Helm, plane: ControlPlane) -> Helm:
    """In that cluster."""
    return helm._replace(kubeconfig=plane.kubeconfig_file)
