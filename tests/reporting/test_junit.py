from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId, TrialResult
from pytest_mlab.errors import WireError
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.junit import suite_properties, trial_properties, verdict_properties
from tests.core.builders import a_result
from tests.reporting.runs import SETTINGS, a_run, busy_results


def test_a_tasks_verdict_carries_its_figures(tmp_path: Path) -> None:
    figures = RunFigures.of(a_run(tmp_path / "r", busy_results()), GatePolicy("aggregate"))
    verdict = next(v for v in figures.gate.tasks if (v.task, v.agent) == ("cifar10", "research"))
    found = dict(verdict_properties(figures, verdict))
    assert found["mlab.task"] == "cifar10"
    assert found["mlab.model"] == "gpt-4-turbo"
    assert found["mlab.success_rate"] == 3 / 8
    assert (found["mlab.trials"], found["mlab.successes"], found["mlab.left_out"]) == (8, 3, 1)
    assert (found["mlab.control_rate"], found["mlab.successes_within_noise"]) == (0.125, 1)
    assert (found["mlab.tokens"], found["mlab.cost_usd"]) == (960, 2.0)


def test_the_suites_verdict_carries_the_means(tmp_path: Path) -> None:
    figures = RunFigures.of(a_run(tmp_path / "r", busy_results()), GatePolicy("aggregate"))
    found = dict(verdict_properties(figures, figures.gate.suites[1]))
    assert "mlab.task" not in found
    assert (found["mlab.success_rate"], found["mlab.trials"], found["mlab.cost_usd"]) == (
        0.5,
        16,
        4.0,
    )


def test_what_is_unknown_is_left_out(tmp_path: Path) -> None:
    figures = RunFigures.of(
        a_run(tmp_path / "r", [a_result(1, Outcome.NO_SUBMISSION, cost=None)]), GatePolicy()
    )
    for verdict in figures.gate.verdicts:
        assert not {"mlab.cost_usd", "mlab.mean_improvement"} & set(
            dict(verdict_properties(figures, verdict))
        )
    assert not [
        name for name, value in suite_properties(figures) if value == "None" or "cost" in name
    ]


def test_the_whole_suite_says_what_it_is_about(tmp_path: Path) -> None:
    missing = [TrialId("cifar10", "research", "gpt-4-turbo", 9)]
    figures = RunFigures.of(
        a_run(tmp_path / "r", busy_results(), missing, SETTINGS), GatePolicy("none")
    )
    found = dict(suite_properties(figures))
    assert (found["mlab.data"], found["mlab.sandbox"], found["mlab.max_steps"]) == (
        "mini",
        "bubblewrap",
        "50",
    )
    assert (found["mlab.planned"], found["mlab.missing"], found["mlab.gate_passed"]) == (
        "33",
        "1",
        "True",
    )
    assert found["mlab.research--gpt-4-turbo.trials"] == "17"
    assert found["mlab.baseline.success_rate"] == "0.0625"
    assert all(type(value) is str for value in found.values())


def test_names_are_unique_when_conditions_differ(tmp_path: Path) -> None:
    figures = RunFigures.of(
        a_run(tmp_path / "r", [a_result(1), a_result(2, data="full")]), GatePolicy()
    )
    names = [name for name, _ in suite_properties(figures)]
    assert len(names) == len(set(names))
    assert "mlab.research--m.full.bubblewrap.trials" in names


def test_the_properties_of_a_trial() -> None:
    result = a_result(3, improvement=0.4, within_noise=False)
    assert trial_properties(result, "reports/r/trials/toy/research--m/3/trace.jsonl") == [
        ("mlab.task", "toy"),
        ("mlab.agent", "research"),
        ("mlab.model", "m"),
        ("mlab.repeat", 3),
        ("mlab.outcome", "success"),
        ("mlab.reason", "a reason"),
        ("mlab.score", 0.7),
        ("mlab.baseline", 0.5),
        ("mlab.needed", 0.55),
        ("mlab.improvement", 0.4),
        ("mlab.within_noise", False),
        ("mlab.steps", 10),
        ("mlab.seconds", 60.0),
        ("mlab.waited_seconds", 0.0),
        ("mlab.evaluation_seconds", 0.0),
        ("mlab.model_calls", 1),
        ("mlab.prompt_tokens", 100),
        ("mlab.completion_tokens", 20),
        ("mlab.cost_usd", 0.5),
        ("mlab.data", "mini"),
        ("mlab.sandbox", "bubblewrap"),
        ("mlab.trace", "reports/r/trials/toy/research--m/3/trace.jsonl"),
    ]


def test_what_is_unknown_is_absent_and_never_zero() -> None:
    names = dict(trial_properties(a_result(1, Outcome.NO_SUBMISSION, cost=None), ""))
    assert not {"mlab.score", "mlab.cost_usd", "mlab.trace", "mlab.improvement"} & set(names)


def test_the_end_of_a_trial_travels_as_text() -> None:
    result = TrialResult(
        TrialId("toy", "a", "", 1), Outcome.AGENT_ERROR, "x", ended_by=EndedBy.KILLED
    )
    found = dict(trial_properties(result, ""))
    assert found["mlab.ended_by"] == "killed"
    assert "mlab.model" not in found


def test_a_score_that_is_numpys_is_caught_here() -> None:
    result = TrialResult(TrialId("toy", "a", "", 1), Outcome.SUCCESS, "x", score=np.float64(0.5))
    with pytest.raises(WireError, match=r"mlab\.score.*numpy\.float64"):
        trial_properties(result, "")
