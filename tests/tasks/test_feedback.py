"""feedback: the metric, the essays, Kaggle's file, and that a guess is no success."""

from __future__ import annotations

import csv
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared, prepare
from pytest_mlab.errors import DataUnavailable
from pytest_mlab.validation.measuring import measure_once
from tests.data.shapes import kagglehub_has
from tests.tasks.conftest import load

GRADES = ["cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]
COLUMNS = ["text_id", "full_text", *GRADES]
SLUG = "feedback-prize-english-language-learning"

PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def grades_of(rows: list[list[str]]) -> Any:
    return np.array([[float(value) for value in row[-6:]] for row in rows])


def submit(folder: Path, ids: list[str], grades: Any) -> Path:
    lines = [
        f"{id_},{','.join(repr(float(value)) for value in row)}\n"
        for id_, row in zip(ids, grades, strict=True)
    ]
    (folder / "submission.csv").write_text(",".join(["text_id", *GRADES]) + "\n" + "".join(lines))
    return folder


def test_the_generated_essays_are_graded_like_kaggles(prepared: PreparedBy) -> None:
    public = prepared("feedback").public
    header, *train = read(public / "train.csv")
    assert header == COLUMNS
    grades = grades_of(train)
    assert set(grades.ravel()) <= {half / 2 for half in range(2, 11)}
    assert np.all(np.abs(grades.mean(axis=0) - 3.1) < 0.15)
    assert np.all(np.abs(grades.std(axis=0) - 0.68) < 0.08)
    correlation = np.corrcoef(grades.T)[np.triu_indices(6, 1)]
    assert np.all((correlation > 0.3) & (correlation < 0.7))
    assert 1000 < np.mean([len(row[1]) for row in train]) < 2500
    assert any("\n\n" in row[1] for row in train)


def test_no_grades_and_no_known_essays_in_the_test_file(prepared: PreparedBy) -> None:
    public, answers = prepared("feedback").public, prepared("feedback").answers
    header, *test = read(public / "test.csv")
    train = read(public / "train.csv")[1:]
    assert header == ["text_id", "full_text"]
    assert [row[0] for row in test] == [row[0] for row in read(answers / "answers.csv")[1:]]
    for column in (0, 1):
        assert not {row[column] for row in train} & {row[column] for row in test}
    assert {value for row in read(public / "sample_submission.csv")[1:] for value in row[1:]} == {
        "3.0"
    }


def test_the_score_is_the_mean_of_the_columns_errors(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    from sklearn.metrics import root_mean_squared_error

    rows = read(prepared("feedback").answers / "answers.csv")[1:]
    true = grades_of(rows)
    guess = true + np.random.default_rng(2).normal(0.1, np.arange(1, 7) / 4, true.shape)
    order = random.Random(1).sample(range(len(rows)), len(rows))
    submit(tmp_path, [rows[n][0] for n in order], guess[order])
    assert verdict("feedback", tmp_path)["score"] == pytest.approx(
        root_mean_squared_error(true, guess), rel=1e-12
    )


def test_rows_are_joined_by_id_and_not_by_position(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    rows = read(prepared("feedback").answers / "answers.csv")[1:]
    submit(tmp_path, [row[0] for row in reversed(rows)], grades_of(rows)[::-1])
    assert verdict("feedback", tmp_path)["score"] == 0.0
    submit(tmp_path, [str(n) for n in range(len(rows))], grades_of(rows))
    found = verdict("feedback", tmp_path)
    assert (found["verdict"], found["score"]) == ("invalid_submission", None)
    assert "lacks ids in column text_id" in found["reason"]


def test_the_metric_does_not_come_from_the_workspace(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    rows = read(prepared("feedback").answers / "answers.csv")[1:]
    for name in ("train", "statistics", "pytest_mlab"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the workspace')\n")
    submit(tmp_path, [row[0] for row in rows], grades_of(rows) + 0.5)
    assert verdict("feedback", tmp_path)["score"] == pytest.approx(0.5)


def test_the_mean_of_the_training_grades_is_the_baseline_and_no_success(
    prepared: PreparedBy,
) -> None:
    task = load("feedback")
    baseline = task.variants["mini"].baseline
    assert baseline is not None
    assert baseline.measured == "mean of the training grades"
    score = measure_once(task, prepared("feedback"), "trivial")
    assert score == pytest.approx(baseline.mean, rel=1e-9)
    assert judge_score(task, "mini", score).outcome is Outcome.BELOW_THRESHOLD

    train, test = (grades_of(read(path)[1:]) for path in (
        prepared("feedback").public / "train.csv",
        prepared("feedback").answers / "answers.csv",
    ))  # fmt: skip
    assert score == pytest.approx(
        np.sqrt(((test - train.mean(axis=0)) ** 2).mean(axis=0)).mean(), rel=1e-9
    )


def test_a_constant_is_no_success(prepared: PreparedBy, verdict: Verdict, tmp_path: Path) -> None:
    shutil.copy(prepared("feedback").public / "sample_submission.csv", tmp_path / "submission.csv")
    score = verdict("feedback", tmp_path)["score"]
    assert judge_score(load("feedback"), "mini", score).outcome is Outcome.BELOW_THRESHOLD


@pytest.fixture
def kagglehub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kaggle's files in kagglehub's cache, and no account: 100 essays, sorted by id, with line
    breaks as there."""
    pytest.importorskip("kagglehub")
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path / "no-account"))
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "kagglehub"))
    lines = [
        f'{n:012X},"Dear ""friend"",\r\nessay {n}.",' + ",".join([str(1 + n % 9 / 2)] * 6)
        for n in range(100)
    ]
    files = {
        "train.csv": ",".join(COLUMNS) + "\n" + "\n".join(lines) + "\n",
        "test.csv": "text_id,full_text\n0000C359D63E,Some text\n",
        "sample_submission.csv": (
            ",".join(["text_id", *GRADES]) + "\n0000C359D63E" + ",3.0" * 6 + "\n"
        ),
    }
    kagglehub_has(tmp_path / "kagglehub", SLUG, files)
    return tmp_path / "kagglehub"


def test_full_cuts_kaggles_training_file_in_a_random_order_at_four_fifths(
    kagglehub_cache: Path, tmp_path: Path
) -> None:
    full = prepare(load("feedback"), "full", tmp_path / "cache", consent=[SLUG])
    train, test = read(full.public / "train.csv"), read(full.public / "test.csv")
    answers = read(full.answers / "answers.csv")
    assert (train[0], test[0], answers[0]) == (COLUMNS, COLUMNS[:2], ["text_id", *GRADES])
    assert (len(train), len(test), len(answers)) == (81, 21, 21)
    assert sorted(row[0] for row in train[1:] + test[1:]) == [f"{n:012X}" for n in range(100)]
    assert [row[0] for row in test[1:]] != sorted(row[0] for row in test[1:])
    for row in train[1:] + test[1:]:
        assert row[1] == f'Dear "friend",\r\nessay {int(row[0], 16)}.'
    for row in train[1:] + answers[1:]:
        assert row[-6:] == [str(1 + int(row[0], 16) % 9 / 2)] * 6
    again = prepare(load("feedback"), "full", tmp_path / "another", consent=[SLUG])
    assert again.digest == full.digest


def test_full_needs_the_rules_accepted_by_an_option_and_asks_nothing(
    kagglehub_cache: Path, tmp_path: Path
) -> None:
    with pytest.raises(DataUnavailable, match=rf"competitions/{SLUG}/rules") as caught:
        prepare(load("feedback"), "full", tmp_path / "cache")
    assert f"--accept-rules {SLUG}" in caught.value.fix


def test_full_refuses_another_file(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("id,text\n1,x\n")
    with pytest.raises(
        ValueError, match=r"train\.csv: expected the columns text_id, full_text, .*; found id, text"
    ):
        full("feedback", tmp_path)
