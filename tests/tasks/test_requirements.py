"""What the built-in tasks need: bounded on both sides, the same everywhere, all that their code
imports."""

from __future__ import annotations

import ast
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pytest_mlab.core.task import Task
from tests.tasks.conftest import TASKS, load

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
INSTALLED_AS = {"sklearn": "scikit-learn", "PIL": "pillow"}
# What only the data of the variant `full` are read with, of the extra `full` or named by the
# source.
FOR_FULL = {("imdb", "pyarrow"), ("clrs", "clrs")}


def extra(name: str) -> list[str]:
    with PYPROJECT.open("rb") as file:
        found: list[str] = tomllib.load(file)["project"]["optional-dependencies"][name]
    return found


def imported(task: Task) -> set[str]:
    """Packages that any Python file of the task's folder imports, wherever in the file."""
    files = [path for path in task.folder.rglob("*.py") if "__pycache__" not in path.parts]
    own = {path.stem for path in files} | {"pytest_mlab"}
    found = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.partition(".")[0])
    return {name for name in found if name not in sys.stdlib_module_names and name not in own}


@pytest.mark.parametrize("text", extra("tasks"))
def test_every_requirement_has_a_lowest_version_and_a_next_one_that_is_too_new(text: str) -> None:
    operators = sorted(part.operator for part in Requirement(text).specifier)
    assert operators == ["<", ">="]


@pytest.mark.parametrize("name", TASKS)
def test_the_extra_tasks_has_what_a_task_requires_in_the_same_words(name: str) -> None:
    missing = set(load(name).requirements) - set(extra("tasks"))
    assert not missing, f"pyproject.toml, extra tasks: add {sorted(missing)}"


def test_the_extra_tasks_has_nothing_more() -> None:
    unused = set(extra("tasks")) - {text for name in TASKS for text in load(name).requirements}
    assert not unused, f"pyproject.toml, extra tasks: remove {sorted(unused)}"


@pytest.mark.parametrize("name", TASKS)
def test_a_task_requires_what_its_code_imports(name: str) -> None:
    task = load(name)
    required = {Requirement(text).name for text in task.requirements}
    needed = {module for module in imported(task) if (name, module) not in FOR_FULL}
    assert {INSTALLED_AS.get(module, module) for module in needed} <= required


@pytest.mark.parametrize("name", TASKS)
def test_recorded_scores_were_measured_with_versions_that_are_allowed(name: str) -> None:
    task = load(name)
    wanted = {Requirement(text).name: Requirement(text).specifier for text in task.requirements}
    records = [
        record
        for v in task.variants.values()
        for record in (v.baseline, v.reference)
        if record is not None
    ]
    assert records
    for record in records:
        versions = dict(re.findall(r"([\w-]+) (\d[\w.+]*)", record.machine.partition("CPython")[2]))
        assert wanted.keys() <= versions.keys(), record.machine
        for package, specifier in wanted.items():
            assert specifier.contains(versions[package]), f"{package} {versions[package]}"


@pytest.mark.parametrize("text", extra("tasks"))
def test_what_is_installed_here_is_allowed(text: str) -> None:
    wanted = Requirement(text)
    assert wanted.specifier.contains(metadata.version(wanted.name), prereleases=True)
