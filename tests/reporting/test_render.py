from __future__ import annotations

import json
from pathlib import Path

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.render import write_reports
from tests.core.builders import a_result
from tests.reporting.runs import a_run


def test_reports_are_written_over_older_ones_and_named(tmp_path: Path) -> None:
    run = a_run(tmp_path / "r", [a_result(1)])
    (run.path / "summary.json").write_text("older")
    figures = RunFigures.of(run, GatePolicy())
    assert write_reports(figures, "reports/r") == [
        "wrote reports/r/summary.json",
        "wrote reports/r/report.md",
    ]
    assert json.loads((run.path / "summary.json").read_text())["planned"] == 1
    assert (run.path / "report.md").read_text().startswith("# Run 20240310-1200-abcd\n")
    assert write_reports(figures)[0] == f"wrote {run.path}/summary.json"
    assert not list(run.path.glob(".part-*"))
