"""Accuracy of the classes with the highest score, joined by the number of the test image."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab.evaluation import number, read_answers, read_submission

CLASSES = [str(label) for label in range(10)]


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Share of correct classes, 0 to 1; higher is better."""
    answers = read_answers(answers_dir / "answers.csv", key="number", columns={"label": int})
    rows = read_submission(
        submission_dir / "submission.csv",
        key="",
        columns=dict.fromkeys(CLASSES, number),
        ids=answers,
        max_mb=20,
    )
    right = sum(predicted(rows[id_]) == int(answer["label"]) for id_, answer in answers.items())
    return right / len(answers)


def predicted(row: dict[str, float]) -> int:
    """The class with the highest score, the first of several."""
    return int(max(CLASSES, key=row.__getitem__))
