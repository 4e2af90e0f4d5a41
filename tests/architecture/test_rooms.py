"""What import contracts cannot show about the rooms."""

import ast
import re

import pytest

from tests.architecture import source
from tests.servers import ROOT

# Signals would let a lower room run code of a higher one without an import that anybody sees.
SIGNALS = (
    "axes.signals",
    "celery.signals",
    "django.contrib.auth.signals",
    "django.core.signals",
    "django.db.backends.signals",
    "django.db.models.signals",
    "django.dispatch",
)
BY_STRING = {"get_model", "import_string", "import_module", "__import__"}
RELATIONS = {"ForeignKey", "OneToOneField", "ManyToManyField"}
VARIABLE = re.compile(r"(NUMAWEB|NUMAAGENT|NUMASIM)_[A-Z0-9_]+")


def readable(name: str) -> str:
    file = ROOT / name
    assert file.exists(), f"{name} is missing"
    return file.read_text(encoding="utf-8")


def test_it_uses_no_signals() -> None:
    found = [
        f"{name}: {imported}"
        for name, tree in source.product()
        for imported in source.imports(tree)
        if imported.startswith(SIGNALS)
    ]
    assert not found


def test_it_fetches_nothing_by_its_name_in_a_string() -> None:
    found = [
        f"{name}:{call.lineno}: {function}"
        for name, tree in source.product()
        if "/migrations/" not in name
        for function, call in source.calls(tree)
        if function in BY_STRING
    ]
    assert not found


def test_it_points_from_model_to_model_without_strings() -> None:
    found = [
        f"{name}:{call.lineno}: {function}({target.value!r})"
        for name, tree in source.product()
        if "/migrations/" not in name
        for function, call in source.calls(tree)
        if function in RELATIONS and call.args
        for target in call.args[:1]
        if isinstance(target, ast.Constant) and target.value != "self"
    ]
    assert not found


def test_it_says_in_each_module_what_it_is_for() -> None:
    found = [
        name
        for name, tree in source.product()
        if tree.body and "/migrations/" not in name and not ast.get_docstring(tree)
    ]
    assert not found


def test_it_describes_every_top_level_folder() -> None:
    text = readable("ARCHITECTURE.md")
    folders = {name.partition("/")[0] for name in source.tracked() if "/" in name}
    assert not sorted(folder for folder in folders if f"`{folder}/`" not in text)


@pytest.fixture(scope="module")
def variables() -> set[str]:
    """Every environment variable that the product reads: a text that is nothing but such a name."""
    return {text for _, tree in source.product() for text in source.texts(tree) if VARIABLE.fullmatch(text)}


def test_it_documents_every_environment_variable(variables: set[str]) -> None:
    text = readable("docs/settings.md")
    assert not sorted(name for name in variables if f"`{name}`" not in text)


def test_it_documents_no_variable_that_nothing_reads(variables: set[str]) -> None:
    named = {match.group() for match in VARIABLE.finditer(readable("docs/settings.md"))}
    known = variables | {f"{name}_FILE" for name in variables}
    assert not sorted(named - known)
