"""Nine trials of which one is long, on four workers: the run should last as long as the long
one."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import Row

LONG, SHORT = 6.0, 0.5

TASK = """
[task]
name = "{name}"
version = "1"
summary = "Sleep {seconds} s, then hand in one row."
modality = "tabular"

[metric]
name = "accuracy"
direction = "maximize"

[submission]
kind = "csv"
path = "submission.csv"
columns = ["id", "answer"]

[[data.mini.source]]
kind = "generator"

[data.mini.baseline]
measured = "starter"
scores = [0.5]
mean = 0.5
std = 0.0
"""
TRAIN = """
import time
time.sleep({seconds})
with open("submission.csv", "w") as file:
    file.write("id,answer\\n1,1\\n")
"""
DATA = """
from pathlib import Path


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    (answers / "answer.txt").write_text("1")
"""
EVALUATOR = """
from pathlib import Path


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    return 1.0
"""
ACTIONS = """
[[action]]
name = "Execute Script"
[action.args]
script_name = "train.py"

[[action]]
name = "Final Answer"
[action.args]
final_answer = "done"
"""


def _write_task(folder: Path, seconds: float) -> None:
    files = {
        "task.toml": TASK.format(name=folder.name, seconds=seconds),
        "description.md": "Hand in an answer. Metric: accuracy, higher is better.\n",
        "env/train.py": TRAIN.format(seconds=seconds),
        "data.py": DATA,
        "evaluator.py": EVALUATOR,
        "reference/actions.toml": ACTIONS,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _run(project: Path, number: int, selection: list[str]) -> tuple[float, float]:
    """Wall time of the session, and that of the long trial inside it, in seconds."""
    run = project / f"run-{number}"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n4",
        "--mlab-agent=reference",
        "--mlab-suite=sleepers",
    ]
    command += ["--mlab-repeats=1", "--mlab-sandbox=local", f"--mlab-cache-dir={project / 'cache'}"]
    began = time.perf_counter()
    done = subprocess.run(
        [*command, f"--mlab-run-dir={run}", *selection],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"the benchmark's run failed:\n{done.stdout}{done.stderr}")
    result = json.loads(next(run.rglob("trials/task-5-long/*/1/result.json")).read_text())
    return wall, result["finished_at"] - result["started_at"]


def measure(*, quick: bool = False) -> list[Row]:
    """Makespan against the long trial's own time; the rest is the start and the end of the
    session."""
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        (project / "pytest.ini").write_text("[pytest]\n")
        suites = project / "task_suites"
        for number in range(1, 10):
            long = number == 5
            _write_task(
                suites / "sleepers" / f"task-{number}{'-long' if long else ''}",
                LONG if long else SHORT,
            )
        (suites / "test_sleepers.py").write_text(
            "def test_sleeps(mlab_trial):\n    assert mlab_trial.beats_baseline\n"
        )
        pairs = [_run(project, number, []) for number in range(1 if quick else 3)]
    wall = statistics.median(pair[0] for pair in pairs)
    ratio = statistics.median(wall / long for wall, long in pairs)
    return [Row("makespan of 9 trials, one long, -n 4", wall, "s", None, ratio, "the long trial")]
