"""Checks that run the task: each is ok on a sound task and seen to fail on one with its fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mlab.core.task import Baseline, Resources
from pytest_mlab.suites.loader import load_task
from pytest_mlab.trial.evaluate import Evaluated
from pytest_mlab.trial.workspace import Workspace
from pytest_mlab.validation.bench import Bench, Run
from pytest_mlab.validation.checks.baseline import expected
from pytest_mlab.validation.checks.cost import Cost
from pytest_mlab.validation.checks.degenerate import judged
from pytest_mlab.validation.finding import Finding, Unavailable
from tests.suites.folders import edit
from tests.support.toy_suite import TRAIN
from tests.validation.tasks import (
    GUESS,
    STRICT,
    bench,
    borrowing,
    finding,
    settings,
    sound_task,
    subject,
    the,
)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of a sound task."""
    return sound_task(tmp_path / "guess")


def borrowed(name: str, sound: Bench, task: Path) -> Finding:
    """What one check says about a task that differs from the sound one in other things than its
    data and reference."""
    with borrowing(sound, task) as made:
        return the(name).run(made)


# --- schema and files ---


def test_schema_tells_what_the_loader_says(task: Path) -> None:
    assert finding("schema", task).status == "ok"
    edit(task / "task.toml", 'direction = "maximize"', 'direction = "up"')
    found = finding("schema", task)
    assert found.status == "fail"
    assert 'task.toml:13: metric.direction: "up" found, must be one of' in found.reason


@pytest.mark.parametrize("what", ["baseline", "reference"])
def test_schema_needs_measured_scores(task: Path, what: str) -> None:
    text = (task / "task.toml").read_text()
    start = text.index(f"[data.mini.{what}]")
    end = text.find("\n\n", start)
    (task / "task.toml").write_text(text[:start] + (text[end:] if end > 0 else ""))
    found = finding("schema", task)
    assert (found.status, found.reason) == (
        "fail",
        (
            f"no {what} was measured on data mini: mlab measure guess --data mini --suite toy"
            f" --what {what} --write"
        ),
    )


def test_schema_knows_variants(task: Path) -> None:
    assert (
        finding("schema", task, variant="full").reason
        == "the task has no data variant full, only mini"
    )


def test_a_broken_task_leaves_the_other_checks_nothing(task: Path) -> None:
    (task / "evaluator.py").unlink()
    with pytest.raises(Unavailable, match="see schema"):
        finding("files", task)


def test_files_are_there(sound: Bench) -> None:
    found = the("files").run(sound)
    assert (found.status, found.reason) == ("ok", "1 starter and 2 data files (0.0 MB)")


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        (
            "task.toml",
            '"test.csv"]',
            '"tset.csv"]',
            "read_only: tset.csv matches no file of the workspace",
        ),
        (
            "reference/actions.toml",
            'script_name = "train.py"',
            'script_name = "trian.py"',
            "reference: there is no file trian.py to execute",
        ),
        (
            "data.py",
            'write(answers / "answers.csv", ["id", "label"]',
            "(lambda *_: None)(0",
            "data.py wrote no answers",
        ),
        (
            "data.py",
            'write(public / "test.csv", ["id", "x"], test)',
            (
                'write(public / "test.csv", ["id", "x"], test); write(public / "submission.csv",'
                ' ["id", "y"], [])'
            ),
            "submission.csv has the columns id, y; declared are id, label",
        ),
    ],
)
def test_files_that_are_missing(task: Path, file: str, old: str, new: str, reason: str) -> None:
    edit(task / file, old, new)
    found = finding("files", task)
    assert (found.status, found.reason) == ("fail", reason)


# --- starter, baseline, reference ---


def test_the_starter_runs(sound: Bench) -> None:
    found = the("starter").run(sound)
    assert found.status == "ok"
    assert 1 < found.facts["memory_mb"] < 1024


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit('no luck')", "guess: train.py failed with exit status 1: no luck"),
        ("pass", "no_submission: submission.csv is missing: write it into the workspace"),
        (
            GUESS + "open('test.csv', 'a').write('x')",
            "the starter changes read-only files: test.csv",
        ),
    ],
)
def test_a_starter_that_does_not(task: Path, code: str, reason: str) -> None:
    (task / "env" / "train.py").write_text(code)
    found = finding("starter", task)
    assert (found.status, found.reason) == ("fail", reason)


def test_the_baseline_is_reproduced(sound: Bench) -> None:
    found = the("baseline").run(sound)
    assert (found.status, found.facts["scores"]) == ("ok", [0.6, 0.6])


