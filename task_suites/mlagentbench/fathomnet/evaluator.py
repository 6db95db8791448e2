"""Half the normalised AUC of the out-of-sample scores, half the MAP@20 of the ranked categories,
joined by id."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_mlab.evaluation import number_within, read_answers, read_submission, record

MOST = 20  # categories that count

_NUMBERS = re.compile(r"[0-9]{1,9}(?:\.0*)?(?:(?:\s*,\s*|\s+)[0-9]{1,9}(?:\.0*)?)*")


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """(2 AUC - 1) / 2 + MAP@20 / 2, from -0.5 to 1; higher is better."""
    columns = {"categories": Ranked(), "osd": number_within(0, 1)}
    answers = read_answers(answers_dir / "answers.csv", key="id", columns=columns)
    rows = read_submission(
        submission_dir / "submission.csv", key="id", columns=columns, ids=answers, max_mb=50
    )
    precisions = [
        average_precision(rows[id_]["categories"], set(answer["categories"]))
        for id_, answer in answers.items()
        if answer[
            "categories"
        ]  # an image all of whose categories were withheld has none that could be named
    ]
    precision = sum(precisions) / len(precisions)
    area = auc([(rows[id_]["osd"], answer["osd"] == 1) for id_, answer in answers.items()])
    record(map20=precision, auc=area)
    return (2 * area - 1) / 2 + precision / 2


class Ranked:
    """Converts category numbers, most likely first: "1 9" or, as in train.csv, "[1.0, 9.0]". Raises
    ValueError."""

    expected = "category numbers separated by blanks, the most likely first"

    def __call__(self, value: str) -> list[int]:
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            value = value[1:-1].strip()
        if not value:
            return []
        if not _NUMBERS.fullmatch(value):
            raise ValueError(value)
        return [int(float(word)) for word in re.split(r"[\s,]+", value)]


def average_precision(predicted: list[int], truth: set[int]) -> float:
    """AP@20 of one image, 0 to 1; a category that is named again does not count again."""
    total, hits = 0.0, set()
    for place, category in enumerate(predicted[:MOST], 1):
        if category in truth and category not in hits:
            hits.add(category)
            total += len(hits) / place
    return total / min(len(truth), MOST)


def auc(scored: list[tuple[float, bool]]) -> float:
    """Area under the ROC curve: how often an image that is out of sample scores higher than one
    that is not; ties count half."""
    outside = sorted(score for score, positive in scored if positive)
    inside = sorted(score for score, positive in scored if not positive)
    won, below, upto = 0.0, 0, 0
    for score in outside:
        while below < len(inside) and inside[below] < score:
            below += 1
        while upto < len(inside) and inside[upto] <= score:
            upto += 1
        won += (below + upto) / 2
    return won / (len(outside) * len(inside))
