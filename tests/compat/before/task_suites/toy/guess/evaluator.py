import csv

from pytest_mlab.evaluation import InvalidSubmission, NoSubmission


def labels(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or set(rows[0]) != {"id", "label"}:
        raise InvalidSubmission(f"{path.name}: needs the columns id and label")
    return {row["id"]: row["label"] for row in rows}


def evaluate(submission_dir, answers_dir):
    path = submission_dir / "submission.csv"
    if not path.exists():
        raise NoSubmission("submission.csv is missing")
    truth = labels(answers_dir / "answers.csv")
    given = labels(path)
    if set(given) != set(truth):
        raise InvalidSubmission(f"submission.csv: {len(set(given) ^ set(truth))} ids are missing or unknown")
    return sum(given[key] == label for key, label in truth.items()) / len(truth)
