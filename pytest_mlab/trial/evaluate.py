"""Score a frozen workspace: run the task's evaluator in a sandbox of its own and read what it says
as untrusted data.

The sandbox has no network and sees, read-only, the submission (``/mlab/submission``), the hidden
answers (``/mlab/answers``), the evaluator and the starter files (``/mlab/task``) and the evaluation
library (``/mlab/lib``). Its workspace is an empty folder, into which the verdict is written. Where
the submission is code that the evaluator runs, the answers are a copy in that folder instead, which
the evaluator deletes before that code starts."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest_mlab
from pytest_mlab.core.sandbox_api import Connection, Execution, Mount, Sandbox, SandboxSpec
from pytest_mlab.core.task import Task
from pytest_mlab.errors import SandboxError, StoreError
from pytest_mlab.store.content import open_regular
from pytest_mlab.trial.time_limits import EVALUATOR

Word = Literal["scored", "invalid_submission", "no_submission", "task_error", "infra_error"]

MAX_RESULT = 256 << 10
"""Bytes that an evaluator's verdict may have."""

MAX_REASON = 2000
_KEEP_OUTPUT = 64 << 10
_PACKAGE = Path(pytest_mlab.__file__).resolve().parent
_RESULT = "verdict.json"
_PRIVATE_ANSWERS = "answers"