def test_a_baseline_that_a_trivial_predictor_set_is_reproduced_by_it(task: Path) -> None:
    """The starter says no and scores 0.4; what is recorded is what saying yes scores."""
    (task / "env" / "train.py").write_text(TRAIN)
    (task / "trivial").mkdir()
    (task / "trivial" / "train.py").write_text(GUESS)
    script = (
        '[[action]]\nname = "Write File"\ncontent_file = "train.py"\nargs = {file_name ='
        ' "train.py"}\n'
    )
    run = '[[action]]\nname = "Execute Script"\nargs = {script_name = "train.py"}\n'
    end = '[[action]]\nname = "Final Answer"\nargs = {final_answer = "always yes"}\n'
    (task / "trivial" / "actions.toml").write_text(script + run + end)
    with bench(task) as made:
        assert made.recorded(1)[0].score == pytest.approx(0.4)
    edit(task / "task.toml", 'measured = "starter"', 'measured = "always yes"')
    with bench(task) as made:
        found = the("baseline").run(made)
        assert (found.status, found.facts["scores"]) == ("ok", [0.6])
        assert the("starter").run(made).status == "ok"


class ScoredBench(Bench):
    """A bench whose baseline gave, and whose evaluator gives, these scores."""

    scores: Sequence[float] = ()

    def baselines(self, count: int) -> list[Run]:
        workspace = Workspace(self.task.folder / "env", mounts=(), public={}, read_only=())
        return [
            Run(workspace, 1.0, 1.0, "", Evaluated("scored", score))
            for score in self.scores[:count]
        ]

    def evaluate(
        self, submission: Path, answers: Path | None = None, *, timeout: float = 60.0
    ) -> Evaluated:
        self.scores = self.scores[1:]
        return Evaluated("scored", self.scores[0])


def scored(task: Path, scores: Sequence[float]) -> ScoredBench:
    made = ScoredBench(subject(task), settings())
    made.scores = scores
    return made


def test_a_baseline_that_is_not_what_was_recorded(task: Path) -> None:
    edit(
        task / "task.toml",
        "scores = [0.6, 0.6, 0.6]\nmean = 0.6",
        "scores = [0.7, 0.7, 0.7]\nmean = 0.7",
    )
    with scored(task, [0.6] * 6) as made:
        found = the("baseline").run(made)
    assert (found.status, found.reason) == (
        "fail",
        "5 of 5 runs lie outside: 0.6, 0.6, 0.6, ...; expected 0.693 to 0.707 (n = 3)",
    )


@pytest.mark.parametrize(
    ("scores", "made", "status"),
    [
        ([0.6, 0.9], 1, "ok"),
        ([0.9, 0.6, 0.6, 0.9], 3, "ok"),
        ([0.9, 0.6, 0.9, 0.6, 0.6], 5, "ok"),
        ([0.9, 0.6, 0.9, 0.6, 0.9], 5, "fail"),
    ],
)
def test_runs_outside_the_interval_are_repeated(
    task: Path, scores: list[float], made: int, status: str
) -> None:
    with scored(task, scores) as tried:
        found = the("baseline").run(tried)
    assert (found.status, found.facts["scores"]) == (status, scores[:made])
    lucky = scores[:made].count(0.9)
    assert f"{lucky} beat the threshold" in found.reason or status == "fail" or not lucky


def test_where_a_baseline_is_expected(task: Path) -> None:
    loaded = load_task(task, "toy")
    noisy = Baseline("starter", (0.5, 0.6, 0.7), 0.6, 0.1)
    low, high = expected(loaded, noisy)
    assert low == pytest.approx(0.6 - 4.302653 * 0.1 * (4 / 3) ** 0.5 - 0.006)
    assert high == pytest.approx(1.2 - low)
    assert expected(loaded, Baseline("starter", (0.6,), 0.6, 0.0)) == pytest.approx((0.594, 0.606))
    assert expected(replace(loaded, timed=True), noisy) == pytest.approx((0.54, 0.66))


def test_the_reference_beats_the_threshold(sound: Bench) -> None:
    found = the("reference").run(sound)
    assert (found.status, found.facts["score"], found.facts["needed"]) == (
        "ok",
        1.0,
        pytest.approx(0.66),
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (GUESS, "0.6, needed above 0.66"),
        ("raise SystemExit('lost')", "guess: train.py failed with exit status 1: lost"),
    ],
)
def test_a_reference_that_does_not(task: Path, code: str, reason: str) -> None:
    (task / "reference" / "train.py").write_text(code)
    found = finding("reference", task)
    assert found.status == "fail"
    assert reason in found.reason


# --- degenerate, deterministic, order ---


def test_degenerate_submissions_do_not_succeed(sound: Bench) -> None:
    found = the("degenerate").run(sound)
    assert found.status == "ok"
    assert found.facts["submissions"] == {
        "untouched workspace": "no_submission",
        "nothing": "no_submission",
        "empty": "invalid_submission",
        "first value": 0.4,
        "most frequent value": 0.6,
        "shuffled values": found.facts["submissions"]["shuffled values"],
    }
    assert found.facts["best"] == 0.6


def test_a_constant_that_succeeds(sound: Bench, task: Path) -> None:
    (task / "env" / "train.py").write_text(TRAIN)
    edit(
        task / "task.toml",
        "scores = [0.6, 0.6, 0.6]\nmean = 0.6",
        "scores = [0.4, 0.4, 0.4]\nmean = 0.4",
    )
    found = borrowed("degenerate", sound, task)
    assert found.status == "fail"
    assert "most frequent value scores 0.6, which is success (needed 0.44)" in found.reason


