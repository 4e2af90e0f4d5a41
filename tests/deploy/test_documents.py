"""docs/*/helm.md says of every value what stands in values.yaml, and of what stays what stays."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.helm import CHART, WEB
from tests.deploy.test_life import KEPT
from tests.servers import ROOT

ROW = re.compile(r"^\| `([\w.]+(?:\.\*)?)` \| (?:`(.*)`)? \| .+ \|$", re.MULTILINE)


def leaves(values: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_value_is_in_the_table_with_its_default(language: str) -> None:
    text = (ROOT / "docs" / language / "helm.md").read_text(encoding="utf-8")
    tables = text[text.rindex("\n## ") :].split(f"`charts/{WEB}/values.yaml`")
    assert len(tables) == 2
    for table, folder in zip(tables, (CHART, CHART / "charts" / WEB), strict=True):
        values = yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8"))
        rows = dict(ROW.findall(table))
        groups = tuple(name.removesuffix("*") for name in rows if name.endswith(".*"))
        there = dict(leaves(values))
        single = {name: value for name, value in there.items() if not name.startswith(groups or ("*",))}
        told = {name: default for name, default in rows.items() if not name.endswith(".*")}
        assert set(told) == set(single)
        for name, default in told.items():
            assert json.loads(default) == at(values, name), name
        assert [group for group in groups if not any(name.startswith(group) for name in there)] == []


def at(values: dict[str, Any], path: str) -> Any:
    found: Any = values
    for key in path.split("."):
        found = found[key]
    return found


def test_the_rules_of_the_chart_are_those_of_the_documents() -> None:
    ours, theirs = CHART / "files" / "prometheus" / "rules.yaml", ROOT / "docs" / "prometheus" / "rules.yaml"
    assert yaml.safe_load(ours.read_text(encoding="utf-8")) == yaml.safe_load(
        theirs.read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_stays_is_listed(language: str) -> None:
    text = (ROOT / "docs" / language / "helm.md").read_text(encoding="utf-8")
    assert [each for each in KEPT if f"`{each.split()[1]}`" not in text] == []
