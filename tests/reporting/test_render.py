from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.reporting.figures import RunFigures
from pytest_mlab.reporting.render import GROUP, write_reports
from tests.core.builders import a_result
from tests.reporting.runs import a_run
from tests.support.distribution import install


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


FORMATS = """
def good(figures):
    return "good"

def broken(figures):
    raise LookupError("no\\nsuch thing")

def number(figures):
    return 3
"""


def test_a_broken_format_costs_one_line_and_no_other_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {
        "a.txt": "formats_for_test:broken",
        "b.txt": "no_such_module:x",
        "c.txt": "formats_for_test:number",
        "d.txt": "formats_for_test:good",
        "plan.json": "formats_for_test:good",
        "../e.txt": "formats_for_test:good",
    }
    install(tmp_path / "site", GROUP, points, {"formats_for_test": FORMATS})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    run = a_run(tmp_path / "r", [a_result(1)])
    plan = (run.path / "plan.json").read_text()
    lines = write_reports(RunFigures.of(run, GatePolicy()), "r")
    assert [line for line in lines if line.startswith("wrote")] == [
        "wrote r/summary.json",
        "wrote r/report.md",
        "wrote r/d.txt",
    ]
    failed = {line.split()[2]: line for line in lines if not line.startswith("wrote")}
    assert set(failed) == points.keys() - {"d.txt"}
    assert "LookupError: no such thing" in failed["a.txt"]
    assert "ModuleNotFoundError" in failed["b.txt"]
    assert (run.path / "plan.json").read_text() == plan
    assert not list(tmp_path.rglob("[abce].txt"))
