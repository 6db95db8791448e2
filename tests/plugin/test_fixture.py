"""The object that tests judge."""

from __future__ import annotations

from tests.support.project import Project

FACTS = """
import pytest


def test_facts(mlab_trial):
    assert mlab_trial.beats_baseline
    assert mlab_trial.score == 1.0
    assert mlab_trial.baseline == 0.4
    assert mlab_trial.needed == pytest.approx(0.44)
    assert mlab_trial.improvement == pytest.approx(1.5)
    assert mlab_trial.outcome == "success"
    assert mlab_trial.steps == 3
    assert mlab_trial.cost == 0.0
    assert mlab_trial.tokens == 0
    assert 0 < mlab_trial.seconds < 60
    assert mlab_trial.id.task == "guess"
    assert mlab_trial.result.sandbox == "local"
    assert (mlab_trial.path / "trace.jsonl").is_file()


def test_files(mlab_trial):
    assert mlab_trial.files["submission.csv"].startswith(b"id,label")
    assert b"smallest" not in mlab_trial.files["train.py"]
    assert set(mlab_trial.files) >= {"submission.csv", "train.py"}
    assert "train.csv" not in mlab_trial.files
    assert len(mlab_trial.files) == len(list(mlab_trial.files))
"""


def test_facts_and_files(project: Project) -> None:
    name = project.tests(FACTS)
    result = project.run("--mlab-agent=reference", name)
    assert result.parseoutcomes()["passed"] == 2 + 2, result.stdout.str()


def test_two_tests_of_one_trial_run_it_once(project: Project) -> None:
    name = project.tests(FACTS)
    project.run("--mlab-agent=reference", name)
    trace = (project.trial("guess/reference/1") / "trace.jsonl").read_text()
    assert trace.count('"trial_started"') == 1
    assert not (project.trial("guess/reference/1") / "attempts").exists()


def test_other_parameters_go_along(project: Project) -> None:
    name = project.tests(
        "import pytest\n\n\n@pytest.mark.parametrize('limit', [1, 99])\n"
        "def test_steps(mlab_trial, limit):\n    assert mlab_trial.steps < limit\n"
    )
    outcomes = project.run("--mlab-agent=reference", name, "--mlab-gate=aggregate").parseoutcomes()
    assert outcomes == {"failed": 1, "passed": 1 + 2}
