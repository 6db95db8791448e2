"""house-price: the metric, the Ames export, Kaggle's files."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.data.prepare import Prepared

HEADER = (
    "Id,MSSubClass,MSZoning,LotFrontage,LotArea,Street,Alley,LotShape,LandContour,Utilities,LotConfig,LandSlope,"
    "Neighborhood,Condition1,Condition2,BldgType,HouseStyle,OverallQual,OverallCond,YearBuilt,YearRemodAdd,RoofStyle,"
    "RoofMatl,Exterior1st,Exterior2nd,MasVnrType,MasVnrArea,ExterQual,ExterCond,Foundation,BsmtQual,BsmtCond,"
    "BsmtExposure,BsmtFinType1,BsmtFinSF1,BsmtFinType2,BsmtFinSF2,BsmtUnfSF,TotalBsmtSF,Heating,HeatingQC,CentralAir,"
    "Electrical,1stFlrSF,2ndFlrSF,LowQualFinSF,GrLivArea,BsmtFullBath,BsmtHalfBath,FullBath,HalfBath,BedroomAbvGr,"
    "KitchenAbvGr,KitchenQual,TotRmsAbvGrd,Functional,Fireplaces,FireplaceQu,GarageType,GarageYrBlt,GarageFinish,"
    "GarageCars,GarageArea,GarageQual,GarageCond,PavedDrive,WoodDeckSF,OpenPorchSF,EnclosedPorch,3SsnPorch,ScreenPorch,"
    "PoolArea,PoolQC,Fence,MiscFeature,MiscVal,MoSold,YrSold,SaleType,SaleCondition,SalePrice"
)
KAGGLE = HEADER.split(",")


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_ames_table_has_kaggles_shape(prepared: Callable[[str], Prepared]) -> None:
    public = prepared("house-price").public
    train, test = read(public / "train.csv"), read(public / "test.csv")
    assert train[0] == KAGGLE
    assert test[0] == KAGGLE[:-1]
    assert (len(train) - 1, len(test) - 1) == (1168, 292)
    assert {len(row) for row in train} == {81}


def test_the_score_is_the_mean_absolute_error(
    prepared: Callable[[str], Prepared],
    verdict: Callable[[str, Path], dict[str, Any]],
    tmp_path: Path,
) -> None:
    from sklearn.metrics import mean_absolute_error

    answers = {
        row[0]: float(row[1]) for row in read(prepared("house-price").answers / "answers.csv")[1:]
    }
    rng = random.Random(3)
    guess = {i: price * rng.uniform(0.5, 1.5) - 3.5 for i, price in answers.items()}
    ids = sorted(guess, key=lambda _: rng.random())
    (tmp_path / "submission.csv").write_text(
        "SalePrice,Id\n" + "".join(f"{guess[i]!r},{i}.0\n" for i in ids)
    )
    expected = mean_absolute_error([answers[i] for i in ids], [guess[i] for i in ids])
    assert verdict("house-price", tmp_path)["score"] == pytest.approx(expected, rel=1e-12)


def test_a_price_out_of_this_world_is_no_score(
    prepared: Callable[[str], Prepared],
    verdict: Callable[[str, Path], dict[str, Any]],
    tmp_path: Path,
) -> None:
    ids = [row[0] for row in read(prepared("house-price").answers / "answers.csv")[1:]]
    (tmp_path / "submission.csv").write_text(
        "Id,SalePrice\n" + "".join(f"{i},1.7e308\n" for i in ids)
    )
    found = verdict("house-price", tmp_path)
    assert found["verdict"] == "invalid_submission"
    assert "expected a finite number from -1e+09 to 1e+09" in found["reason"]


def test_full_takes_kaggles_training_file(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    rows = [
        [str(n), *("NA" if c == "Alley" else f"{c}, {n}" for c in KAGGLE[1:-1]), str(1000 * n)]
        for n in range(1, 11)
    ]
    for name, table in {
        "train.csv": [KAGGLE, *rows],
        "test.csv": [KAGGLE[:-1], ["1461", *rows[0][1:-1]]],
    }.items():
        with (raw / name).open("w", newline="") as file:
            csv.writer(file).writerows(table)
    (raw / "sample_submission.csv").write_text("Id,SalePrice\n1461,1\n")

    public, answers = full("house-price", raw)

    assert read(public / "train.csv") == [KAGGLE, *rows[:8]]
    assert read(public / "test.csv") == [KAGGLE[:-1], *(row[:-1] for row in rows[8:])]
    assert read(answers / "answers.csv") == [["Id", "SalePrice"], ["9", "9000"], ["10", "10000"]]
    assert sorted(path.name for path in public.iterdir()) == ["test.csv", "train.csv"]


def test_full_refuses_another_file(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("PassengerId,Survived\n1,0\n")
    with pytest.raises(
        ValueError,
        match=r"train\.csv: expected Kaggle's columns Id, \.\.\., SalePrice; found PassengerId",
    ):
        full("house-price", tmp_path)
