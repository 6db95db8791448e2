"""A user's project with a suite of one tiny task: standard library only, a trial takes a fraction
of a second."""

from __future__ import annotations

from pathlib import Path

BASELINE = 0.4
"""What the starter's constant guess scores, exactly."""

REFERENCE = 1.0
"""What the reference solution scores, exactly."""

TASK_TOML = """\
read_only = ["train.csv", "test.csv"]
requirements = {requirements}

[task]
name = "{name}"
version = "1"
summary = "Tell yes from no by one number."
modality = "tabular"
timed = {timed}

[metric]
name = "accuracy"
direction = "maximize"
low = 0.0
high = 1.0

[submission]
kind = "csv"
path = "submission.csv"
columns = ["id", "label"]
rows = "one row for each id of test.csv"
max_mb = 1

[resources]
memory_mb = 1024
disk_mb = 64
pids = 64

[[data.mini.source]]
kind = "generator"

[data.mini.baseline]
measured = "starter"
scores = [0.4, 0.4, 0.4]
mean = 0.4
std = 0.0

[data.mini.reference]
measured = "reference"
scores = [1.0]
mean = 1.0
std = 0.0
"""

DESCRIPTION = """\
`train.csv` holds the columns id, x and label (yes or no), `test.csv` the columns id and x. Both
are read-only. Predict the label of every id of `test.csv` and write `submission.csv` with the
columns id and label. The metric is accuracy: higher is better. `train.py` writes a constant guess.
"""

TRAIN = """\
import csv

with open("test.csv", newline="") as file:
    ids = [row["id"] for row in csv.DictReader(file)]
with open("submission.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["id", "label"])
    writer.writerows([one, "no"] for one in ids)
print(f"guessed {len(ids)} times")
"""

BETTER_TRAIN = """\
import csv

with open("train.csv", newline="") as file:
    limit = min(int(row["x"]) for row in csv.DictReader(file) if row["label"] == "yes")
with open("test.csv", newline="") as file:
    rows = list(csv.DictReader(file))
with open("submission.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["id", "label"])
    writer.writerows([row["id"], "yes" if int(row["x"]) >= limit else "no"] for row in rows)
print(f"yes from {limit} on")
"""

DATA = """\
import csv


def write(path, columns, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def prepare(raw, public, answers, variant):
    train = [(f"a{i}", 37 * i % 100) for i in range(100)]
    test = [(f"b{i}", 7 * i % 100) for i in range(100)]
    label = lambda x: "yes" if x >= 40 else "no"
    write(public / "train.csv", ["id", "x", "label"], [(key, x, label(x)) for key, x in train])
    write(public / "test.csv", ["id", "x"], test)
    write(answers / "answers.csv", ["id", "label"], [(key, label(x)) for key, x in test])
"""

EVALUATOR = """\
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
        wrong = len(set(given) ^ set(truth))
        raise InvalidSubmission(f"submission.csv: {wrong} ids are missing or unknown")
    return sum(given[key] == label for key, label in truth.items()) / len(truth)
"""

REFERENCE_ACTIONS = """\
[[action]]
name = "Write File"
content_file = "train.py"
[action.args]
file_name = "train.py"

[[action]]
name = "Execute Script"
[action.args]
script_name = "train.py"

[[action]]
name = "Final Answer"
[action.args]
final_answer = "the smallest x that is a yes"
"""


def write_toy_task(
    folder: Path,
    *,
    evaluator: str = EVALUATOR,
    train: str = TRAIN,
    better_train: str = BETTER_TRAIN,
    requirements: tuple[str, ...] = (),
    timed: bool = False,
    extra_toml: str = "",
) -> Path:
    """Write one task into ``folder`` (its name is the task's) and return the folder.

    ``extra_toml`` is put at the end of task.toml; ``evaluator``, ``train`` and ``better_train``
    replace the hidden evaluator, the starter script and the reference's script."""
    toml = TASK_TOML.format(
        name=folder.name,
        requirements="[" + ", ".join(f'"{one}"' for one in requirements) + "]",
        timed="true" if timed else "false",
    )
    files = {
        "task.toml": toml + extra_toml,
        "description.md": DESCRIPTION,
        "data.py": DATA,
        "evaluator.py": evaluator,
        "env/train.py": train,
        "reference/actions.toml": REFERENCE_ACTIONS,
        "reference/train.py": better_train,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def write_toy_suite(root: Path, *, suite: str = "toy", tasks: tuple[str, ...] = ("guess",)) -> Path:
    """Write ``root/task_suites/<suite>`` with the given tasks (all the same but for their names);
    return it.

    The control agent (``baseline``) scores BASELINE, ``reference`` scores REFERENCE.
    """
    folder = root / "task_suites" / suite
    for task in tasks:
        write_toy_task(folder / task)
    return folder
