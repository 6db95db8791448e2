"""Accuracy of the predicted subjects, joined by the number of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.evaluation import number, read_answers, read_submission


@dataclass(frozen=True)
class Whole:
    """A whole number, also written as 3.0. Raises ValueError."""

    expected: str = "a whole number"

    def __call__(self, value: str) -> int:
        found = number(value)
        if found != int(found):
            raise ValueError(value)
        return int(found)


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Share of correct subjects, 0 to 1; higher is better."""
    columns = {"label": Whole()}
    answers = read_answers(answers_dir / "answers.csv", key="node", columns=columns)
    rows = read_submission(
        submission_dir / "submission.csv", key="node", columns=columns, ids=answers, max_mb=20
    )
    return sum(rows[id_] == answer for id_, answer in answers.items()) / len(answers)
