"""What holds for every built-in task: sound data, a strict evaluator, a baseline that the reference
beats."""

from __future__ import annotations

import csv
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared, prepare
from pytest_mlab.validation.measuring import measure_once
from tests.tasks.conftest import load

TASKS = [
    "amp-parkinsons-disease-progression-prediction",
    "babylm",
    "cifar10",
    "clrs",
    "fathomnet",
    "feedback",
    "house-price",
    "identify-contrails",
    "imdb",
    "llama-inference",
    "ogbn-arxiv",
    "spaceship-titanic",
    "vectorization",
]
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


# --- data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_data_are_the_same_every_time(name: str, prepared: PreparedBy, tmp_path: Path) -> None:
    again = prepare(load(name), "mini", tmp_path)
    assert again.digest == prepared(name).digest
    assert again.files == prepared(name).files


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


# --- evaluators ------------------------------------------------------------------------------------------------


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


def _missing(folder: Path, table: Table) -> None:
    pass


def _empty(folder: Path, table: Table) -> None:
    (folder / "submission.csv").touch()


def _wrong_columns(folder: Path, table: Table) -> None:
    write(folder, [["what", *table[0][1:]], *table[1:]])


def _fewer_columns(folder: Path, table: Table) -> None:
    write(folder, [row[:-1] for row in table])


def _duplicate(folder: Path, table: Table) -> None:
    write(folder, [*table, table[1]])


def _id_missing(folder: Path, table: Table) -> None:
    write(folder, table[:-1])


def _id_extra(folder: Path, table: Table) -> None:
    write(folder, [*table, ["no such id", *table[1][1:]]])


def _value(text: str) -> Callable[[Path, Table], None]:
    def make(folder: Path, table: Table) -> None:
        write(folder, [*table[:1], [table[1][0], *[text] * (len(table[1]) - 1)], *table[2:]])

    return make


def _gigabyte(folder: Path, table: Table) -> None:
    with (folder / "submission.csv").open("wb") as file:
        file.truncate(10**9)


def _link(folder: Path, table: Table) -> None:
    (folder / "elsewhere").mkdir()
    write(folder / "elsewhere", table)
    os.symlink("elsewhere/submission.csv", folder / "submission.csv")


def _directory(folder: Path, table: Table) -> None:
    (folder / "submission.csv").mkdir()


def _binary(folder: Path, table: Table) -> None:
    (folder / "submission.csv").write_bytes(bytes(range(256)) * 10)


BAD: dict[str, tuple[Callable[[Path, Table], None], str, str]] = {
    "missing": (_missing, "no_submission", "submission.csv is missing"),
    "empty": (_empty, "invalid_submission", "is empty"),
    "wrong columns": (_wrong_columns, "invalid_submission", "has no column"),
    "fewer columns": (_fewer_columns, "invalid_submission", "has no column"),
    "duplicate ids": (_duplicate, "invalid_submission", "duplicate ids"),
    "missing ids": (_id_missing, "invalid_submission", "lacks ids"),
    "extra ids": (_id_extra, "invalid_submission", "unknown ids"),
    "NaN": (_value("NaN"), "invalid_submission", "'NaN' in row 1"),
    "infinite": (_value("inf"), "invalid_submission", "'inf' in row 1"),
    "string": (_value("lots"), "invalid_submission", "'lots' in row 1"),
    "1 GB": (_gigabyte, "invalid_submission", "has 1000.0 MB"),
    "symbolic link": (_link, "invalid_submission", "is a symbolic link"),
    "directory": (_directory, "invalid_submission", "is a directory"),
    "binary": (_binary, "invalid_submission", "is not UTF-8 text"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", CSV_TASKS)
def test_a_bad_submission(
    name: str, kind: str, prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    make, expected, reason = BAD[kind]
    make(tmp_path, perfect(name, prepared(name)))
    found = verdict(name, tmp_path)
    assert (found["verdict"], found["score"]) == (expected, None)
    assert reason in found["reason"]


@pytest.mark.parametrize("name", TASKS)
def test_broken_answers_are_the_tasks_fault(name: str, tmp_path: Path) -> None:
    from pytest_mlab.evaluation.main import judge

    shutil.copy(load(name).folder / "env" / load(name).starter_script, tmp_path)
    (tmp_path / "answers").mkdir()
    found = judge(load(name).folder / "evaluator.py", tmp_path, tmp_path / "answers")
    assert found["verdict"] == "task_error"
    assert found["reason"].startswith("evaluator.py:")


# --- baseline and reference ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", TASKS)
def test_the_baseline_runs(name: str, prepared: PreparedBy) -> None:
    """That it is reproduced, and that the reference is, is for `mlab validate` to prove."""
    task = load(name)
    baseline = task.variants["mini"].baseline
    assert baseline is not None
    score = measure_once(task, prepared(name), "baseline")
    if baseline.std == 0 and baseline.measured in ("starter", "filled-starter"):
        assert score == pytest.approx(baseline.mean, rel=0.05)
    assert judge_score(task, "mini", score).outcome is Outcome.BELOW_THRESHOLD
