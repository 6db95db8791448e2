"""Run directories and the folders of their trials."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_mlab.core.plan import Plan, RunSettings
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.errors import StoreError, WireError
from pytest_mlab.store.events import Note
from pytest_mlab.store.rundir import RunDir

TRIALS = tuple(TrialId("task", "agent", "", k) for k in (1, 2, 3))
PLAN = Plan("run", RunSettings(), (), (), TRIALS)


def result(trial: TrialId, **changes: object) -> TrialResult:
    return replace(TrialResult(trial, Outcome.SUCCESS, "fine", score=1.0), **changes)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path / "run", PLAN, {"options": ["-k", "x"], "git": {"dirty": True}})


def test_a_created_run_opens_with_plan_and_identity(run: RunDir) -> None:
    opened = RunDir.open(run.path)
    assert opened.plan == PLAN
    assert opened.identity == {"options": ["-k", "x"], "git": {"dirty": True}}
    assert opened.path == run.path
    assert opened.store.root == run.path / "store"


def test_an_empty_folder_may_become_a_run(tmp_path: Path) -> None:
    RunDir.create(tmp_path, PLAN, {})
    assert RunDir.open(tmp_path).plan == PLAN


def test_no_run_is_written_over_another(run: RunDir, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="--mlab-resume"):
        RunDir.create(run.path, PLAN, {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(StoreError, match="not empty; empty it"):
        RunDir.create(tmp_path / "other", PLAN, {})
    with pytest.raises(StoreError, match="is a file"):
        RunDir.create(tmp_path / "other" / "file", PLAN, {})


def test_an_identity_that_is_not_plain_makes_no_run(tmp_path: Path) -> None:
    with pytest.raises(WireError, match=r"run.json\['cost'\] holds a numpy.float64"):
        RunDir.create(tmp_path / "run", PLAN, {"cost": np.float64(1)})
    assert not (tmp_path / "run").exists()


def test_what_is_no_run_directory_is_said(tmp_path: Path, run: RunDir) -> None:
    for path in (tmp_path, tmp_path / "nowhere", run.path / "plan.json"):
        with pytest.raises(StoreError, match="run directory"):
            RunDir.open(path)
    (run.path / "plan.json").write_text("{")
    with pytest.raises(StoreError, match=r"plan\.json"):
        RunDir.open(run.path)


@pytest.mark.parametrize(("text", "said"), [("{", "cannot be read"), ("[]", "expected an object")])
def test_a_damaged_identity_is_said(run: RunDir, text: str, said: str) -> None:
    (run.path / "run.json").write_text(text)
    with pytest.raises(StoreError, match=said):
        _ = RunDir.open(run.path).identity


def test_results_are_the_trials_that_are_done(run: RunDir) -> None:
    assert run.results() == {}
    for trial in (TRIALS[2], TRIALS[0]):
        run.trial(trial).write_result(result(trial))
    assert list(run.results()) == [TRIALS[0], TRIALS[2]]
    assert run.trial(TRIALS[1]).result() is None


def test_a_result_is_written_once(run: RunDir) -> None:
    trial = run.trial(TRIALS[0])
    trial.write_result(result(TRIALS[0]))
    with pytest.raises(StoreError, match="exists already"):
        trial.write_result(result(TRIALS[0], score=2.0))
    assert trial.result() == result(TRIALS[0])


def test_a_foreign_result_is_named(run: RunDir) -> None:
    run.trial(TRIALS[0]).write_result(result(TRIALS[1]))
    with pytest.raises(StoreError, match="is the result of task-agent-2, expected task-agent-1"):
        run.results()


def test_a_result_of_another_format_is_named(run: RunDir) -> None:
    run.trial(TRIALS[0]).write_result(result(TRIALS[0]))
    file = run.trial(TRIALS[0]).path / "result.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 0}))
    with pytest.raises(StoreError, match="format 0"):
        run.results()


def test_a_trial_keeps_its_trace_and_folders(run: RunDir) -> None:
    trial = run.trial(TRIALS[0])
    assert trial.last_event() is None
    event = Note(t=0.0, kind="k", data={})
    with trial.journal() as journal:
        journal.write(event)
    assert list(trial.events()) == [event]
    assert trial.last_event() == event
    assert {p.name for p in (trial.outputs, trial.logs, trial.backups) if p.is_dir()} == {
        "outputs",
        "logs",
        "backups",
    }


def test_restart_puts_an_attempt_aside_without_losing_it(run: RunDir) -> None:
    trial = run.trial(TRIALS[0])
    trial.restart()
    assert not trial.path.exists()
    for k in (1, 2):
        with trial.journal() as journal:
            journal.write(Note(t=float(k), kind="k", data={}))
        trial.write_result(result(TRIALS[0], score=float(k)))
        trial.restart()
        assert trial.result() is None
        assert trial.last_event() is None
        assert sorted(p.name for p in (trial.path / "attempts" / str(k)).iterdir()) == [
            "result.json",
            "trace.jsonl",
        ]
