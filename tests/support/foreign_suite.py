"""Folders in MLAgentBench's own format: standard library only, different in the ways in which real
ones differ."""

from __future__ import annotations

from pathlib import Path

PROBLEM = "Improve train.py: write a label for every line of test.csv to submission.csv."

TRAIN = """\
with open("test.csv") as file:
    ids = file.read().split()[1:]
with open("submission.csv", "w") as file:
    file.write("id,label\\n" + "".join(f"{one},{GUESS}\\n" for one in ids))
"""

STARTER = "GUESS = 'no'\n" + TRAIN

PREPARE = """\
env, scripts = "../env", "."
with open(f"{env}/test.csv", "w") as file:
    file.write("id\\n" + "".join(f"t{i}\\n" for i in range(10)))
with open(f"{scripts}/answer.csv", "w") as file:
    file.write("id,label\\n" + "".join(f"t{i},{'yes' if i < 6 else 'no'}\\n" for i in range(10)))
with open("count.txt", "a") as file:
    file.write("once\\n")
"""

EVAL = """\
import os


def table(path):
    with open(path) as file:
        return dict(line.strip().split(",") for line in file.readlines()[1:])


def get_score(submission_folder="../env"):
    truth = table("answer.csv")                 # relative: the working directory has to be scripts/
    assert os.path.exists("../env/train.py")
    given = table(os.path.join(submission_folder, "submission.csv"))
    return sum(given[key] == label for key, label in truth.items()) / len(truth)


if __name__ == "__main__":
    print(get_score())
"""

MLAB_TOML = """\
metric = "accuracy"
direction = "maximize"
baseline = [0.4, 0.4]
modality = "tabular"
starter_script = "train.py"
"""


def foreign_task(folder: Path, files: dict[str, str | None] | None = None) -> Path:
    """Write a task into ``folder``: one that scores 0.4 as it is. ``files`` are added or, with
    None, left out."""
    content: dict[str, str | None] = {
        "env/train.py": STARTER,
        "scripts/research_problem.txt": PROBLEM,
        "scripts/read_only_files.txt": "./test.csv\n",
        "scripts/prepare.py": PREPARE,
        "scripts/eval.py": EVAL,
        "mlab.toml": MLAB_TOML,
        **(files or {}),
    }
    for name, text in content.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    """Contents by path: to see that nothing was written."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }
