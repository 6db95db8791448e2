"""Score many submissions of one task in one evaluation sandbox: as
:mod:`pytest_mlab.trial.evaluate`, without a start of Python and its libraries for each.

For submissions that are the task's own, as ``mlab validate`` makes them: they share the sandbox's
workspace. An agent's submission has a sandbox of its own."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from pytest_mlab.core.sandbox_api import Sandbox, SandboxSpec
from pytest_mlab.core.task import Task
from pytest_mlab.errors import StoreError
from pytest_mlab.trial.evaluate import KEEP_OUTPUT, Evaluated, command, mounts, read_result

_RESULTS = "verdicts"


def evaluate_batch(
    task: Task,
    sandbox: Sandbox,
    *,
    submissions: Path,
    answers: Path,
    label: str,
    scratch: Path,
    timeout: float,
) -> dict[str, Evaluated]:
    """The results of the folders in ``submissions`` by name, those that say something about the
    submission: one whose evaluation failed, or took more than ``timeout`` seconds, has none here
    and is to be evaluated alone. So is each whose evaluation runs its code (``kind = "script"``).

    Raises SandboxError."""
    if task.submission.kind == "script":
        return {}
    names = [folder.name for folder in submissions.iterdir()]
    with tempfile.TemporaryDirectory(prefix="evaluation-", dir=scratch) as name:
        folder = Path(name)
        spec = SandboxSpec(folder, label, mounts(task, submissions, answers), task.resources)
        connection = sandbox.open(spec)
        try:
            connection.execute(
                [*command(connection, result=_RESULTS), "--each", str(timeout)],
                timeout=timeout * len(names),
                keep=KEEP_OUTPUT,
            )
        finally:
            connection.close()
        results = {}
        for name in names:
            # Evaluated alone, it says what is wrong.
            with contextlib.suppress(OSError, ValueError, OverflowError, StoreError):
                results[name] = read_result(folder / _RESULTS / f"{name}.json")
    return {name: result for name, result in results.items() if result.word != "task_error"}
