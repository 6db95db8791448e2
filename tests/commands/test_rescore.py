"""``mlab rescore``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.store.events import Evaluation
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.runner import TrialRunner
from tests.support.toy_agents import write_toy_agents
from tests.support.toy_run import make_run
from tests.support.toy_suite import EVALUATOR, write_toy_suite, write_toy_task


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a good agent, one that changed its data, and one whose trial never
    began."""
    root = tmp_path_factory.mktemp("rescore")
    write_toy_suite(root)
    agents = write_toy_agents(root)
    run = make_run(root, ["good", "tampering", "idle"])
    with (agents / "idle.py").open("a") as file:
        file.write("# changed after the plan\n")
    with TrialRunner(run.path) as trials:
        for trial in run.plan.trials:
            trials.run(trial)
    return run.path


def evaluations(path: Path, name: str) -> list[tuple[int | None, str, float | None]]:
    run = RunDir.open(path)
    (trial,) = [trial for trial in run.plan.trials if trial.name == name]
    return [
        (e.step, e.verdict, e.score) for e in run.trial(trial).events() if isinstance(e, Evaluation)
    ]


def results(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(path.rglob("result.json"))}


def test_every_step(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = results(played)
    assert cli.main(["rescore", str(played), "guess-good-1", "--step", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "guess-good-1"
    assert [line.split()[:3] for line in lines[2:]] == [
        ["0", "-", "-"],
        ["1", "-", "-"],
        ["2", "1", "+150.0%"],
        ["3", "1", "+150.0%"],
        ["final", "1", "+150.0%"],
    ]
    assert lines[2].endswith("no_submission: submission.csv is missing")
    assert all(len(line) <= 80 for line in lines)
    assert results(played) == before
    assert evaluations(played, "guess-good-1") == [
        (None, "scored", 1.0),  # the trial's own
        (0, "no_submission", None),
        (1, "no_submission", None),
        (2, "scored", 1.0),
        (3, "scored", 1.0),
        (None, "scored", 1.0),
    ]


def test_one_step(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rescore", str(played), "guess-good-1", "--step", "2"]) == 0
    (line,) = capsys.readouterr().out.splitlines()[2:]
    assert line.split() == ["2", "1", "+150.0%", "success"]


def test_all_trials_that_began(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rescore", str(played)]) == 0
    out = capsys.readouterr().out
    assert "guess-good-1" in out
    assert "guess-idle-1" not in out
    assert (
        "final             -            -  invalid_submission: read-only files were changed" in out
    )


def test_evaluator_of_today(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = played.parent / "task_suites" / "toy" / "guess"
    write_toy_task(folder, evaluator=EVALUATOR.replace("/ len(truth)", "/ len(truth) / 2"))
    try:
        assert cli.main(["rescore", str(played), "guess-good-1"]) == 0
    finally:
        write_toy_task(folder)
    said = capsys.readouterr()
    assert said.out.splitlines()[2].split() == ["final", "0.5", "+25.0%", "success"]
    assert "the task guess has changed since the run" in said.err


def test_nothing_is_left_behind(played: Path) -> None:
    assert not list((played.parent / "cache" / "workspaces").rglob("*/*"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["guess-god-1"], "did you mean 'guess-good-1'?"),
        (["--step", "last"], "a step's number, 'all' or 'final' is needed"),
        (
            ["guess-good-1", "--step", "7"],
            "has no snapshot of the step 7; it has: 0, 1, 2, 3, final",
        ),
        (["guess-idle-1"], "has no snapshot of the final workspace; it has: none"),
    ],
)
def test_mistakes(
    played: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    assert cli.main(["rescore", str(played), *words]) == 2
    assert reason in capsys.readouterr().err


def test_the_last_run_with_words_after_options(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = played.parent
    words = ["--reports", str(reports), "--step", "2"]
    newest = max(
        (p for p in reports.iterdir() if (p / "plan.json").is_file()), key=lambda p: p.name
    )
    assert newest == played
    for line in (["last", "guess-good-1", *words], [*words, "last", "guess-good-1"]):
        assert cli.main(["rescore", *line]) == 0
        assert "guess-good-1" in capsys.readouterr().out
    # The run first, its trial after an option's value: argparse alone refuses it.
    assert cli.main(["rescore", "last", *words, "guess-good-1"]) == 0


def test_run_without_any_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy_suite(tmp_path)
    write_toy_agents(tmp_path)
    run = make_run(tmp_path, ["good"])
    assert cli.main(["rescore", str(run.path)]) == 2
    assert "no trial of this run has begun" in capsys.readouterr().err
