"""amp-parkinsons-disease-progression-prediction: the metric, the split by patients, the API,
Kaggle's files."""

from __future__ import annotations

import csv
import random
import re
import runpy
import shutil
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_mlab.data.prepare import Prepared
from tests.tasks.conftest import load

NAME = "amp-parkinsons-disease-progression-prediction"
CLINICAL = (
    "visit_id,patient_id,visit_month,updrs_1,updrs_2,updrs_3,updrs_4,"
    "upd23b_clinical_state_on_medication"
)
PROTEINS = "visit_id,visit_month,patient_id,UniProt,NPX"
PEPTIDES = "visit_id,visit_month,patient_id,UniProt,Peptide,PeptideAbundance"
ID = re.compile(r"(\d+)_(\d+)_updrs_([1-4])_plus_(0|6|12|24)_months")

PreparedBy = Callable[[str], Prepared]
Verdict = Callable[[str, Path], dict[str, Any]]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def truth(prepared: Prepared) -> dict[str, str]:
    return {row["prediction_id"]: row["rating"] for row in read(prepared.answers / "answers.csv")}


def submit(folder: Path, ratings: dict[str, str] | dict[str, float]) -> Path:
    lines = [f"{name},{rating}\n" for name, rating in ratings.items()]
    (folder / "submission.csv").write_text("prediction_id,rating\n" + "".join(lines))
    return folder


# --- metric ---


def test_the_score_is_smape_after_adding_one(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    import numpy as np

    answers = truth(prepared(NAME))
    rng = np.random.default_rng(3)
    guess = {
        name: float(value)
        for name, value in zip(answers, rng.uniform(-3, 40, len(answers)), strict=True)
    }
    known = [name for name, rating in answers.items() if rating]
    y = np.array([float(answers[name]) for name in known]) + 1
    p = np.array([guess[name] for name in known]) + 1
    expected = float(np.mean(200 * np.abs(p - y) / (np.abs(p) + np.abs(y))))
    found = verdict(NAME, submit(tmp_path, guess))
    assert found["score"] == pytest.approx(expected, rel=1e-12)


def test_smape_of_a_case_by_hand(verdict: Verdict, tmp_path: Path) -> None:
    from pytest_mlab.evaluation.main import judge

    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "answers.csv").write_text("prediction_id,rating\na,0\nb,3\nc,\nd,9\n")
    submit(tmp_path, {"d": 9.0, "a": 1.0, "c": 50.0, "b": 1.0})
    # a: |2 - 1| / 1.5, b: |2 - 4| / 3, d: 0; c was never rated
    expected = 100 * (1 / 1.5 + 2 / 3) / 3
    found = judge(load(NAME).folder / "evaluator.py", tmp_path, tmp_path / "answers")
    assert found["score"] == pytest.approx(expected, rel=1e-12)


def test_predicting_minus_one_for_a_rating_of_minus_one_is_no_division_by_zero(
    tmp_path: Path,
) -> None:
    evaluator = runpy.run_path(str(load(NAME).folder / "evaluator.py"))
    assert evaluator["difference"](-1.0, -1.0) == 0.0
    assert evaluator["difference"](-1.0, 0.0) == 2.0


