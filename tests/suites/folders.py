"""Task folders to test with: a whole, right one, and ways to change one thing in it."""

from __future__ import annotations

from pathlib import Path

TASK_TOML = """\
read_only = ["train.csv"]
requirements = ["numpy>=1.26"]

[task]
name = "toy"
version = "1"
summary = "Predict y from x."
modality = "tabular"

[metric]
name = "accuracy"
direction = "maximize"
low = 0.0
high = 1.0

[submission]
kind = "csv"
path = "submission.csv"
columns = ["id", "y"]

[budget]
max_time = "1h30m"

[[data.mini.source]]
kind = "embedded"
ref = "raw/points.csv"
licence = "public domain"

[data.mini.baseline]
measured = "starter"
scores = [0.5, 0.6]
mean = 0.55
std = 0.0707107
machine = "a desk"

[[data.full.source]]
kind = "http"
ref = "https://data.invalid/points.csv"
sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
size_mb = 1.5
licence = "public domain"
"""

DATA_PY = """\
from pathlib import Path


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    lines = (raw / "points.csv").read_text().splitlines()
    (public / "train.csv").write_text("\\n".join(lines[:-1]) + "\\n")
    (answers / "answer.csv").write_text(lines[-1] + "\\n")
"""

ACTIONS_TOML = """\
[[action]]
name = "Write File"
content_file = "train.py"
[action.args]
file_name = "train.py"

[[action]]
name = "Final Answer"
[action.args]
final_answer = "done"
"""


def toy_task(parent: Path, name: str = "toy") -> Path:
    """A right task folder below ``parent``."""
    folder = parent / name
    files = {
        "task.toml": TASK_TOML.replace('name = "toy"', f'name = "{name}"'),
        "description.md": "Predict y. The metric is accuracy; higher is better.\n",
        "data.py": DATA_PY,
        "evaluator.py": "def evaluate(submission_dir, answers_dir):\n    return 1.0\n",
        "env/train.py": "print('train')\n",
        "raw/points.csv": "id,y\n1,0\n2,1\n",
        "reference/actions.toml": ACTIONS_TOML,
        "reference/train.py": "print('better')\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def edit(file: Path, old: str, new: str) -> None:
    """Replace ``old``, which must be there, by ``new`` in a file."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
