"""Accuracy of the predicted fates, joined by PassengerId."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.evaluation import boolean, read_answers, read_submission


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Share of correct predictions, 0 to 1; higher is better."""
    columns = {"Transported": boolean}
    answers = read_answers(answers_dir / "answers.csv", key="PassengerId", columns=columns)
    rows = read_submission(
        submission_dir / "submission.csv", key="PassengerId", columns=columns, ids=answers, max_mb=5
    )
    return sum(rows[id_] == answer for id_, answer in answers.items()) / len(answers)
