"""SMAPE+1 of the predicted ratings, joined by prediction_id, over the ratings that were really
taken."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.evaluation import number_within, read_answers, read_submission


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """From 0 to 200; lower is better."""
    answers = read_answers(
        answers_dir / "answers.csv", key="prediction_id", columns={"rating": rating_or_none}
    )
    rows = read_submission(
        submission_dir / "submission.csv",
        key="prediction_id",
        columns={"rating": number_within(-1e6, 1e6)},
        ids=answers,
        max_mb=20,
    )
    known = {
        id_: answer["rating"] for id_, answer in answers.items() if answer["rating"] is not None
    }
    return (
        100
        * sum(difference(rows[id_]["rating"], rating) for id_, rating in known.items())
        / len(known)
    )


def difference(predicted: float, truth: float) -> float:
    """|p - t| over the mean of |p| and |t|, 1 added to both; 0 to 2."""
    predicted, truth = predicted + 1, truth + 1
    if predicted == truth:
        return 0.0
    return abs(predicted - truth) / ((abs(predicted) + abs(truth)) / 2)


def rating_or_none(value: str) -> float | None:
    """None for a rating that was never taken."""
    return float(value) if value else None
