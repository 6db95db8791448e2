from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.core.trial import TrialId
from tests.core.builders import a_result
from tests.reporting.runs import BELOW, a_run, busy_results


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Two runs: ``20240101-bad`` with one failure of two, ``20240102-good``."""
    a_run(tmp_path / "20240101-bad", [a_result(1), a_result(2, BELOW)])
    a_run(tmp_path / "20240102-good", [a_result(1)])
    return tmp_path


def report(reports: Path, *words: str) -> int:
    return cli.main(["report", *words, "--reports", str(reports)])


def test_the_last_runs_table_is_the_default(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(reports) == 0
    out = capsys.readouterr().out
    assert "toy                    1/1" in out
    assert out.endswith("gate none: recorded only\n")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["20240101-bad"], 0),
        (["20240101-bad", "--gate=trial"], 1),
        (["20240101-bad", "--gate=aggregate"], 0),
        (["20240101-bad", "--fail-under=0.5"], 0),
        (["20240101-bad", "--fail-under=0.6"], 1),
        (["20240101-bad", "--gate=none"], 0),
        (["last", "--gate=trial"], 0),
    ],
)
def test_a_stored_run_is_judged_again(reports: Path, words: list[str], status: int) -> None:
    assert report(reports, *words) == status


def test_a_floor_with_another_gate_is_an_error(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(reports, "--gate=trial", "--fail-under=0.5") == 2
    assert "gate=trial" in capsys.readouterr().err


def test_an_unfinished_run_says_what_runs_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path / "r", [a_result(1)], [TrialId("toy", "research", "m", 2)])
    assert report(tmp_path, "r", "--gate=aggregate") == 1
    assert f"pytest --mlab-resume={tmp_path / 'r'}" in " ".join(capsys.readouterr().out.split())


def test_as_json_and_as_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path / "r", busy_results())
    assert report(tmp_path, "r", "--format=json") == 0
    assert json.loads(capsys.readouterr().out)["planned"] == 32
    assert report(tmp_path, "r", "--format=md") == 0
    assert capsys.readouterr().out.startswith("# Run ")
    assert not (tmp_path / "r" / "summary.json").exists()


def test_the_files_are_written_again_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path / "r", busy_results())
    assert report(tmp_path, "r", "--format=json", "--write") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == json.loads((tmp_path / "r" / "summary.json").read_text())
    assert captured.err.splitlines() == [
        f"wrote {tmp_path / 'r' / n}" for n in ("summary.json", "report.md")
    ]


def test_an_unknown_run_is_an_error(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(reports, "20240101-bed") == 2
    assert "runs there: 20240101-bad" in capsys.readouterr().err
