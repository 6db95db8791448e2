"""spaceship-titanic: the metric, the generator, groups and split, Kaggle's files, deck T."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_mlab.data.prepare import Prepared
from tests.tasks.conftest import load

HEADER = (
    "PassengerId,HomePlanet,CryoSleep,Cabin,Destination,Age,VIP,RoomService,FoodCourt,ShoppingMall,Spa,VRDeck,Name,"
    "Transported"
)
COLUMNS = HEADER.split(",")


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_generated_passengers_look_like_kaggles(prepared: Callable[[str], Prepared]) -> None:
    public = prepared("spaceship-titanic").public
    header, *rows = read(public / "train.csv")
    assert header == COLUMNS
    share = sum(row[-1] == "True" for row in rows) / len(rows)
    assert 0.45 < share < 0.65
    for column in range(1, 13):
        missing = sum(row[column] == "" for row in rows) / len(rows)
        assert 0.01 < missing < 0.04, COLUMNS[column]
    assert {row[-1] for row in rows} == {"True", "False"}
    asleep = [row for row in rows if row[2] == "True"]
    assert all(value in ("0.0", "") for row in asleep for value in row[7:12])


def test_no_group_is_in_both_files(prepared: Callable[[str], Prepared]) -> None:
    public = prepared("spaceship-titanic").public
    groups = [{row[0][:4] for row in read(public / name)[1:]} for name in ("train.csv", "test.csv")]
    assert not groups[0] & groups[1]


@pytest.mark.parametrize(("cut", "moved"), [(0, 0), (1, 1), (2, 4), (3, 4), (4, 4), (5, 6), (6, 6)])
def test_the_cut_moves_to_a_groups_end(
    data_py: Callable[[str], ModuleType], cut: int, moved: int
) -> None:
    rows = [[name] for name in ("0001_01", "0002_01", "0002_02", "0002_03", "0003_01", "0003_02")]
    assert data_py("spaceship-titanic").group_boundary(rows, cut) == moved


def test_the_score_is_the_accuracy(
    prepared: Callable[[str], Prepared],
    verdict: Callable[[str, Path], dict[str, Any]],
    tmp_path: Path,
) -> None:
    from sklearn.metrics import accuracy_score

    answers = read(prepared("spaceship-titanic").answers / "answers.csv")[1:]
    guess = [str(n % 3 == 0) for n in range(len(answers))]
    expected = accuracy_score([row[1] for row in answers], guess)
    for words in (
        {},
        {"True": "1", "False": "0"},
        {"True": "1.0", "False": "0.0"},
        {"True": "TRUE", "False": "false"},
    ):
        lines = [
            f"{row[0]},{words.get(word, word)}\n" for row, word in zip(answers, guess, strict=True)
        ]
        (tmp_path / "submission.csv").write_text(
            "PassengerId,Transported\n" + "".join(reversed(lines))
        )
        assert verdict("spaceship-titanic", tmp_path)["score"] == pytest.approx(expected, rel=1e-12)


def test_the_sample_submission_is_a_valid_one(
    prepared: Callable[[str], Prepared],
    verdict: Callable[[str, Path], dict[str, Any]],
    tmp_path: Path,
) -> None:
    shutil.copy(
        prepared("spaceship-titanic").public / "sample_submission.csv", tmp_path / "submission.csv"
    )
    found = verdict("spaceship-titanic", tmp_path)
    assert found["verdict"] == "scored"
    assert 0.3 < found["score"] < 0.55


def passengers(count: int) -> list[list[str]]:
    return [
        [
            f"{n:04d}_01",
            "Earth",
            "False",
            "F/1/S",
            "TRAPPIST-1e",
            "30.0",
            "False",
            *["0.0"] * 5,
            "A B",
            str(n % 2 == 0),
        ]
        for n in range(1, count + 1)
    ]


def test_full_takes_kaggles_training_file(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    rows = passengers(10)
    rows[8][0] = "0008_02"
    with (tmp_path / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    (tmp_path / "test.csv").write_text(",".join(COLUMNS[:-1]) + "\n")

    public, answers = full("spaceship-titanic", tmp_path)

    assert read(public / "train.csv") == [COLUMNS, *rows[:9]]
    assert read(public / "test.csv") == [COLUMNS[:-1], rows[9][:-1]]
    assert read(public / "sample_submission.csv") == [
        ["PassengerId", "Transported"],
        ["0010_01", "False"],
    ]
    assert read(answers / "answers.csv") == [["PassengerId", "Transported"], ["0010_01", "True"]]


def test_full_refuses_another_file(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("Id,SalePrice\n1,0\n")
    with pytest.raises(
        ValueError, match=r"train\.csv: expected the columns PassengerId, .*; found Id, SalePrice"
    ):
        full("spaceship-titanic", tmp_path)


@pytest.mark.parametrize(("train_deck", "test_deck"), [("F", "T"), ("T", "F")])
def test_deck_t_in_one_file_only(train_deck: str, test_deck: str, tmp_path: Path) -> None:
    """Where the published starter failed: an indicator column that only one of the files has."""
    rows = passengers(60)
    rows[0][3], rows[50][3] = f"{train_deck}/1/P", f"{test_deck}/1/P"
    for name, columns, part in (
        ("train.csv", COLUMNS, rows[:40]),
        ("test.csv", COLUMNS[:-1], rows[40:]),
    ):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([columns, *(row[: len(columns)] for row in part)])
    shutil.copy(load("spaceship-titanic").folder / "baseline" / "train.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "submission.csv")) == 21
