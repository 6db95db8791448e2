"""What holds for every built-in task, beside what `mlab validate` proves of each."""

from __future__ import annotations

import csv
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared
from pytest_mlab.evaluation.main import judge
from tests.tasks.conftest import TASKS, load

CSV_TASKS = {
    # task: key column, one value column, a perfect score
    "amp-parkinsons-disease-progression-prediction": ("prediction_id", "rating", 0.0),
    "cifar10": ("", "3", 1.0),
    "fathomnet": ("id", "categories", 1.0),
    "feedback": ("text_id", "cohesion", 0.0),
    "house-price": ("Id", "SalePrice", 0.0),
    "identify-contrails": ("record_id", "encoded_pixels", 1.0),
    "imdb": ("idx", "1", 1.0),
    "ogbn-arxiv": ("node", "label", 1.0),
    "spaceship-titanic": ("PassengerId", "Transported", 1.0),
}
PROBABILITIES = {"cifar10": 10, "imdb": 2}  # tasks that ask for a column a class, and how many

Table = list[list[str]]
PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]


def answers_of(name: str, prepared: Prepared) -> Table:
    with (prepared.answers / "answers.csv").open(newline="") as file:
        return list(csv.reader(file))


def perfect(name: str, prepared: Prepared) -> Table:
    """A submission that is right everywhere."""
    header, *rows = answers_of(name, prepared)
    if name == "amp-parkinsons-disease-progression-prediction":
        return [
            header,
            *([id_, rating or "0"] for id_, rating in rows),
        ]  # a rating that was never taken
    if name not in PROBABILITIES:
        return [header, *rows]
    columns = [str(label) for label in range(PROBABILITIES[name])]
    return [
        [CSV_TASKS[name][0], *columns],
        *([number, *(str(float(c == label)) for c in columns)] for number, label in rows),
    ]


def write(folder: Path, table: Table) -> Path:
    with (folder / "submission.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table)
    return folder


# --- data ---


@pytest.mark.parametrize("name", CSV_TASKS)
def test_answers_have_an_id_for_each_test_row_and_no_doubles(
    name: str, prepared: PreparedBy
) -> None:
    ids = [row[0] for row in answers_of(name, prepared(name))[1:]]
    assert len(ids) >= (
        60 if name == "identify-contrails" else 200
    )  # 4096 pixels are to be found in each of those
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", ["house-price", "spaceship-titanic"])
def test_public_tables_do_not_tell_the_answers(name: str, prepared: PreparedBy) -> None:
    key, column, _ = CSV_TASKS[name]
    public = prepared(name).public
    ids = [row[0] for row in answers_of(name, prepared(name))[1:]]
    with (public / "test.csv").open(newline="") as file:
        test = list(csv.DictReader(file))
    with (public / "train.csv").open(newline="") as file:
        train = list(csv.DictReader(file))
    assert [row[key] for row in test] == ids
    assert column not in test[0]
    assert set(train[0]) == {*test[0], column}
    assert not {row[key] for row in train} & set(ids)
    assert len(train) == pytest.approx(4 * len(test), rel=0.02)


@pytest.mark.parametrize("name", TASKS)
def test_read_only_files_are_the_public_ones(name: str, prepared: PreparedBy) -> None:
    from fnmatch import fnmatch

    patterns = load(name).read_only
    data = [file for file in prepared(name).files if file != "sample_submission.csv"]
    assert all(any(fnmatch(file, pattern) for pattern in patterns) for file in data)


# --- evaluators ---


@pytest.mark.parametrize("name", CSV_TASKS)
def test_a_perfect_submission_in_any_order(
    name: str, prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    header, *rows = perfect(name, prepared(name))
    scored = {"verdict": "scored", "score": CSV_TASKS[name][2], "reason": "", "details": {}}
    assert {**verdict(name, write(tmp_path, [header, *rows])), "details": {}} == scored
    random.Random(1).shuffle(rows)
    shuffled = [[*row[1:], row[0]] for row in [header, *rows]]
    assert {**verdict(name, write(tmp_path, shuffled)), "details": {}} == scored


@pytest.mark.parametrize("name", CSV_TASKS)
def test_a_missing_id_is_refused(
    name: str, prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """All other ways to break a submission are tried by the check `fuzz` of `mlab validate`."""
    found = verdict(name, write(tmp_path, perfect(name, prepared(name))[:-1]))
    assert (found["verdict"], found["score"]) == ("invalid_submission", None)
    assert "lacks ids" in found["reason"]


@pytest.mark.parametrize("name", TASKS)
def test_broken_answers_are_the_tasks_fault(name: str, tmp_path: Path) -> None:
    shutil.copy(load(name).folder / "env" / load(name).starter_script, tmp_path)
    (tmp_path / "answers").mkdir()
    found = judge(load(name).folder / "evaluator.py", tmp_path, tmp_path / "answers")
    assert found["verdict"] == "task_error"
    assert found["reason"].startswith("evaluator.py:")


# --- baseline and reference ---


@pytest.mark.parametrize("name", TASKS)
def test_the_recorded_reference_beats_the_recorded_baseline_by_far(name: str) -> None:
    task = load(name)
    variant = task.variants["mini"]
    assert variant.baseline is not None
    assert variant.reference is not None
    assert variant.baseline.n >= 5
    assert variant.baseline.machine
    for score in variant.reference.scores:
        judged = judge_score(task, "mini", score)
        assert judged.outcome is Outcome.SUCCESS
        assert judged.improvement is not None
        assert judged.improvement > 0.15
