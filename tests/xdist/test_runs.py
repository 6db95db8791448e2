"""Whole runs on several workers: the same figures, one trial at a time, and nothing lost with a
worker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import WITHOUT, Project
from tests.support.toy_suite import write_toy_suite

# The first trial ends only when all others have: a worker that had a second one pinned behind it
# would hang here.
WAITER = """
import time


class Waiter:
    needs_model = False

    def run(self, env):
        own = env.log_dir.parent
        trials = own.parent
        if own.name != "1":
            return
        until = time.monotonic() + 50
        while len(list(trials.glob("*/result.json"))) < 8:
            if time.monotonic() > until:
                raise RuntimeError("the others never ended")
            time.sleep(0.02)
        env.note("all_done", {})
"""

KILLER = """
import os
import signal


def pytest_mlab_step_done(trial_id):
    if trial_id.repeat == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""

SLEEPER = """
import time

from pytest_mlab import Action


class Sleeper:
    needs_model = False

    def run(self, env):
        if env.log_dir.parent.name == "1":
            env.execute(Action("List Files", {"dir_path": "."}))
            time.sleep(600)
"""


def without_times(value: Any) -> Any:
    """A summary without what a clock or the run's name decides."""
    if isinstance(value, dict):
        left_out = ("efficiency", "identity", "id")
        return {key: without_times(one) for key, one in value.items() if key not in left_out}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def test_same_figures_and_same_junit_for_one_and_two_processes(project: Project) -> None:
    write_toy_suite(project.path, tasks=("guess", "other"))
    seen = []
    for run, workers in (("a", "0"), ("b", "2")):
        args = (
            "--mlab-agent=baseline",
            "--mlab-agent=reference",
            "--mlab-repeats=2",
            "--mlab-gate=aggregate",
        )
        result = project.run(*args, "-n", workers, f"--mlab-run-dir={run}")
        assert result.ret == 0, result.stdout.str()
        here = Project(project.pytester, run)
        names = {
            name: (case.status, sorted(case.properties)) for name, case in here.junit().items()
        }
        seen.append((without_times(here.summary()), names, sorted(here.junit_suite())))
    assert seen[0] == seen[1]
    assert len(seen[0][1]) == 8 + 4 + 2


def test_a_long_trial_holds_no_other_up(project: Project) -> None:
    project.agent("waiter", WAITER)
    result = project.run("--mlab-agent=waiter", "--mlab-repeats=9", "--mlab-gate=none", "-n", "4")
    assert result.ret == 0, result.stdout.str()
    assert "all_done" in (project.trial("guess/waiter/1") / "trace.jsonl").read_text()


def test_a_killed_worker_loses_one_attempt_and_no_other_trial(project: Project) -> None:
    project.agent("sleeper", SLEEPER)
    (project.path / "conftest.py").write_text(KILLER)
    name = project.tests("def test_it(mlab_trial):\n    assert mlab_trial.beats_baseline\n")
    result = project.run(
        "--mlab-agent=sleeper", "--mlab-repeats=4", "--mlab-gate=none", "-n", "2", name
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "not_run: the worker that ran it died after 1 step *",
            "  trace run/trials/guess/sleeper/1/trace.jsonl",
            "MISSING: 1 of 4 planned trials did not run",
            "*pytest --mlab-resume=run",
        ]
    )
    assert not (project.trial("guess/sleeper/1") / "result.json").exists()
    assert (project.trial("guess/sleeper/1") / "trace.jsonl").read_text().count(
        '"trial_started"'
    ) == 1
    for k in (2, 3, 4):
        assert project.result(f"guess/sleeper/{k}")["outcome"] != "infra_error"
    case = project.junit()["test_mine::test_it[guess-sleeper-1]"]
    assert case.status == "failure"
    assert case.properties["mlab.outcome"] == "not_run"


def test_a_stop_at_the_first_failure_starts_nothing_new_with_worksteal_as_well(
    project: Project,
) -> None:
    args = ("--mlab-agent=baseline", "--mlab-repeats=6", "-n", "1", "-x", "-v")
    result = project.run(*args, "--dist=worksteal")
    result.stdout.fnmatch_lines(["scheduling tests via OneItemScheduler"])
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(list(project.run_dir.glob("trials/*/*/*/result.json"))) == 1
    result.stdout.fnmatch_lines(
        ["MISSING: 5 of 6 planned trials did not run", "*pytest --mlab-resume=run"]
    )


@pytest.mark.parametrize("mode", ["loadscope", "loadfile", "loadgroup", "each"])
def test_modes_that_run_trials_twice_are_refused(project: Project, mode: str) -> None:
    result = project.run("--mlab-agent=reference", "-n", "2", f"--dist={mode}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --dist={mode} cannot run mlab trials: it *"])


def test_modes_are_allowed_without_trials(project: Project) -> None:
    name = project.tests("def test_plain():\n    pass\n")
    result = project.pytester.runpytest_inprocess(*WITHOUT, "-n", "1", "--dist=loadfile", name)
    result.assert_outcomes(passed=1)


def test_a_worker_that_dies_after_its_trial_keeps_the_result_and_the_next_collects_the_plan(
    project: Project,
) -> None:
    # the session's first trial adds a task and kills its worker: the replacement must collect the
    # planned ids
    name = project.tests(
        "import os\nfrom tests_support import add_task\n\n\ndef test_it(mlab_trial):\n"
        "    if mlab_trial.id.repeat == 1:\n        add_task()\n        os._exit(3)\n"
    )
    (project.path / "tests_support.py").write_text(
        "import shutil\n\n\ndef add_task():\n    shutil.copytree('task_suites/toy/guess',"
        " 'task_suites/toy/another')\n"
    )
    result = project.run("--mlab-agent=reference", "--mlab-repeats=3", "-n", "1", name)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["the worker died after the trial had ended: success: *"])
    assert project.summary()["subjects"][0]["success"]["successes"] == 3
    assert project.plan() == ["guess-reference-1", "guess-reference-2", "guess-reference-3"]
    assert project.summary()["missing"] == []
