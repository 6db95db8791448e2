"""eval.py finds the folders that it expects, and what it does is blamed on the right one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.evaluation import main

ADAPTER = "from pytest_mlab.evaluation.mlagentbench import evaluate\n"


def verdict(tmp_path: Path, source: str, *, submitted: str | None = "0.5", helper: str = "") -> Any:
    files = {
        "evaluator.py": ADAPTER,
        "answers/scripts/eval.py": source,
        "answers/scripts/answer.csv": "0.25",
        "answers/env/train.py": helper or "HELP = 1\n",
        "answers/env/data/points.txt": "4",
    }
    if submitted is not None:
        files["submission/submission.csv"] = submitted
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in ("submission", "scratch"):
        (tmp_path / name).mkdir(exist_ok=True)
    words = [
        "--evaluator",
        "evaluator.py",
        "--submission",
        "submission",
        "--answers",
        "answers",
        "--result",
        "v.json",
    ]
    paths = [word if word.startswith("--") else str(tmp_path / word) for word in words]
    command = [sys.executable, "-I", "-B", main.__file__, *paths]
    subprocess.run(command, cwd=tmp_path / "scratch", check=True, capture_output=True)
    return json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))


SCORES = """\
import os, sys
sys.path.append("../env")
import train
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../env"))

def get_score(submission_folder="../env"):
    assert os.path.basename(os.getcwd()) == "scripts"
    assert train.HELP == 1
    beside = os.path.dirname(__file__) + "/answer.csv"
    truth = float(open("answer.csv").read()) + float(open(beside).read())
    points = float(open("../env/data/points.txt").read()) - float(open("./data/points.txt").read())
    open("cache.txt", "w").close()                  # its working directory can be written to
    return truth + points + float(open(os.path.join(submission_folder, "submission.csv")).read())
"""


def test_it_runs_in_scripts_beside_env(tmp_path: Path) -> None:
    found = verdict(tmp_path, SCORES)
    assert (found["verdict"], found["score"]) == ("scored", 1.0), found["reason"]
    assert not (tmp_path / "answers" / "scripts" / "cache.txt").exists()


def test_a_missing_submission_is_the_agents(tmp_path: Path) -> None:
    found = verdict(tmp_path, SCORES, submitted=None)
    assert (found["verdict"], found["reason"]) == ("no_submission", "submission.csv is missing")


def test_content_that_cannot_be_scored_is_the_agents(tmp_path: Path) -> None:
    found = verdict(tmp_path, SCORES, submitted="much")
    assert found["verdict"] == "invalid_submission"
    assert "ValueError: could not convert" in found["reason"]


@pytest.mark.parametrize("value", ["1e10", "float('nan')"])
def test_a_placeholder_is_no_score(tmp_path: Path, value: str) -> None:
    found = verdict(tmp_path, f"def get_score(folder):\n    return {value}\n")
    assert found["verdict"] == "invalid_submission"


@pytest.mark.parametrize(
    "source",
    [
        "import no_such_package_here\n",
        "def get_score(folder):\n    import no_such_package_here\n",
        "def get_score(folder):\n    open('no_such_answers.csv')\n",
        "def get_score(folder):\n    raise ConnectionError('no network')\n",
        "def get_score(folder):\n    return None\n",
        "def other(folder):\n    return 1.0\n",
    ],
)
def test_what_the_submission_cannot_cause_is_the_tasks(tmp_path: Path, source: str) -> None:
    assert verdict(tmp_path, source)["verdict"] == "task_error"