def test_fault_misaligned_rows_a_perfect_submission_in_the_apis_order_scores_zero(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """The published evaluator compared by position, in another order than the API writes: 44.8
    instead of 0."""
    answers = truth(prepared(NAME))
    sample = read(prepared(NAME).public / "example_test_files" / "sample_submission.csv")
    months = [int(row["visit_month"]) for row in sample]
    assert months == sorted(months)
    assert verdict(
        NAME,
        submit(tmp_path, {r["prediction_id"]: answers[r["prediction_id"]] or "0" for r in sample}),
    )["score"] == pytest.approx(0.0)
    by_wait = sorted(answers, key=lambda name: (name.split("_plus_")[1], name))
    assert by_wait != list(answers)
    assert (
        verdict(NAME, submit(tmp_path, {name: answers[name] or "0" for name in by_wait}))["score"]
        == 0.0
    )


def test_an_infinite_or_huge_rating_is_refused(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    answers = truth(prepared(NAME))
    for rating in ("1.7e308", "-1e7"):
        found = verdict(NAME, submit(tmp_path, dict.fromkeys(answers, rating)))
        assert found["verdict"] == "invalid_submission"


# --- data ---


def test_fault_two_test_patients_a_fifth_of_the_patients_is_tested(prepared: PreparedBy) -> None:
    public = prepared(NAME).public
    test = {row["patient_id"] for row in read(public / "example_test_files" / "test.csv")}
    train = {row["patient_id"] for row in read(public / "train_clinical_data.csv")}
    assert len(test) >= 20
    assert len(test) == pytest.approx(0.2 * len(test | train), abs=1)
    answers = truth(prepared(NAME))
    assert sum(bool(rating) for rating in answers.values()) > 1000


def test_test_patients_are_in_no_training_table(prepared: PreparedBy) -> None:
    public = prepared(NAME).public
    test = {row["patient_id"] for row in read(public / "example_test_files" / "test.csv")}
    for name in (
        "train_clinical_data",
        "train_proteins",
        "train_peptides",
        "supplemental_clinical_data",
    ):
        assert not {row["patient_id"] for row in read(public / f"{name}.csv")} & test, name
    for name in ("test_proteins", "test_peptides"):
        assert {
            row["patient_id"] for row in read(public / "example_test_files" / f"{name}.csv")
        } <= test, name


def test_no_file_but_the_training_tables_holds_ratings(prepared: PreparedBy) -> None:
    folder = prepared(NAME).public / "example_test_files"
    assert set(read(folder / "test.csv")[0]) == {
        "visit_id",
        "patient_id",
        "visit_month",
        "row_id",
        "updrs_test",
    }
    assert {row["rating"] for row in read(folder / "sample_submission.csv")} == {"0"}


def test_every_visit_part_and_wait_is_asked_for_whether_rated_or_not(prepared: PreparedBy) -> None:
    """What is asked for must not tell which later visits there were."""
    folder = prepared(NAME).public / "example_test_files"
    visits = {row["visit_id"] for row in read(folder / "test.csv")}
    wanted = [row["prediction_id"] for row in read(folder / "sample_submission.csv")]
    assert len(set(wanted)) == len(wanted) == 16 * len(visits)
    assert all(ID.fullmatch(name) for name in wanted)
    assert set(wanted) == set(truth(prepared(NAME)))


def tables(folder: Path, patients: int) -> None:
    """Kaggle's four files, small: medication state and part 4 are missing at the first visit."""
    clinical, proteins, peptides = [CLINICAL], [PROTEINS], [PEPTIDES]
    for patient in range(1, patients + 1):
        clinical += [
            f"{patient}_0,{patient},0,1.0,2.0,3.0,,",
            f"{patient}_6,{patient},6,5.0,,7.0,8.0,On",
        ]
        proteins.append(f"{patient}_0,0,{patient},P{patient},11254.3")
        peptides.append(f"{patient}_0,0,{patient},P{patient},ABC,11254.3")
    supplemental = [CLINICAL, "99999_0,99999,0,1.0,2.0,3.0,,"]
    contents = {
        "train_clinical_data": clinical,
        "train_proteins": proteins,
        "train_peptides": peptides,
        "supplemental_clinical_data": supplemental,
    }
    folder.mkdir()
    for name, lines in contents.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_fault_dropped_visits_every_rating_that_was_taken_counts(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    """The published answers left out each visit with a missing medication state or any missing
    rating."""
    tables(tmp_path / "raw", 100)
    public, answers = full(NAME, tmp_path / "raw")
    test = {row["patient_id"] for row in read(public / "example_test_files" / "test.csv")}
    assert len(test) == 20
    found = {row["prediction_id"]: row["rating"] for row in read(answers / "answers.csv")}
    for patient in test:
        of_patient = {
            name: rating
            for name, rating in found.items()
            if name.startswith(f"{patient}_") and rating
        }
        assert of_patient == {
            f"{patient}_0_updrs_1_plus_0_months": "1.0",
            f"{patient}_0_updrs_2_plus_0_months": "2.0",
            f"{patient}_0_updrs_3_plus_0_months": "3.0",
            f"{patient}_0_updrs_1_plus_6_months": "5.0",
            f"{patient}_0_updrs_3_plus_6_months": "7.0",
            f"{patient}_0_updrs_4_plus_6_months": "8.0",
            f"{patient}_6_updrs_1_plus_0_months": "5.0",
            f"{patient}_6_updrs_3_plus_0_months": "7.0",
            f"{patient}_6_updrs_4_plus_0_months": "8.0",
        }


def test_full_splits_kaggles_tables_by_patient(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    tables(tmp_path / "raw", 110)
    public, _ = full(NAME, tmp_path / "raw")
    test = {row["patient_id"] for row in read(public / "example_test_files" / "test.csv")}
    train = {row["patient_id"] for row in read(public / "train_clinical_data.csv")}
    assert (len(train), len(test)) == (88, 22)
    for table in ("proteins", "peptides"):
        assert {row["patient_id"] for row in read(public / f"train_{table}.csv")} == train
        assert {
            row["patient_id"] for row in read(public / "example_test_files" / f"test_{table}.csv")
        } == test
    assert len(read(public / "supplemental_clinical_data.csv")) == 1


def test_full_refuses_other_files_and_too_few_patients(
    data_py: Callable[[str], ModuleType],
    full: Callable[[str, Path], tuple[Path, Path]],
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match="97 patients; expected enough for 20 test patients"):
        data_py(NAME).test_patients({str(n) for n in range(97)})
    tables(tmp_path / "raw", 100)
    (tmp_path / "raw" / "train_proteins.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        ValueError, match=r"train_proteins\.csv: expected the columns visit_id, .*; found a, b"
    ):
        full(NAME, tmp_path / "raw")


def test_fault_misspelt_names_all_tables_are_read_only() -> None:
    """The published list said train_protein.csv and train_peptide.csv, which no file is called."""
    patterns = load(NAME).read_only
    for name in (
        "train_proteins.csv",
        "train_peptides.csv",
        "train_clinical_data.csv",
        "example_test_files/test.csv",
    ):
        assert any(fnmatch(name, pattern) for pattern in patterns), name


# --- the API ---


def test_fault_make_env_is_where_the_text_says(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_folder = load(NAME).folder / "env"
    assert (
        "public_timeseries_testing_util.make_env()"
        in (env_folder / "evaluation_details.txt").read_text()
    )
    shutil.copytree(prepared(NAME).public / "example_test_files", tmp_path / "example_test_files")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    util = runpy.run_path(str(env_folder / "public_timeseries_testing_util.py"))

    env = util["make_env"]()
    seen = []
    for test, peptides, proteins, sample_submission in env.iter_test():
        (month,) = set(test["visit_month"])
        assert set(proteins["visit_month"]) | set(peptides["visit_month"]) <= {month}
        seen.append(month)
        env.predict(sample_submission.sample(frac=1, random_state=0))
    assert seen == sorted(set(seen))
    zeros = verdict(NAME, tmp_path)
    assert zeros["verdict"] == "scored"
    answers = truth(prepared(NAME))
    submit(tmp_path, dict.fromkeys(random.Random(0).sample(sorted(answers), len(answers)), "0"))
    assert verdict(NAME, tmp_path)["score"] == pytest.approx(zeros["score"])

    env = util["make_env"]()
    with pytest.raises(RuntimeError, match="call predict"):
        for _ in env.iter_test():
            pass


# --- degenerate predictors ---


def best_constants(data: Prepared) -> dict[str, float]:
    """Predictions by id: the best constant for each part, wait and month, chosen on the training
    patients."""
    rows = read(data.public / "train_clinical_data.csv")
    known = {
        (row["patient_id"], int(row["visit_month"]), part): float(row[f"updrs_{part}"])
        for row in rows
        for part in range(1, 5)
        if row[f"updrs_{part}"]
    }
    ratings: dict[tuple[int, int, int], list[float]] = {}
    for patient, month, part in known:
        for wait in (0, 6, 12, 24):
            if (patient, month + wait, part) in known:
                ratings.setdefault((month, part, wait), []).append(
                    known[patient, month + wait, part]
                )

    def loss(constant: float, values: list[float]) -> float:
        return sum(abs(constant - v) / (constant + v + 2) for v in values)

    best = {
        key: min(sorted(set(values)), key=lambda c: loss(c, values))
        for key, values in ratings.items()
    }
    guess = {}
    for name in truth(data):
        match = ID.fullmatch(name)
        assert match is not None
        _, month, part, wait = map(int, match.groups())
        guess[name] = best.get((month, part, wait), 0.0)
    return guess


def test_no_constant_counts_as_success(
    prepared: PreparedBy, verdict: Verdict, tmp_path: Path
) -> None:
    """Even the best one for each part, wait and month, chosen on the training patients."""
    from pytest_mlab.core.scoring import judge as judge_score
    from pytest_mlab.core.trial import Outcome

    found = verdict(NAME, submit(tmp_path, best_constants(prepared(NAME))))
    assert 50 < found["score"] < 65
    assert judge_score(load(NAME), "mini", found["score"]).outcome is Outcome.BELOW_THRESHOLD
