"""``mlab prepare``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.commands import USAGE
from tests.suites.folders import edit, toy_task

KAGGLE = 'kind = "kaggle"\nref = "competitions/toys"\nconsent = "https://rules.invalid"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the suite ``lab``: right tasks ``alpha`` and ``toy``."""
    for name in ("alpha", "toy"):
        toy_task(tmp_path / "task_suites" / "lab", name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def prepare(*words: str) -> int:
    return cli.main(["prepare", "--suite", "lab", *words])


def test_a_line_a_task_says_size_time_digest_and_place(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare() == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("alpha (mini): prepared in ")
    assert second.startswith("toy (mini): prepared in ")
    assert str(project / "cache" / "data" / "toy" / "mini-") in second
    assert prepare("toy") == 0
    assert capsys.readouterr().out.startswith("toy (mini): ready, 0.0 MB, digest ")


def test_a_failure_is_told_and_does_not_stop_the_others(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "task_suites" / "lab" / "alpha" / "data.py").write_text(
        "def prepare(*args):\n    raise OSError('no')\n"
    )
    assert prepare() == 1
    out = capsys.readouterr().out
    assert "alpha (mini): failed: " in out
    assert "OSError: no" in out
    assert "toy (mini): prepared" in out


def test_a_broken_task_fails_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(project / "task_suites" / "lab" / "alpha" / "task.toml", 'version = "1"', "version = 1")
    assert prepare() == 1
    out = capsys.readouterr().out
    assert "task.version: 1 found, must be text in quotes" in out
    assert "toy (mini): prepared" in out


def test_json_has_the_same_facts_and_no_progress(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare("--json", "toy", "toy") == 0
    streams = capsys.readouterr()
    (report,) = json.loads(streams.out)
    assert (report["task"], report["variant"], report["status"], report["error"]) == (
        "toy",
        "mini",
        "prepared",
        "",
    )
    assert report["bytes"] == len("id,y\n1,0\n2,1\n")
    assert len(report["digest"]) == 64
    assert streams.err == ""


def test_force_prepares_again_and_another_cache_may_be_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare("toy", "--cache-dir", str(project / "other")) == 0
    assert prepare("toy", "--cache-dir", str(project / "other"), "--force") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [": prepared" in line and str(project / "other") in line for line in lines] == [
        True,
        True,
    ]
    assert not (project / "cache").exists()


def test_unknown_names_are_usage_errors_before_anything_is_done(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare("toy", "alpa") == USAGE
    streams = capsys.readouterr()
    assert "unknown task 'alpa'; did you mean 'alpha'?" in streams.err
    assert streams.out == ""
    assert cli.main(["prepare", "--suite", "lob"]) == USAGE
    assert "unknown suite 'lob'; did you mean 'lab'?" in capsys.readouterr().err


def with_rules(project: Path) -> None:
    file = project / "task_suites" / "lab" / "toy" / "task.toml"
    edit(file, 'kind = "http"\nref = "https://data.invalid/points.csv"\n', KAGGLE)
    edit(file, '\nsha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"', "")


@pytest.mark.parametrize(
    "consent", [["--accept-rules", "other", "--accept-rules", "toys"], ["--yes"]]
)
def test_rules_are_accepted_by_option(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    consent: list[str],
) -> None:
    with_rules(project)
    home = project / "kagglehub" / "competitions"
    (home / "toys").mkdir(parents=True)
    (home / "toys" / "points.csv").write_text("id,y\n1,0\n2,1\n")
    (home / "toys.complete").touch()
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(project / "kagglehub"))
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(project / "no-account"))
    assert prepare("toy", "--data", "full") == 1
    assert "mlab prepare toy --data full --suite lab --accept-rules toys" in capsys.readouterr().out
    assert prepare("toy", "--data", "full", *consent) == 0
    streams = capsys.readouterr()
    assert streams.out.startswith("toy (full): prepared")
    assert ("you accept the rules at https://rules.invalid" in streams.err) is (
        consent == ["--yes"]
    )


def test_a_task_without_the_variant_fails_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "task_suites" / "lab" / "toy" / "task.toml"
    file.write_text(file.read_text().split("[[data.full.source]]")[0])
    assert prepare("toy", "--data", "full", "--yes") == 1
    assert "task toy has no data variant 'full'; it has: mini" in capsys.readouterr().out
