from __future__ import annotations

from pathlib import Path

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.trial import Outcome, TrialId
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.junit import suite_properties, verdict_properties
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
