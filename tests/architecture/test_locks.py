"""Lock files carry versions and hashes, and no word about where packages come from."""

import json
import re
import tomllib
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.architecture import source
from tests.servers import ROOT

REQUIREMENTS = ("requirements/dev.txt", "requirements/web.txt", "requirements/agent.txt")
PINNED = re.compile(r"^([a-z0-9._-]+)==([^ ;\\]+)")


def lines(name: str) -> list[str]:
    joined = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


def versions(name: str) -> dict[str, str]:
    return {match[1]: match[2] for line in lines(name) if (match := PINNED.match(line))}


@pytest.fixture(scope="module")
def package_lock() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_it_pins_every_python_package_with_hashes(name: str) -> None:
    assert not [line for line in lines(name) if not PINNED.match(line) or "--hash=sha256:" not in line]


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_it_names_no_index_and_no_address(name: str) -> None:
    assert not re.findall(
        r"https?://|--(?:index|extra-index|find-links|trusted)\S*", (ROOT / name).read_text()
    )


@pytest.mark.parametrize("name", REQUIREMENTS[1:])
def test_it_ships_what_it_tested(name: str) -> None:
    tested = versions("requirements/dev.txt")
    assert {package: tested.get(package) for package in versions(name)} == versions(name)


@pytest.mark.parametrize(
    ("name", "rooms"),
    [
        ("requirements/web.txt", ("numaweb", "policies", "monitoring", "numacore")),
        ("requirements/agent.txt", ("numaagent", "numacore")),
    ],
)
def test_it_locks_every_package_that_an_image_imports(name: str, rooms: tuple[str, ...]) -> None:
    imported = {
        each.partition(".")[0]
        for file, tree in source.product()
        if file.startswith(rooms)
        for each in source.imports(tree)
    }
    owners = packages_distributions()
    needed = {package: owners[package] for package in imported & owners.keys()}
    locked = set(versions(name))
    assert needed
    assert not {
        package: found
        for package, found in needed.items()
        if not locked & {re.sub(r"[._]", "-", each.lower()) for each in found}
    }


def test_it_gives_the_agent_only_its_own_packages() -> None:
    assert not {"django", "celery", "numpy", "redis"} & set(versions("requirements/agent.txt"))


def test_it_locks_every_dependency_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = [re.split(r"[\[<>=!~; ]", each)[0] for group in groups for each in group]
    names = {re.sub(r"[._]", "-", each.lower()) for each in wanted}
    assert not names - set(versions("requirements/dev.txt"))


def test_it_checks_every_browser_package_and_names_no_download(package_lock: dict[str, Any]) -> None:
    packages = {name: each for name, each in package_lock["packages"].items() if name}
    assert len(packages) > 5
    assert not [name for name, each in packages.items() if "resolved" in each or "integrity" not in each]