@dataclass(frozen=True)
class Verdict:
    """What an evaluation said. ``score`` is a finite number exactly when ``word`` is ``scored``;
    ``reason`` says why not otherwise; ``details`` are the evaluator's own facts; ``seconds`` leaves
    out the wait for the machine."""

    word: Word
    score: float | None = None
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def evaluate(
    task: Task,
    sandbox: Sandbox,
    *,
    submission: Path,
    answers: Path,
    label: str,
    scratch: Path | None = None,
    timeout: float = EVALUATOR,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Evaluate the folder ``submission`` against ``answers``; never raises for what evaluator or
    submission do.

    ``label`` names the sandbox; ``scratch`` is a folder for temporary files that the sandbox
    backend can show (default: the system's). A task whose score is a time waits until no other such
    evaluation runs on this machine."""
    with contextlib.ExitStack() as stack:
        if task.timed:
            stack.enter_context(_machine_to_itself())
        begin = clock()
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evaluation-", dir=scratch))
        verdict = _evaluate(task, sandbox, submission, answers, label, Path(folder), timeout)
        return replace(verdict, seconds=clock() - begin)


def _evaluate(
    task: Task,
    sandbox: Sandbox,
    submission: Path,
    answers: Path,
    label: str,
    folder: Path,
    timeout: float,
) -> Verdict:
    private = task.submission.kind == "script"
    if private:
        _copy_answers(answers, folder / _PRIVATE_ANSWERS)
    spec = SandboxSpec(
        folder, label, _mounts(task, submission, None if private else answers), task.resources
    )
    try:
        connection = sandbox.open(spec)
        try:
            ended = connection.execute(
                _command(connection, private=private), timeout=timeout, keep=_KEEP_OUTPUT
            )
        finally:
            connection.close()  # before the verdict is read: nothing is left that could change it
    except SandboxError as error:
        return Verdict("infra_error", reason=f"the evaluation sandbox failed: {error}")
    return _read_verdict(folder / _RESULT, ended, task, timeout)


def _copy_answers(answers: Path, place: Path) -> None:
    """A copy whose files and folders can be deleted, whatever the modes of the prepared ones."""
    for folder, _, names in os.walk(answers):
        target = place / Path(folder).relative_to(answers)
        target.mkdir()
        for name in names:
            shutil.copyfile(Path(folder) / name, target / name)


def _mounts(task: Task, submission: Path, answers: Path | None) -> tuple[Mount, ...]:
    mounts = [
        Mount(submission, "/mlab/submission"),
        Mount(task.folder / "evaluator.py", "/mlab/task/evaluator.py"),
        Mount(_PACKAGE / "__init__.py", "/mlab/lib/pytest_mlab/__init__.py"),
        Mount(_PACKAGE / "evaluation", "/mlab/lib/pytest_mlab/evaluation"),
    ]
    if answers is not None:
        mounts.append(Mount(answers, "/mlab/answers"))
    if (task.folder / "env").is_dir():
        mounts.append(Mount(task.folder / "env", "/mlab/task/env"))
    return tuple(mounts)


def _command(connection: Connection, *, private: bool) -> list[str]:
    """-I: nothing of the working directory, of the user's site or of variables is imported; -B
    writes nothing."""
    return [
        connection.python,
        "-I",
        "-B",
        connection.locate("/mlab/lib/pytest_mlab/evaluation/main.py"),
        "--evaluator",
        connection.locate("/mlab/task/evaluator.py"),
        "--submission",
        connection.locate("/mlab/submission"),
        "--answers",
        connection.locate(_PRIVATE_ANSWERS if private else "/mlab/answers"),
        *(["--private-answers"] if private else []),
        "--result",
        connection.locate(_RESULT),
    ]


@contextlib.contextmanager
def _machine_to_itself() -> Iterator[None]:
    """One timed evaluation of this user at a time on this machine."""
    from filelock import FileLock

    with FileLock(os.path.join(tempfile.gettempdir(), f"mlab-timed-{os.getuid()}.lock")):
        yield


# --- what came back ---


def _read_verdict(path: Path, ended: Execution, task: Task, timeout: float) -> Verdict:
    if ended.killed_for == "lost":
        return Verdict(
            "infra_error", reason="the evaluation sandbox was lost: its supervisor was killed"
        )
    failure = _failure(ended, task, timeout)
    if failure:
        return _fault(task, failure, ended)
    if ended.exit_status != 0:  # a verdict that is there all the same is not the evaluator's
        return _fault(
            task,
            f"the evaluator ended with status {ended.exit_status} and without a verdict",
            ended,
        )
    try:
        verdict = _parse(_read_bounded(path))
    except FileNotFoundError:
        return _fault(
            task,
            f"the evaluator ended with status {ended.exit_status} and without a verdict",
            ended,
        )
    except (OSError, ValueError, OverflowError, StoreError) as error:
        return _fault(task, f"the evaluator's verdict cannot be read: {error}", ended)
    if verdict.word == "task_error":
        return replace(verdict, reason=f"task {task.name}: {verdict.reason}")
    return verdict


def _failure(ended: Execution, task: Task, timeout: float) -> str:
    """Why the evaluator's process was killed; '' when it ended by itself."""
    limits = task.resources
    return {
        "": "",
        "timeout": f"the evaluator did not end within {timeout:g} s",
        "memory": f"the evaluator used more than its memory of {limits.memory_mb} MiB",
        "pids": f"the evaluator had more than its {limits.pids} processes",
        "disk": f"the evaluator wrote more than its {limits.disk_mb} MiB",
        "signal": f"the evaluator died of signal {ended.signal}",
        "lost": "",
    }[ended.killed_for]


def _fault(task: Task, what: str, ended: Execution) -> Verdict:
    """A ``task_error``: the last line of the evaluator's output says where, all of its end is
    kept."""
    output = ended.output.decode("utf-8", "replace").strip()
    last = output.rpartition("\n")[2][:200]
    reason = f"task {task.name}: {what}" + (f" ({last})" if last else "")
    return Verdict(
        "task_error", reason=reason, details={"output": output[-4000:]} if output else {}
    )


def _read_bounded(path: Path) -> bytes:
    """A regular file's content. Raises ValueError when it is too large, StoreError when it is no
    file, OSError."""
    descriptor = open_regular(path)
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > MAX_RESULT:
            raise ValueError(f"it has {size} bytes, at most {MAX_RESULT} are read")
        return file.read(MAX_RESULT)


def _parse(text: bytes) -> Verdict:
    """The verdict in ``text``. Raises ValueError naming the key that is wrong."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"it is a {type(data).__name__}, expected an object")
    word, score, reason, details = (
        data.get("verdict"),
        data.get("score"),
        data.get("reason"),
        data.get("details"),
    )
    if word not in ("scored", "invalid_submission", "no_submission", "task_error"):
        raise ValueError(f"its verdict is {word!r:.80}")
    if not isinstance(reason, str) or not isinstance(details, dict):
        raise ValueError("its reason is no text or its details are no object")
    if word != "scored":
        return Verdict(word, reason=reason[:MAX_REASON] or word, details=details)
    number = (
        float(score)
        if isinstance(score, (int, float)) and not isinstance(score, bool)
        else math.nan
    )
    if not math.isfinite(number):
        raise ValueError(f"its score is {score!r:.80}, expected a finite number")
    return Verdict("scored", number, details=details)