def test_nothing_that_succeeds(sound: Bench, task: Path) -> None:
    lenient = STRICT.replace(
        "    truth =",
        "    if not (submission_dir / 'submission.csv').exists():\n        return 1.0\n    truth =",
    )
    (task / "evaluator.py").write_text(lenient)
    found = borrowed("degenerate", sound, task)
    assert found.status == "fail"
    assert (
        "untouched workspace scores 1, which is success (needed 0.66); nothing scores 1"
        in found.reason
    )


def test_shuffled_values_that_succeed(sound: Bench, task: Path) -> None:
    """An evaluator that compares how often each value occurs."""
    (task / "evaluator.py").write_text(
        STRICT.replace(
            "sum(given[key] == label for key, label in truth.items()) / len(truth)",
            "float(sorted(r['label'] for r in given.values()) == sorted(r['label'] for r in"
            " truth.values()))",
        )
    )
    found = borrowed("degenerate", sound, task)
    assert (found.status, found.reason) == (
        "fail",
        "shuffled values scores 1, which is success (needed 0.66)",
    )


def test_a_time_that_looks_like_success_is_taken_again(task: Path) -> None:
    """On a busy machine the same code may seem to be a fifth faster once; the median of three
    counts."""
    edit(task / "task.toml", "timed = false", "timed = true")
    made = scored(task, [0.0, 0.9, 0.5, 0.6, 0.7])
    with made:
        assert judged(made, task, 0.66).score == 0.6
        assert judged(made, task, 0.8).score == 0.7
        assert made.scores == [0.7]


def test_the_evaluator_is_deterministic(sound: Bench) -> None:
    found = the("deterministic").run(sound)
    assert (found.status, found.facts["scores"]) == ("ok", [1.0, 1.0, 1.0])


def test_an_evaluator_that_is_not(task: Path) -> None:
    edit(task / "evaluator.py", "/ len(truth)", "/ len(truth) - __import__('random').random() / 9")
    found = finding("deterministic", task)
    assert found.status == "fail"
    assert "further apart than" in found.reason


@pytest.mark.parametrize(
    ("scores", "made", "status"),
    [
        ([1.0, 0.9, 0.95, 0.1], 3, "ok"),
        ([1.0, 0.7, 0.95, 0.95, 0.9], 5, "ok"),
        ([1.0, 0.7, 0.95, 0.95, 0.7], 5, "fail"),
    ],
)
def test_a_time_may_differ_a_little(
    task: Path, scores: list[float], made: int, status: str
) -> None:
    """A fifth apart; of five the middle three are."""
    edit(task / "task.toml", "timed = false", "timed = true")
    with scored(task, scores) as tried:
        found = the("deterministic").run(tried)
    assert (found.status, found.facts["scores"]) == (status, scores[:made])


POSITIONAL = """\
import csv


def evaluate(submission_dir, answers_dir):
    labels = []
    for path in (submission_dir / "submission.csv", answers_dir / "answers.csv"):
        with path.open(newline="") as file:
            labels.append([row["label"] for row in csv.DictReader(file)])
    return sum(a == b for a, b in zip(*labels)) / len(labels[1])
"""


def test_rows_count_by_id(sound: Bench) -> None:
    assert the("order").run(sound).status == "ok"


def test_rows_that_count_by_place(sound: Bench, task: Path) -> None:
    (task / "evaluator.py").write_text(POSITIONAL)
    found = borrowed("order", sound, task)
    assert found.status == "fail"
    assert found.reason.startswith("1, but 0.")
    assert found.reason.endswith("with the rows from last to first")


def test_an_order_that_is_refused_is_no_fault(sound: Bench, task: Path) -> None:
    refuse = (
        "    if [*csv_ids] != [*truth]:\n        raise InvalidSubmission('rows are in another"
        " order')\n"
    )
    text = STRICT.replace("import read_answers", "import InvalidSubmission, read_answers").replace(
        "    return",
        "    lines = (submission_dir / 'submission.csv').read_text().split()[1:]\n"
        "    csv_ids = [line.split(',')[0] for line in lines]\n" + refuse + "    return",
    )
    (task / "evaluator.py").write_text(text)
    found = borrowed("order", sound, task)
    assert (found.status, found.reason) == (
        "ok",
        "another order is refused: rows are in another order",
    )


# --- cost ---


def test_time_and_memory(sound: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(sound.task, budget=replace(sound.task.budget, max_seconds=600.0))
    monkeypatch.setitem(vars(sound), "task", task)
    assert Cost().run(sound).status == "ok"
    vars(sound)["task"] = replace(task, resources=Resources(memory_mb=1))
    assert "starter uses" in Cost().run(sound).reason
    vars(sound)["task"] = replace(task, budget=replace(task.budget, max_seconds=0.001))
    found = Cost().run(sound)
    assert found.status == "fail"
    assert "of a budget of 0.001 s" in found.reason
