from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlab.core.figure import Figure, Unit
from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.trial import TrialResult
from pytest_mlab.errors import ConfigError
from pytest_mlab.reporting.figure_table import FIGURES, entries
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.junit import suite_properties, trial_properties, verdict_properties
from pytest_mlab.reporting.markdown import markdown
from pytest_mlab.reporting.summary import summary
from pytest_mlab.reporting.table import table
from tests.reporting.runs import a_run, busy_results


def _best(results: Sequence[TrialResult]) -> float | None:
    return max((r.improvement for r in results if r.improvement is not None), default=None)


BEST = Figure("best_improvement", "best of all", _best, "percent")


def _figures(tmp_path: Path, *own: Figure) -> RunFigures:
    return RunFigures.of(a_run(tmp_path / "r", busy_results()), GatePolicy("aggregate"), None, own)


def test_a_figure_of_a_users_own_is_in_every_report(tmp_path: Path) -> None:
    figures = _figures(tmp_path, BEST)
    _, research = figures.subjects
    terminal = " ".join(" ".join(table(figures)).split())
    assert "best of all: cifar10 +35.0%, spaceship-titanic +35.0%, all tasks +35.0%" in terminal
    assert all(len(line) <= 80 for line in table(figures))
    page = markdown(figures)
    assert "| best of all |" in page
    rows = [line for line in page.splitlines() if line.startswith(("| cifar10 |", "| mean"))]
    assert [row.endswith("| +35.0% |") for row in rows] == [False, False, True, True]
    subject = summary(figures)["subjects"][1]
    assert subject["figures"] == {"best_improvement": pytest.approx(0.35)}
    assert subject["tasks"][0]["figures"] == {"best_improvement": pytest.approx(0.35)}
    suite = dict(suite_properties(figures))
    assert float(suite["mlab.research--gpt-4-turbo.best_improvement"]) == pytest.approx(0.35)
    found = [
        dict(verdict_properties(figures, verdict))["mlab.best_improvement"]
        for verdict in figures.gate.verdicts
        if verdict.agent == research.agent
    ]
    assert found == pytest.approx([0.35, 0.35, 0.35])


def test_which_model_answered_how_many_calls_is_in_every_report(tmp_path: Path) -> None:
    results = [
        replace(r, answered={"openai/a": 2, "openai/b": 1} if r.id.model else {})
        for r in busy_results()
    ]
    figures = RunFigures.of(a_run(tmp_path / "r", results), GatePolicy("aggregate"))
    said = "answered by openai/a 32, openai/b 16"
    assert said in " ".join(" ".join(table(figures)).split())
    assert said in markdown(figures)
    subject = summary(figures)["subjects"][1]
    assert subject["efficiency"]["answered_calls"] == {"openai/a": 32, "openai/b": 16}
    assert subject["tasks"][0]["trials"][0]["answered_calls"] == {"openai/a": 2, "openai/b": 1}
    trial = dict(trial_properties(figures.subjects[1].tasks[0].results[0], ""))
    assert trial["mlab.answered_calls"] == "openai/a 2, openai/b 1"


@pytest.mark.parametrize("calls", [0, 3])
def test_the_cost_of_calls_that_nobody_answered_is_unknown(tmp_path: Path, calls: int) -> None:
    results = [
        replace(r, answered={}, ledger=replace(r.ledger, cost=0.0, model_calls=calls))
        if r.id.model
        else r
        for r in busy_results()
    ]
    figures = RunFigures.of(a_run(tmp_path / "r", results), GatePolicy("aggregate"))
    control, research = summary(figures)["subjects"]
    assert (control["efficiency"]["cost_usd"], research["efficiency"]["cost_usd"]) == (0.0, None)
    assert "no model call was answered" in " ".join(" ".join(table(figures)).split())
    assert "$0.00" not in "\n".join(table(figures))
    rows = [line for line in table(figures) if line.startswith("cifar10")]
    assert rows[-1].endswith("?")
    trial = figures.subjects[1].tasks[0].results[0]
    assert "mlab.cost_usd" not in dict(trial_properties(trial, ""))
    trials = summary(figures)["subjects"][1]["tasks"][0]["trials"]
    assert trials[0]["efficiency"]["cost_usd"] is None


def test_trials_whose_tools_went_by_text_are_in_every_report(tmp_path: Path) -> None:
    results = [
        replace(r, tools_by_text=("openai/x",) if r.id.model and r.id.repeat < 3 else ())
        for r in busy_results()
    ]
    figures = RunFigures.of(a_run(tmp_path / "r", results), GatePolicy("aggregate"))
    said = (
        "ools by text in 4 of 16 trials, which say nothing on native tools: the provider of"
        " openai/x refused them"
    )
    assert said in " ".join(" ".join(table(figures)).split())
    assert said in markdown(figures)
    subject = summary(figures)["subjects"][1]
    assert subject["efficiency"]["trials_with_tools_by_text"] == 4
    assert [task["efficiency"]["trials_with_tools_by_text"] for task in subject["tasks"]] == [2, 2]
    assert [trial["tools_by_text"] for trial in subject["tasks"][0]["trials"]][1:3] == [
        ["openai/x"],
        [],
    ]
    suite = dict(suite_properties(figures))
    assert suite["mlab.research--gpt-4-turbo.trials_with_tools_by_text"] == "4"
    trial = dict(trial_properties(figures.subjects[1].tasks[0].results[0], ""))
    assert trial["mlab.tools_by_text"] == "openai/x"
    assert "no native ones" in figures.subjects[1].tasks[0].results[0].remarks[0]


def test_a_figure_that_fails_is_left_out_and_named(tmp_path: Path) -> None:
    wrong = Figure("wrong", "wrong", lambda results: 1 / (len(results) - 8))
    figures = _figures(tmp_path, wrong, BEST)
    assert [entry.name for entry in figures.table[len(FIGURES) :]] == ["best_improvement"]
    (problem,) = figures.problems
    assert "wrong" in problem
    assert any("ZeroDivisionError" in line for line in table(figures))


@pytest.mark.parametrize("name", ["best_improvement", "trials", "cost_usd", "success_rate", "task"])
def test_two_figures_of_one_name_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        entries([BEST, Figure(name, "x", _best)])


@pytest.mark.parametrize(
    ("unit", "shown"),
    [
        ("count", "1.2k"),
        ("ratio", "1234.00"),
        ("percent", "+1e+05%"),
        ("seconds", "20m34s"),
        ("dollars", "1234"),
    ],
)
def test_units(tmp_path: Path, unit: Unit, shown: str) -> None:
    figures = _figures(tmp_path, Figure("mine", "mine", lambda _: 1234.0, unit))
    assert any(f"mine: cifar10 {shown}," in line for line in table(figures))


def test_every_built_in_figure_is_shown_somewhere() -> None:
    for entry in FIGURES:
        assert entry.section or entry.junit or entry.column, entry
        assert entry.task or entry.subject, entry


def test_names_are_unique_where_they_stand() -> None:
    junit = [entry.junit for entry in FIGURES if entry.junit]
    keys = [(entry.section, entry.name) for entry in FIGURES if entry.section]
    assert len(set(junit)) == len(junit)
    assert len(set(keys)) == len(keys)
    assert inspect.signature(Figure).parameters.keys() == {"name", "label", "compute", "unit"}
