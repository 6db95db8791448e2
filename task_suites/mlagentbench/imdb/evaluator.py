"""Accuracy of the more probable labels, joined by idx."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.evaluation import number, read_answers, read_submission


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Share of correct labels, 0 to 1; higher is better. Where both are equally probable, 0
    counts."""
    answers = read_answers(answers_dir / "answers.csv", key="idx", columns={"label": int})
    rows = read_submission(
        submission_dir / "submission.csv",
        key="idx",
        columns={"0": number, "1": number},
        ids=answers,
        max_mb=20,
    )
    right = sum(
        (rows[id_]["1"] > rows[id_]["0"]) == bool(answer["label"])
        for id_, answer in answers.items()
    )
    return right / len(answers)
