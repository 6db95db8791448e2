from __future__ import annotations

from pathlib import Path

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.trial import Outcome, TrialId
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.markdown import grid, markdown
from tests.core.builders import a_result
from tests.reporting.runs import SETTINGS, a_run, busy_results


def test_the_whole_report(tmp_path: Path) -> None:
    missing = [TrialId("cifar10", "research", "gpt-4-turbo", 9)]
    run = a_run(tmp_path / "r", busy_results(), missing, SETTINGS)
    found = markdown(RunFigures.of(run, GatePolicy("aggregate", 0.6)))
    assert found == (Path(__file__).parent / "gold_report.md").read_text()


def test_every_row_has_as_many_cells_as_its_head(tmp_path: Path) -> None:
    run = a_run(tmp_path / "r", busy_results())
    head = 0
    for line in markdown(RunFigures.of(run, GatePolicy())).splitlines():
        cells = line.count("|") if line.startswith("|") else 0
        assert cells == head or 0 in (cells, head)
        head = cells


def test_text_of_an_agent_stays_text() -> None:
    _, _, row = grid(["a", "b"], [["x|y", "<b>`1`\n[l](u) *z*"]])
    assert row == r"| x\|y | \<b>\`1\` \[l](u) \*z\* |"


def test_long_reasons_are_cut(tmp_path: Path) -> None:
    result = a_result(1, Outcome.AGENT_ERROR)
    long = type(result)(**{**vars(result), "reason": "x" * 1000})
    found = markdown(RunFigures.of(a_run(tmp_path / "r", [long]), GatePolicy()))
    assert "x" * 197 + "... |" in found
    assert "x" * 198 not in found


def test_a_run_of_successes_lists_none(tmp_path: Path) -> None:
    found = markdown(RunFigures.of(a_run(tmp_path / "r", [a_result(1)]), GatePolicy()))
    assert "Trials without success" not in found
    assert "Gate `trial`: **passed**." in found
