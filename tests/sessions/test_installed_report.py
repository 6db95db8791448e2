"""A report format of an installed package: after a session, and after ``mlab report``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.reporting.render import GROUP
from tests.support.distribution import install
from tests.support.project import Project

SOURCE = """
def scores(figures):
    return "".join(f"{r.id.name},{r.score}\\n" for r in figures.trials)
"""


def test_a_format_of_another_package_is_written(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", GROUP, {"scores.csv": "demo_format:scores"}, {"demo_format": SOURCE})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    result = project.run("--mlab-agent=reference")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["wrote run/summary.json", "wrote run/scores.csv"])
    file = project.run_dir / "scores.csv"
    assert file.read_text() == "guess-reference-1,1.0\n"
    file.unlink()
    assert cli.main(["report", str(project.run_dir), "--write"]) == 0
    assert file.read_text() == "guess-reference-1,1.0\n"
