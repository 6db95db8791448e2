"""Trials in which the agent went back: their score, every step scored again, and a death in the
middle of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.core.budget import Budget
from pytest_mlab.core.trial import EndedBy, Outcome, TrialResult
from pytest_mlab.sandboxes import make
from pytest_mlab.store.events import Note, StepDone, WorkspaceRestored, WorkspaceRestoring
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.support.toy_run import make_run
from tests.support.toy_suite import REFERENCE, write_toy_suite

BACK = """\
import signal

from pytest_mlab import Action
from pytest_mlab.trial import restoring


def do(env, name, **args):
    assert env.execute(Action(name, args)).ok


class Back:
    needs_model = False

    def run(self, env):
        better, run, final = env.script("reference")
        env.execute(better)
        env.execute(run)
        do(env, "Write File", file_name="submission.csv", content="id,label\\nb0,no\\n")
        do(env, "Write File", file_name="train.py", content="print('worse')")
        self.before(env)
        assert env.restore(2) == ()
        do(env, "Execute Script", script_name="train.py")
        env.execute(final)

    def before(self, env):
        pass


class Dying(Back):
    def before(self, env):
        put, done = restoring._put, []

        def dies(*args):
            if done:
                signal.raise_signal(signal.SIGALRM)
            done.append(put(*args))
            return done[-1]

        restoring._put = dies
"""


def play(root: Path, name: str, **settings: object) -> TrialResult:
    write_toy_suite(root)
    (root / "agents").mkdir()
    (root / "agents" / "back.py").write_text(BACK, encoding="utf-8")
    run = make_run(root, [f"agents/back.py:{name}"], **settings)  # type: ignore[arg-type]
    with TrialRunner(run.path) as trials:
        return trials.run(run.plan.trials[0])


def events(root: Path, kind: type) -> list[object]:
    run = RunDir.open(root / "run")
    return [event for event in run.trial(run.plan.trials[0]).events() if isinstance(event, kind)]


@pytest.mark.parametrize("sandbox", ["local", "bubblewrap"])
def test_the_score_is_of_what_was_restored(
    tmp_path: Path, sandbox: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if problem := make(sandbox).check():
        pytest.skip(problem)
    result = play(tmp_path, "Back", sandbox=sandbox)
    assert (result.outcome, result.score, result.ledger.steps) == (Outcome.SUCCESS, REFERENCE, 6), (
        result.reason
    )
    assert cli.main(["rescore", str(tmp_path / "run"), "--step", "all"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    scores = {
        row[0]: row[1]
        for row in rows
        if row and row[0] in ("0", "1", "2", "3", "4", "5", "6", "final")
    }
    assert list(scores.values()) == ["-", "-", "1", "-", "-", "1", "1", "1"]
    assert cli.main(["show", str(tmp_path / "run"), "guess-back-back-1"]) == 0
    assert "workspace restored to what it was after step 2" in capsys.readouterr().out


def test_a_death_in_the_middle_of_it_leaves_no_half_of_a_workspace(tmp_path: Path) -> None:
    result = play(tmp_path, "Dying", budget=Budget(max_steps=20, max_seconds=60.0))
    assert (result.outcome, result.score, result.ended_by) == (
        Outcome.SUCCESS,
        REFERENCE,
        EndedBy.SECONDS,
    ), result.reason
    assert (
        len(events(tmp_path, WorkspaceRestoring)),
        len(events(tmp_path, WorkspaceRestored)),
    ) == (1, 0)
    second = [event for event in events(tmp_path, StepDone) if isinstance(event, StepDone)][1]
    assert result.snapshot == second.snapshot
    (note,) = events(tmp_path, Note)
    assert isinstance(note, Note)
    assert "restored" in str(note.data)
