"""``--mlab-plan`` and ``mlab plan`` plan what the same command line would run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable

import pytest

from pytest_mlab.cli import main
from tests.support.project import COMMON, Project
from tests.support.toy_suite import write_toy_suite, write_toy_task

# of COMMON without what the cases set themselves: the suite, the sandbox, fewer other plugins
WORDS = tuple(word for word in COMMON if not word.startswith(("--mlab-repeats", "--mlab-max")))
AGENT = "--mlab-agent=baseline"
ADDOPTS = "--mlab-agent=baseline --mlab-agent=reference --mlab-repeats=2 -k 'not first'"
LIST = '["--mlab-agent=baseline", "--mlab-agent=reference", "--mlab-repeats=2", "-k", "not first"]'
OWN_TEST = "def test_one(mlab_trial):\n    pass\n\n\ndef test_two(mlab_trial):\n    pass\n"

FLAVOURS = {
    "pytest.ini": "[pytest]\nmlab_agent = baseline\nmlab_repeats = 3\n",
    ".pytest.ini": "[pytest]\nmlab_agent = baseline\nmlab_repeats = 3\n",
    "tox.ini": "[pytest]\nmlab_agent = baseline\nmlab_repeats = 3\n",
    "setup.cfg": "[tool:pytest]\nmlab_agent = baseline\nmlab_repeats = 3\n",
    "pyproject.toml": '[tool.pytest.ini_options]\nmlab_agent = "baseline"\nmlab_repeats = "3"\n',
}
ADDED = {
    "pytest.ini": f"[pytest]\naddopts = {ADDOPTS}\n",
    "setup.cfg": f"[tool:pytest]\naddopts = {ADDOPTS}\n",
    "pyproject.toml": f"[tool.pytest.ini_options]\naddopts = {LIST}\n",
}
NATIVE = {
    "pyproject.toml": '[tool.pytest]\nmlab_agent = ["baseline"]\nmlab_repeats = 3\n',
    "pytest.toml": '[pytest]\nmlab_agent = ["baseline"]\nmlab_repeats = 3\n',
    ".pytest.toml": '[pytest]\nmlab_agent = "baseline"\nmlab_repeats = "3"\n',
}

CASES: dict[str, tuple[dict[str, str], dict[str, str], list[str], int]] = {
    # files, environment, arguments, and how many trials are selected
    "flags": ({}, {}, [AGENT, "--mlab-repeats=2"], 6),
    "-k": ({}, {}, [AGENT, "-k", "first or second-baseline-2", "--mlab-repeats=2"], 3),
    "-m": ({}, {}, [AGENT, "-m", "mlab(task='second')", "--mlab-repeats=2"], 2),
    "environment": ({}, {"PYTEST_ADDOPTS": ADDOPTS}, [], 8),
    "a path": ({"test_own.py": OWN_TEST}, {}, [AGENT, "--mlab-repeats=1", "test_own.py"], 3),
    "a node id": (
        {"test_own.py": OWN_TEST},
        {},
        [AGENT, "--mlab-repeats=1", "test_own.py::test_two[first-baseline-1]"],
        1,
    ),
    "a hook of the project": (
        {"conftest.py": "def pytest_collection_modifyitems(items):\n    del items[1:]\n"},
        {},
        [AGENT, "--mlab-repeats=1"],
        1,
    ),
    "-c": ({"odd.ini": FLAVOURS["pytest.ini"]}, {}, ["-c", "odd.ini"], 9),
    "-o": ({"pytest.ini": FLAVOURS["pytest.ini"]}, {}, ["-o", "mlab_repeats=1"], 3),
    "the first ini file": (
        {"pytest.ini": FLAVOURS["pytest.ini"], "pyproject.toml": ADDED["pyproject.toml"]},
        {},
        [],
        9,
    ),
    **{f"settings in {name}": ({name: text}, {}, [], 9) for name, text in FLAVOURS.items()},
    **{f"addopts in {name}": ({name: text}, {}, [], 8) for name, text in ADDED.items()},
}
if pytest.version_tuple >= (9,):
    CASES |= {f"native {name}": ({name: text}, {}, [], 9) for name, text in NATIVE.items()}


@pytest.fixture(autouse=True)
def _three_tasks(project: Project) -> None:
    write_toy_suite(project.path, tasks=("first", "second", "third"))
    shutil.rmtree(project.path / "task_suites" / "toy" / "guess")


Mlab = Callable[..., tuple[int, str]]


@pytest.fixture
def mlab(capsys: pytest.CaptureFixture[str]) -> Mlab:
    """``mlab`` in this process: exit status and standard output."""

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(list(words))
        return status, capsys.readouterr().out

    return run


def collected(project: Project, *args: str) -> set[str]:
    found = project.pytester.runpytest_inprocess("--collect-only", "-q", *WORDS, *args)
    return {name for line in found.outlines for name in re.findall(r"::\w+\[(.+)\]$", line)}


@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_what_the_same_session_selects(
    project: Project, monkeypatch: pytest.MonkeyPatch, mlab: Mlab, case: str
) -> None:
    files, environ, args, number = CASES[case]
    for name, text in files.items():
        (project.path / name).write_text(text, encoding="utf-8")
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    before = sorted(project.path.rglob("*"))

    selected = collected(project, *args)
    status, out = mlab("plan", "--json", *WORDS, *args)

    assert len(selected) == number
    assert set(json.loads(out)["trials"]) == selected
    assert status == 0
    assert [path for path in sorted(project.path.rglob("*")) if path not in before] == []


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_the_text_is_that_of_mlab_plan(project: Project, mlab: Mlab, workers: list[str]) -> None:
    words = [*WORDS, AGENT, "--mlab-repeats=2", "-k", "first", *workers]
    result = project.pytester.runpytest_inprocess("--mlab-plan", *words)
    status, out = mlab("plan", *words)
    assert (result.ret, status) == (0, 0)
    assert "2 trials;" in out
    assert f"with {'2 workers' if workers else '1 worker'}, $0.00" in out
    assert out.strip() in result.stdout.str()
    assert "test_beats_baseline" not in result.stdout.str()
    assert not (project.path / "reports").exists()


def test_what_is_missing_for_selected_trials_is_listed_and_the_exit_status(
    project: Project, mlab: Mlab
) -> None:
    write_toy_task(project.path / "task_suites" / "toy" / "fourth", requirements=("no-such-one",))
    result = project.pytester.runpytest_inprocess("--mlab-plan", *WORDS, AGENT)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["missing:", "  8 trials: *no-such-one*to fix: *"])
    assert mlab("plan", *WORDS, AGENT)[0] == 1
    assert mlab("plan", *WORDS, AGENT, "-k", "not fourth")[0] == 0


@pytest.mark.parametrize(
    "words", [["-k", "frist"], ["--mlab-agent=basline"], ["--mlab-max-time=5x"]]
)
def test_a_mistake_ends_as_in_the_run(project: Project, mlab: Mlab, words: list[str]) -> None:
    words = [*WORDS, AGENT, *words]
    run = project.pytester.runpytest_inprocess(*words)
    plan = project.pytester.runpytest_inprocess("--mlab-plan", *words)
    assert plan.ret == run.ret == pytest.ExitCode.USAGE_ERROR
    assert plan.stderr.lines == run.stderr.lines
    assert mlab("plan", *words) == (2, "")


def test_a_plan_needs_a_run(project: Project) -> None:
    result = project.pytester.runpytest_inprocess("--mlab-plan", *WORDS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--mlab-model*--mlab-agent*--mlab-resume*"])


def test_files_that_cannot_be_collected_give_no_plan(project: Project, mlab: Mlab) -> None:
    name = project.tests("import no_such_module\n", "test_broken.py")
    assert mlab("plan", *WORDS, AGENT, name) == (pytest.ExitCode.INTERRUPTED, "")


def test_ordinary_tests_beside_trials_are_not_of_the_plan(project: Project, mlab: Mlab) -> None:
    name = project.tests("def test_plain():\n    pass\n", "test_plain.py")
    status, out = mlab("plan", "--json", *WORDS, AGENT, name)
    assert (status, json.loads(out)["trials"]) == (0, [])


def test_a_resumed_run_says_how_many_trials_are_done(project: Project, mlab: Mlab) -> None:
    ended = project.run("--mlab-agent=baseline", "--mlab-gate=none", "-k", "not third")
    assert ended.ret == 0
    status, out = mlab("plan", *WORDS, f"--mlab-resume={project.run_dir}")
    assert status == 0
    assert "2 trials, 2 of them done;" in out
    status, out = mlab("plan", *WORDS, f"--mlab-resume={project.run_dir}", "-k", "first")
    assert "1 trial, 1 of them done;" in out
