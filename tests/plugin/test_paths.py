"""What the paths of a command line select."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.project import COMMON, Project
from tests.support.toy_suite import write_toy_suite

FILE = "task_suites/test_toy.py"
GUESS = f"{FILE}::test_beats_baseline[guess-baseline-1]"
OTHER = f"{FILE}::test_beats_baseline[other-baseline-1]"
PLAIN = "tests/test_plain.py::test_plain"
BOTH = {GUESS, OTHER}

Collect = Callable[..., set[str]]


@pytest.fixture(params=["built-in", "own"])
def kind(request: pytest.FixtureRequest, project: Project) -> str:
    """A project with two tasks and an ordinary test; the suite's test file is built in or its
    own."""
    write_toy_suite(project.path, tasks=("guess", "other"))
    (project.path / "pytest.ini").write_text("[pytest]\n")
    (project.path / "tests").mkdir()
    (project.path / "tests" / "test_plain.py").write_text("def test_plain():\n    pass\n")
    if request.param == "own":
        text = "def test_beats_baseline(mlab_trial):\n    assert mlab_trial.beats_baseline\n"
        (project.path / FILE).write_text(text)
    kind: str = request.param
    return kind


@pytest.fixture
def collect(project: Project) -> Collect:
    def run(*args: str) -> set[str]:
        words = [*COMMON, "--collect-only", "-q", "--mlab-agent=baseline", *args]
        result = project.pytester.runpytest_inprocess(*words)
        assert result.ret == 0, result.stderr.str()
        return {line for line in result.outlines if "::" in line}

    return run


@pytest.mark.usefixtures("kind")
def test_what_contains_the_suite_is_the_suite(
    project: Project, collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (".", "task_suites", "task_suites/toy", FILE, "./", str(project.path)):
        assert collect(path) == BOTH, path
    assert collect("..", "--rootdir=.") == BOTH
    elsewhere = project.path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert collect(str(project.path)) == BOTH
    assert collect("../task_suites") == BOTH


@pytest.mark.usefixtures("kind")
def test_a_path_inside_a_task_is_the_task(collect: Collect) -> None:
    assert collect("task_suites/toy/guess") == {GUESS}
    assert collect("task_suites/toy/other/env", "task_suites/toy/other/task.toml") == {OTHER}
    assert collect("task_suites/toy/guess", "task_suites/toy/other") == BOTH


@pytest.mark.usefixtures("kind")
def test_an_id_of_a_report_is_its_trial(collect: Collect) -> None:
    assert collect(GUESS) == {GUESS}
    assert collect(f"{FILE}::test_beats_baseline") == BOTH
    assert collect(GUESS, "task_suites/toy/other") == BOTH


@pytest.mark.usefixtures("kind")
def test_other_paths_do_not_take_in_the_suite(project: Project, collect: Collect) -> None:
    assert collect("tests") == {PLAIN}
    assert collect("tests", ".") == {PLAIN, *BOTH}
    result = project.run("--mlab-agent=baseline", "--mlab-task=guess", "task_suites/toy/other")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: no trial is selected by *to fix: *--mlab-task*"])


def test_a_path_selects_the_same_on_workers(project: Project, kind: str) -> None:
    result = project.run("--mlab-agent=reference", "task_suites/toy/other", "-n", "1")
    assert result.ret == 0, kind
    assert project.plan() == ["other-reference-1"]


def test_a_suite_that_is_given_as_a_path(project: Project, collect: Collect) -> None:
    folder: Path = project.path / "suites"
    folder.mkdir()
    (project.path / "task_suites" / "toy").rename(folder / "mine")
    assert collect("--mlab-suite=suites/mine", "suites") == {
        "task_suites/test_mine.py::test_beats_baseline[guess-baseline-1]"
    }
