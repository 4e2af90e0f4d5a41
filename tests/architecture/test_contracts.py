"""The contracts in .importlinter bite: a small copy of the rooms passes, and each kind of trespass is refused by name."""

import configparser
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.servers import ROOT

ROOMS = ("numaweb", "policies", "monitoring", "numacore", "numaagent", "numasim")

# Allowed all together: every room has something to import and something to be imported.
INNOCENT = {
    "numacore/cpuset.py": "import msgspec\nfrom collections.abc import Iterable\n",
    "numacore/topology.py": "from numacore import cpuset\n",
    "numacore/__main__.py": "import sys\nfrom numacore import topology\n",
    "numaagent/config.py": "import os\n",
    "numaagent/readers/sysfs.py": "from numaagent import config\nfrom numacore import topology\n",
    "numaagent/exporter/server.py": "from numaagent.readers import sysfs\n",
    "numaagent/applier.py": "from numaagent import config\n",
    "numaagent/__main__.py": "from numaagent.exporter import server\n",
    "numasim/tree.py": "from numaagent.exporter import server\n",
    "monitoring/models.py": "from django.db import models\nfrom numacore import topology\n",
    "monitoring/selectors.py": "from monitoring import models\n",
    "monitoring/services.py": "from monitoring import selectors\n",
    "monitoring/tasks.py": "from monitoring import services\n",
    "policies/models.py": "from monitoring import models\n",
    "policies/views.py": "from policies import models\nfrom monitoring import selectors\n",
    "numaweb/env.py": "import os\n",
    "numaweb/settings.py": "from numaweb import env\n",
    "numaweb/urls.py": "from policies import views\n",
}

# contract, module, the line added to it, what lint-imports must say about it
TRESPASSES = [
    ("core-is-pure", "numacore/cpuset.py", "import time", "numacore.cpuset -> time"),
    ("core-is-pure", "numacore/topology.py", "from pathlib import Path", "numacore.topology -> pathlib"),
    ("core", "numacore/cpuset.py", "from numacore import topology", "numacore.cpuset -> numacore.topology"),
    ("core", "numacore/helpers.py", "import math", "numacore.helpers"),
    (
        "two-sides-web",
        "numacore/topology.py",
        "from numaagent import config",
        "numacore.topology -> numaagent.config",
    ),
    ("two-sides-web", "monitoring/selectors.py", "import numasim", "monitoring.selectors -> numasim"),
    ("two-sides-node", "numaagent/config.py", "import django", "numaagent.config -> django"),
    (
        "two-sides-node",
        "numasim/tree.py",
        "from monitoring import models",
        "numasim.tree -> monitoring.models",
    ),
    ("node-side", "numaagent/config.py", "from numasim import tree", "numaagent.config -> numasim.tree"),
    ("web-side", "monitoring/selectors.py", "import policies", "monitoring.selectors -> policies"),
    ("web-side", "policies/views.py", "from numaweb import urls", "policies.views -> numaweb.urls"),
    ("agent", "numaagent/exporter/server.py", "from numaagent import applier", "server -> numaagent.applier"),
    ("applier", "numaagent/applier.py", "import subprocess", "numaagent.applier -> subprocess"),
    (
        "applier-alone",
        "numaagent/__main__.py",
        "from numaagent import applier",
        "numaagent.__main__ -> numaagent.applier",
    ),
    ("monitoring", "monitoring/services.py", "from monitoring import tasks", "services -> monitoring.tasks"),
    ("monitoring", "monitoring/utils.py", "", "monitoring.utils"),
    ("policies", "policies/models.py", "from policies import views", "policies.models -> policies.views"),
    ("policies", "policies/common.py", "", "policies.common"),
    ("project", "numaweb/env.py", "from numaweb import urls", "numaweb.env -> numaweb.urls"),
    ("project", "numaweb/misc.py", "", "numaweb.misc"),
    ("no-circles", "numaweb/env.py", "from numaweb import settings", "No cycles are allowed in numaweb."),
    ("settings", "numaweb/settings.py", "from monitoring import models", "settings -> monitoring.models"),
    ("models-are-bare", "monitoring/models.py", "import celery", "monitoring.models -> celery"),
]


def build(folder: Path, additions: Mapping[str, str]) -> Path:
    """The rooms in small, with these lines added to their modules."""
    for name in {*INNOCENT, *additions, *(f"{room}/__init__.py" for room in ROOMS)}:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(INNOCENT.get(name, "") + additions.get(name, ""))
    (folder / "tests" / "architecture").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "architecture" / "allow_list.py", folder / "tests" / "architecture")
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    surroundings = {**os.environ, "COLUMNS": "200"}  # no line is wrapped
    return subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True)


def by_contract(report: str) -> dict[str, str]:
    """What lint-imports found wrong, under the name in .importlinter of each broken contract."""
    options = configparser.ConfigParser()
    options.read(ROOT / ".importlinter")
    names = {options[section]["name"]: section.rpartition(":")[2] for section in options.sections()[1:]}
    found: dict[str, str] = {}
    current = ""
    for line in report.partition("Broken contracts")[2].splitlines():
        current = names.get(line, current)
        found[current] = found.get(current, "") + line + "\n"
    return found


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One run over a copy with every trespass at once; a run for each would take half a second each."""
    additions: dict[str, str] = {}
    for _, module, line, _ in TRESPASSES:
        additions[module] = additions.get(module, "") + line + "\n"
    done = lint(build(tmp_path_factory.mktemp("trespasses"), additions))
    assert done.returncode == 1, done.stdout
    return by_contract(done.stdout)


def test_it_lets_the_intended_directions_pass(tmp_path: Path) -> None:
    done = lint(build(tmp_path, {}))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("contract", "module", "line", "finding"), TRESPASSES)
def test_it_refuses(contract: str, module: str, line: str, finding: str, findings: dict[str, str]) -> None:
    assert finding in findings[contract], f"{line!r} in {module} passed"


def test_it_tries_every_contract() -> None:
    options = configparser.ConfigParser()
    options.read(ROOT / ".importlinter")
    assert {section.rpartition(":")[2] for section in options.sections()[1:]} == {
        each[0] for each in TRESPASSES
    }
