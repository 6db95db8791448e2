"""``--mlab-gate`` and ``--mlab-fail-under``: what fails, and the exit status."""

from __future__ import annotations

import pytest

from tests.support.project import Project

BOTH = ("--mlab-agent=baseline", "--mlab-agent=reference")


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return dict(result.parseoutcomes())


def test_the_control_beside_another_agent_is_measured_and_not_failed(project: Project) -> None:
    result = project.run(*BOTH, "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*test_beats_baseline?guess-baseline-1? BELOW*",
            "*test_beats_baseline?guess-reference-1? PASSED*",
            "mlab::guess-baseline PASSED*",
            "mlab::guess-reference PASSED*",
        ]
    )


def test_trial_gate_fails_each_trial_below_its_target(project: Project) -> None:
    result = project.run("--mlab-agent=baseline", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*test_beats_baseline?guess-baseline-1? FAILED*", "mlab::guess-baseline FAILED*"]
    )


def test_aggregate_gate_counts_them_in_a_category_of_their_own(project: Project) -> None:
    result = project.run(*BOTH, "-v", "--mlab-gate=aggregate")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*guess-baseline-1? BELOW*", "*guess-reference-1? PASSED*", "*5 passed, 1 below*"]
    )


def test_fail_under_decides_by_the_rate_and_implies_aggregate(project: Project) -> None:
    result = project.run("--mlab-agent=baseline", "--mlab-fail-under=0.5")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"failed": 1, "passed": 1, "below": 1}
    result.stdout.fnmatch_lines(["FAILED mlab::suite-baseline - mean success rate 0*"])


def test_fail_under_passes_when_the_rate_is_reached(project: Project) -> None:
    assert project.run("--mlab-agent=reference", "--mlab-fail-under=100%").ret == 0


def test_aggregate_gate_still_fails_for_a_mistake_in_a_test(project: Project) -> None:
    name = project.tests("def test_it(mlab_trial):\n    mlab_trial.no_such_thing\n")
    result = project.run("--mlab-agent=baseline", "--mlab-gate=aggregate", name)
    assert outcomes(result)["failed"] == 1
    result.stdout.fnmatch_lines(["*AttributeError*no_such_thing*"])


def test_aggregate_gate_fails_for_a_broken_evaluator(project: Project) -> None:
    evaluator = project.path / "task_suites" / "toy" / "guess" / "evaluator.py"
    evaluator.write_text("def evaluate(submission_dir, answers_dir):\n    return float('nan')\n")
    result = project.run("--mlab-agent=baseline", "--mlab-gate=aggregate")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*task_error:*"])


@pytest.mark.parametrize("gate", ["none", "aggregate"])
def test_aggregate_keeps_users_own_criteria_on_successful_trials(
    project: Project, gate: str
) -> None:
    name = project.tests("def test_cheap(mlab_trial):\n    assert mlab_trial.steps < 1\n")
    result = project.run("--mlab-agent=reference", f"--mlab-gate={gate}", name)
    assert result.ret == (0 if gate == "none" else 1)


def test_no_gate_records_everything_and_fails_nothing(project: Project) -> None:
    result = project.run(*BOTH, "--mlab-gate=none")
    assert result.ret == 0
    assert project.result("guess/baseline/1")["outcome"] == "below_threshold"
    assert project.summary()["gate"]["passed"]


def test_fail_under_contradicts_other_gates(project: Project) -> None:
    result = project.run("--mlab-agent=baseline", "--mlab-fail-under=0.5", "--mlab-gate=trial")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_below_is_no_failure_for_maxfail_and_the_cache(project: Project) -> None:
    result = project.run(
        "--mlab-agent=baseline",
        "--mlab-gate=aggregate",
        "--mlab-repeats=2",
        "-x",
        "-p",
        "cacheprovider",
    )
    assert outcomes(result)["below"] == 2
    assert not (project.path / ".pytest_cache" / "v" / "cache" / "lastfailed").exists()


def test_verdicts_leave_nothing_in_the_cache_of_failed_tests(project: Project) -> None:
    project.run("--mlab-agent=baseline", "-p", "cacheprovider")
    failed = (project.path / ".pytest_cache" / "v" / "cache" / "lastfailed").read_text()
    assert "guess-baseline-1" in failed
    assert "mlab::" not in failed
