"""Run a task's baseline or reference once, outside any trial, and score it: what ``mlab measure`` repeats.

No sandbox: what runs here are the task's own files. The evaluator is the real one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pytest_mlab.core.ports import Action
from pytest_mlab.core.task import Task
from pytest_mlab.data.prepare import Prepared
from pytest_mlab.errors import EvaluatorError, SuiteError
from pytest_mlab.store.identity import machine
from pytest_mlab.suites.actions import scripted_actions

What = Literal["baseline", "reference"]
SCRIPT_TIMEOUT = 3600.0
EVALUATION_TIMEOUT = 1800.0
_MAIN = Path(__file__).resolve().parent / "evaluation" / "main.py"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def measure_once(task: Task, prepared: Prepared, what: What) -> float:
    """The score of one run in a fresh workspace.

    Raises SuiteError when a script fails or the submission is refused, EvaluatorError when the evaluator fails.
    """
    with tempfile.TemporaryDirectory(prefix="mlab-measure-") as folder:
        workspace = Path(folder) / "workspace"
        shutil.copytree(task.folder / "env", workspace, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        shutil.copytree(prepared.public, workspace, dirs_exist_ok=True)
        replay(task, scripted_actions(task, what), workspace)
        return evaluate(task, workspace, prepared.answers, Path(folder) / "result.json")


def replay(task: Task, actions: Sequence[Action], workspace: Path) -> None:
    """Do the actions of a task's own script: Write File, Execute Script, Final Answer. Raises SuiteError."""
    for action in actions:
        if action.name == "Write File":
            target = workspace / str(action.args["file_name"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(str(action.args["content"]), encoding="utf-8")
        elif action.name == "Execute Script":
            _execute(task, str(action.args["script_name"]), workspace)
        elif action.name != "Final Answer":
            raise SuiteError(
                f"{task.name}: mlab measure cannot do the action {action.name!r}; "
                "a baseline or reference is made of Write File, Execute Script and Final Answer"
            )


def evaluate(task: Task, workspace: Path, answers: Path, result: Path) -> float:
    """The evaluator's score of a workspace. Raises SuiteError for a refused submission, EvaluatorError otherwise."""
    options = ("--evaluator", task.folder / "evaluator.py", "--submission", workspace, "--answers", answers)
    argv = [sys.executable, "-I", str(_MAIN), *map(str, options), "--result", str(result)]
    done = _run(task, "evaluator.py", argv, workspace, EVALUATION_TIMEOUT)
    if not result.is_file():
        raise EvaluatorError(f"{task.name}: evaluator.py gave no verdict: {_tail(done)}")
    verdict = json.loads(result.read_text(encoding="utf-8"))
    if verdict["verdict"] == "task_error":
        raise EvaluatorError(f"{task.name}: {verdict['reason']}")
    if verdict["verdict"] != "scored":
        raise SuiteError(f"{task.name}: {verdict['verdict']}: {verdict['reason']}")
    return float(verdict["score"])


def where_measured(task: Task) -> str:
    """The machine, and the versions of the packages that the task requires, as one line."""
    names = [_package(requirement) for requirement in task.requirements]
    return ", ".join([str(machine()["fingerprint"]), *filter(None, map(_installed, names))])


def _package(requirement: str) -> str:
    """The name at the head of a requirement such as ``numpy>=1.26``."""
    length = next((n for n, char in enumerate(requirement) if not (char.isalnum() or char in "-_.")), len(requirement))
    return requirement[:length]


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""


def _execute(task: Task, script: str, workspace: Path) -> None:
    done = _run(task, script, [sys.executable, script], workspace, SCRIPT_TIMEOUT)
    if done.returncode:
        raise SuiteError(f"{task.name}: {script} ended with exit status {done.returncode}: {_tail(done)}")


def _run(task: Task, name: str, argv: list[str], workspace: Path, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Run with as many threads as a trial of the task has."""
    environment: Mapping[str, str] = {**os.environ, **dict.fromkeys(_THREADS, str(task.resources.cpus))}
    try:
        return subprocess.run(
            argv, cwd=workspace, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise SuiteError(f"{task.name}: {name} did not end within {timeout:.0f} s") from None


def _tail(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "no output"
