"""``mlab measure``: runs what a task ships, scores it with the real evaluator, and records it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab import cli
from pytest_mlab.commands import USAGE
from pytest_mlab.suites.loader import load_task
from pytest_mlab.validation.measuring import where_measured
from tests.suites.folders import edit, toy_task

EVALUATOR = """\
from pytest_mlab.evaluation import InvalidSubmission, NoSubmission

def evaluate(submission_dir, answers_dir):
    if not (submission_dir / "score").exists():
        raise NoSubmission("score is missing")
    score = (submission_dir / "score").read_text()
    if score == "bad":
        raise InvalidSubmission("score is bad")
    assert (answers_dir / "answer.csv").read_text() == "2,1\\n"
    return float(score)
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a task whose starter scores 0.5 and whose reference 1.0, when it is run."""
    folder = toy_task(tmp_path / "task_suites" / "lab")
    (folder / "evaluator.py").write_text(EVALUATOR)
    (folder / "env" / "train.py").write_text(
        "import os\nassert open('train.csv').read() == 'id,y\\n1,0\\n'\nassert"
        " os.environ['OMP_NUM_THREADS'] == '1'\nopen('score', 'w').write('0.5')\n"
    )
    (folder / "reference" / "train.py").write_text("open('score', 'w').write('1.0')\n")
    run = '[[action]]\nname = "Execute Script"\n[action.args]\nscript_name = "train.py"\n\n'
    edit(
        folder / "reference" / "actions.toml",
        '[[action]]\nname = "Final',
        run + '[[action]]\nname = "Final',
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLAB_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def measure(*words: str) -> int:
    return cli.main(["measure", "--suite", "lab", *words])


def test_the_starter_is_run_and_scored(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (task / "task.toml").read_text()
    assert measure("toy", "--runs", "2") == 0
    captured = capsys.readouterr()
    assert captured.out == "toy: baseline: accuracy mean 0.5, sd 0, n 2 (higher is better)\n"
    assert captured.err.splitlines()[-1] == "toy: baseline, run 2 of 2: 0.5"
    assert (task / "task.toml").read_text() == before


def test_write_records_scores_and_machine(task: Path) -> None:
    assert measure("--runs", "2", "--write") == 0
    assert measure("toy", "--runs", "1", "--write", "--what", "reference") == 0
    loaded = load_task(task, "lab")
    baseline, reference = loaded.variants["mini"].baseline, loaded.variants["mini"].reference
    assert baseline is not None
    assert (baseline.measured, baseline.scores, baseline.std) == ("starter", (0.5, 0.5), 0.0)
    assert baseline.machine == where_measured(loaded)
    assert ", numpy " in baseline.machine
    assert reference is not None
    assert (reference.measured, reference.scores) == ("reference", (1.0,))


def test_a_filled_starter_is_what_is_run(task: Path) -> None:
    edit(task / "task.toml", 'measured = "starter"', 'measured = "filled-starter"')
    (task / "baseline").mkdir()
    (task / "baseline" / "train.py").write_text("open('score', 'w').write('0.25')\n")
    (task / "baseline" / "actions.toml").write_text(
        (task / "reference" / "actions.toml").read_text()
    )
    assert measure("--runs", "1", "--write") == 0
    baseline = load_task(task, "lab").variants["mini"].baseline
    assert baseline is not None
    assert (baseline.measured, baseline.scores) == ("filled-starter", (0.25,))


@pytest.mark.parametrize(
    ("trivial", "measured"), [(0.75, "always the first class"), (0.25, "starter")]
)
def test_the_baseline_is_the_better_of_starter_and_trivial_predictor(
    task: Path, capsys: pytest.CaptureFixture[str], trivial: float, measured: str
) -> None:
    (task / "trivial").mkdir()
    (task / "trivial" / "train.py").write_text(f"open('score', 'w').write('{trivial}')\n")
    actions = (task / "reference" / "actions.toml").read_text()
    (task / "trivial" / "actions.toml").write_text(
        actions.replace('"done"', '"always the first class"')
    )
    assert measure("--runs", "2", "--write") == 0
    assert capsys.readouterr().out.splitlines() == [
        "toy: baseline: accuracy mean 0.5, sd 0, n 2 (higher is better)",
        f"toy: trivial: accuracy mean {trivial}, sd 0, n 2 (higher is better)",
    ]
    baseline = load_task(task, "lab").variants["mini"].baseline
    assert baseline is not None
    assert (baseline.measured, baseline.mean) == (measured, max(0.5, trivial))


def test_a_trivial_predictor_needs_its_actions(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (task / "trivial").mkdir()
    assert measure("--runs", "1") == USAGE
    assert "the task has a folder trivial/ without actions.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit('no luck')", "toy: train.py failed with exit status 1: no luck"),
        ("pass", "toy: no_submission: score is missing"),
        ("open('score', 'w').write('bad')", "toy: invalid_submission: score is bad"),
        (
            "open('score', 'w').write('x')",
            "task toy: evaluator.py:10: ValueError: could not convert string to float: 'x'",
        ),
    ],
)
def test_what_fails_is_told(
    task: Path, capsys: pytest.CaptureFixture[str], script: str, reason: str
) -> None:
    (task / "env" / "train.py").write_text(script + "\n")
    assert measure() == USAGE
    assert reason in capsys.readouterr().err


def test_an_evaluator_that_dies_is_told(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (task / "evaluator.py").write_text("import os\nprint('last words', flush=True)\nos._exit(1)\n")
    assert measure() == USAGE
    assert (
        "task toy: the evaluator ended with status 1 and without a result (last words)"
        in capsys.readouterr().err
    )


def test_an_action_that_needs_a_model_is_refused(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(
        task / "reference" / "actions.toml",
        '"Execute Script"\n[action.args]\nscript_name = "train.py"',
        '"Understand File"\n[action.args]\nfile_name = "train.py"\nthings_to_look_for = "bugs"',
    )
    assert measure("--what", "reference") == USAGE
    assert "toy: Understand File" in capsys.readouterr().err


def test_a_score_that_cannot_be_a_baseline_leaves_the_file(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (task / "task.toml").read_text()
    (task / "env" / "train.py").write_text("open('score', 'w').write('0')\n")
    assert measure("--runs", "1", "--write") == USAGE
    assert "threshold.absolute" in capsys.readouterr().err
    assert (task / "task.toml").read_text() == before


def test_usage(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert measure("--runs", "0") == USAGE
    assert "--runs 0: at least 1" in capsys.readouterr().err
    assert measure("toi") == USAGE
    assert "did you mean 'toy'" in capsys.readouterr().err
    assert measure("--data", "huge") == USAGE
    assert "no data variant 'huge'" in capsys.readouterr().err
