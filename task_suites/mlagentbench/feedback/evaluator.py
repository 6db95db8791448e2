"""Mean column-wise root mean squared error of the six predicted grades, joined by text_id."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from pytest_mlab.evaluation import number, number_within, read_answers, read_submission

GRADES = ["cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]
# Far beyond any grade, so that a bad model has a score and its squares stay finite.
PREDICTION = number_within(-1e6, 1e6)


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """The mean of six errors, in grades; lower is better."""
    answers = read_answers(
        answers_dir / "answers.csv", key="text_id", columns=dict.fromkeys(GRADES, number)
    )
    rows = read_submission(
        submission_dir / "submission.csv",
        key="text_id",
        columns=dict.fromkeys(GRADES, PREDICTION),
        ids=answers,
        max_mb=5,
    )
    errors = [
        math.sqrt(
            statistics.fmean(
                (rows[id_][grade] - answer[grade]) ** 2 for id_, answer in answers.items()
            )
        )
        for grade in GRADES
    ]
    return statistics.fmean(errors)
