"""Mean absolute error of the predicted sale prices, joined by Id."""

from __future__ import annotations

import statistics
from pathlib import Path

from pytest_mlab.evaluation import number, number_within, read_answers, read_submission

# Far beyond any house, negative prices of a bad model included; keeps sums finite.
PRICE = number_within(-1e9, 1e9)


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Dollars; lower is better."""
    answers = read_answers(answers_dir / "answers.csv", key="Id", columns={"SalePrice": number})
    rows = read_submission(
        submission_dir / "submission.csv",
        key="Id",
        columns={"SalePrice": PRICE},
        ids=answers,
        max_mb=5,
    )
    return statistics.fmean(
        abs(rows[id_]["SalePrice"] - answer["SalePrice"]) for id_, answer in answers.items()
    )
