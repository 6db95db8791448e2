"""Score a submission by the eval.py of a task in MLAgentBench's format.

eval.py finds what it expects: the working directory is ``scripts/``, it lies there itself,
``../env`` are the starter files with the data, and ``get_score`` gets the submission's folder. All
of it can be written to: a tree of links in the evaluation's own folder."""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from pytest_mlab.evaluation.refusals import InvalidSubmission, NoSubmission

PLACEHOLDER = 1e9
"""Scores from here on stand for "cannot be scored": an eval.py returns 1e10 for what it cannot
read."""


def evaluate(submission_dir: Path, answers_dir: Path) -> Any:
    """What ``get_score`` returns. Raises NoSubmission, InvalidSubmission; whatever else is raised
    blames the task."""
    submission = submission_dir.resolve()
    scripts = lay_out(answers_dir.resolve(), Path.cwd() / "mlagentbench")
    os.chdir(scripts)
    sys.path.insert(0, str(scripts))
    sys.argv = ["eval.py"]
    get_score = _load(scripts / "eval.py").get_score
    try:
        score = get_score(str(submission))
    except (ImportError, MemoryError):
        raise
    except OSError as error:
        refusal = _refusal(error, submission)
        if refusal is None:
            raise
        raise refusal from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}".strip()
        raise InvalidSubmission(f"eval.py cannot score the submission: {what[:500]}") from error
    if isinstance(score, (int, float)) and (math.isnan(score) or abs(score) >= PLACEHOLDER):
        raise InvalidSubmission(
            f"eval.py returned {score:g}, which stands for a submission that it cannot score"
        )
    return score


def lay_out(answers: Path, place: Path) -> Path:
    """Make ``place`` look like the task's folder after preparation; its scripts/ is returned.

    Folders are real, Python files copies (they look for others beside themselves), all other files
    links. Data of env/ can be found from scripts/ as well: an eval.py that was written for another
    working directory finds them there."""
    for side in ("env", "scripts"):
        for folder, _, names in os.walk(answers / side):
            target = place / side / Path(folder).relative_to(answers / side)
            target.mkdir(parents=True, exist_ok=True)
            for name in names:
                if name.endswith(".py"):
                    shutil.copyfile(Path(folder, name), target / name)
                else:
                    (target / name).symlink_to(Path(folder, name))
    scripts = place / "scripts"
    for entry in sorted((place / "env").iterdir()):
        if entry.suffix != ".py" and not (scripts / entry.name).exists():
            (scripts / entry.name).symlink_to(Path("..", "env", entry.name))
    return scripts


def _load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("eval", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["eval"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "get_score", None)):
        raise AttributeError(f"{file.name} has no function get_score(submission_folder)")
    return module


def _refusal(error: OSError, submission: Path) -> Exception | None:
    """What to raise for a file of the submission that is missing or unreadable; None where it is
    the task's fault."""
    name = str(error.filename or "")
    if not os.path.isabs(name) or not Path(name).resolve().is_relative_to(submission):
        return None
    path = Path(name).resolve().relative_to(submission)
    if isinstance(error, FileNotFoundError):
        return NoSubmission(f"{path} is missing")
    return InvalidSubmission(f"{path} cannot be read: {error.strerror}")
