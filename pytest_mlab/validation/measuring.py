"""Run one of a task's own scripts once, outside any trial, and score it: what ``mlab measure``
repeats.

Under the same limits and with the same evaluation as a trial's, but in the sandbox ``local``: what
runs here are the task's own files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pytest_mlab import sandboxes
from pytest_mlab.core.actions import Action
from pytest_mlab.core.crashes import crash_line
from pytest_mlab.core.sandbox_api import Connection, Execution, Sandbox, SandboxSpec
from pytest_mlab.core.task import Task
from pytest_mlab.data.prepare import Prepared
from pytest_mlab.errors import EvaluatorError, SandboxError, SuiteError
from pytest_mlab.lib.identity import machine
from pytest_mlab.suites.scripts import scripted_actions
from pytest_mlab.trial.evaluate import evaluate

What = Literal["baseline", "reference", "trivial"]
SCRIPT_TIMEOUT = 3600.0


def measure_once(task: Task, prepared: Prepared, what: What) -> float:
    """The score of one run of the baseline, the reference or the trivial predictor in a fresh
    workspace.

    Raises SuiteError when a script fails or the submission is refused, EvaluatorError when the
    evaluator fails, SandboxError."""
    sandbox = sandboxes.for_own_files()
    label = f"measure-{task.name}-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="mlab-measure-") as folder:
        workspace = Path(folder) / "workspace"
        shutil.copytree(
            task.folder / "env", workspace, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
        shutil.copytree(prepared.public, workspace, dirs_exist_ok=True)
        connection = sandbox.open(SandboxSpec(workspace, label, resources=task.resources))
        try:
            replay(task, scripted_actions(task, what), workspace, connection)
        finally:
            connection.close()
        return _score(task, sandbox, workspace, prepared.answers, label)


def replay(task: Task, actions: Sequence[Action], workspace: Path, connection: Connection) -> None:
    """Do the actions of a task's own script: Write File, Execute Script, Final Answer. Raises
    SuiteError."""
    for action in actions:
        if action.name == "Write File":
            target = workspace / str(action.args["file_name"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(str(action.args["content"]), encoding="utf-8")
        elif action.name == "Execute Script":
            script = str(action.args["script_name"])
            done = connection.execute([connection.python, script], timeout=SCRIPT_TIMEOUT)
            if done.exit_status != 0:
                raise SuiteError(f"{task.name}: {script} {_end(done)}: {_what_broke(done)}")
        elif action.name != "Final Answer":
            raise SuiteError(
                f"{task.name}: mlab measure cannot do the action {action.name!r}; "
                "these scripts are made of Write File, Execute Script and Final Answer"
            )


def where_measured(task: Task) -> str:
    """The machine, and the versions of the packages that the task requires, as one line."""
    names = [_package(requirement) for requirement in task.requirements]
    return ", ".join([str(machine()["fingerprint"]), *filter(None, map(_installed, names))])


def _score(task: Task, sandbox: Sandbox, workspace: Path, answers: Path, label: str) -> float:
    verdict = evaluate(
        task, sandbox, submission=workspace, answers=answers, label=f"{label}-evaluation"
    )
    if verdict.word == "scored" and verdict.score is not None:
        return verdict.score
    if verdict.word == "infra_error":
        raise SandboxError(verdict.reason)
    if verdict.word == "task_error":
        raise EvaluatorError(verdict.reason)
    raise SuiteError(f"{task.name}: {verdict.word}: {verdict.reason}")


def _end(done: Execution) -> str:
    return (
        f"was killed for {done.killed_for}"
        if done.killed_for
        else f"ended with exit status {done.exit_status}"
    )


def _what_broke(done: Execution) -> str:
    output = done.output.decode("utf-8", "replace").strip()
    return crash_line(output) or output.rpartition("\n")[2][:300] or "no output"


def _package(requirement: str) -> str:
    """The name at the head of a requirement such as ``numpy>=1.26``."""
    length = next(
        (n for n, char in enumerate(requirement) if not (char.isalnum() or char in "-_.")),
        len(requirement),
    )
    return requirement[:length]


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
