"""The built-in tasks with their mini data, prepared once a test run."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_mlab.core.task import Task
from pytest_mlab.data.prepare import Prepared, prepare
from pytest_mlab.evaluation.main import judge
from pytest_mlab.lib.locate import builtin
from pytest_mlab.suites.loader import load_task

SUITE = "mlagentbench"
TASKS = sorted(file.parent.name for file in (builtin("task_suites") / SUITE).glob("*/task.toml"))


def load(name: str) -> Task:
    return load_task(builtin("task_suites") / SUITE / name, SUITE)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Prepared]:
    """The prepared data of a task by its name."""
    place = tmp_path_factory.getbasetemp()
    # The folder above is that of all workers of one run.
    cache = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "builtin-data"
    # Each look compares all files with the manifest.
    return functools.cache(lambda name: prepare(load(name), "mini", cache))


@pytest.fixture
def verdict(prepared: Callable[[str], Prepared]) -> Callable[[str, Path], dict[str, Any]]:
    """The evaluator's verdict on a submission folder, by task name."""
    return lambda name, folder: judge(
        load(name).folder / "evaluator.py", folder, prepared(name).answers
    )


@pytest.fixture
def data_py(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A task's data.py as a module; no byte code is left in the task's folder."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    def load_data_py(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location("data_py", load(name).folder / "data.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load_data_py


@pytest.fixture
def full(
    tmp_path: Path, data_py: Callable[[str], ModuleType]
) -> Callable[[str, Path], tuple[Path, Path]]:
    """Run a task's data.py for the variant ``full`` on raw files; its folders public and
    answers."""

    def run(name: str, raw: Path) -> tuple[Path, Path]:
        public, answers = tmp_path / "public", tmp_path / "answers"
        public.mkdir()
        answers.mkdir()
        data_py(name).prepare(raw, public, answers, "full")
        return public, answers

    return run
