"""Run one of a task's own scripts once, outside any trial, and score it: what ``mlab measure``
repeats.

Under the same limits and with the same evaluation as a trial's, but in the sandbox ``local``: what
runs here are the task's own files."""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_mlab import sandboxes
from pytest_mlab.core.sandbox_api import Sandbox, SandboxSpec
from pytest_mlab.core.task import Task
from pytest_mlab.data.prepare import Prepared
from pytest_mlab.errors import EvaluatorError, SandboxError, SuiteError
from pytest_mlab.lib.identity import machine
from pytest_mlab.trial.evaluate import evaluate
from pytest_mlab.trial.provision import provision
from pytest_mlab.trial.scripted import Script, run_script


def measure_once(task: Task, prepared: Prepared, what: Script) -> float:
    """The score of one run of the baseline, the reference or the trivial predictor in a fresh
    workspace.

    Raises SuiteError when a script fails or the submission is refused, EvaluatorError when the
    evaluator fails, SandboxError."""
    sandbox = sandboxes.for_own_files()
    label = f"measure-{task.name}-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="mlab-measure-") as folder:
        workspace = provision(
            task, prepared.public, prepared.files, Path(folder) / "workspace", mounts=False
        )
        connection = sandbox.open(SandboxSpec(workspace.root, label, resources=task.resources))
        try:
            run_script(task, what, workspace, connection, Path(folder) / "outputs")
        finally:
            connection.close()
        return _score(task, sandbox, workspace.root, prepared.answers, label)


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
