"""Score a frozen workspace: run the task's evaluator in a sandbox of its own, and read its result
as untrusted data.

The sandbox has no network and sees, read-only, the submission (``/mlab/submission``), the hidden
answers (``/mlab/answers``), the evaluator and the starter files (``/mlab/task``) and the evaluation
library (``/mlab/lib``). Its workspace is an empty folder, into which the result is written. Where
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
"""Bytes that an evaluator's result may have."""

MAX_REASON = 2000
KEEP_OUTPUT = 64 << 10
_PACKAGE = Path(pytest_mlab.__file__).resolve().parent
_RESULT = "verdict.json"
_PRIVATE_ANSWERS = "answers"


@dataclass(frozen=True)
class Evaluated:
    """The result of an evaluation. ``score`` is a finite number exactly when ``word`` is
    ``scored``, otherwise ``reason`` says why there is none; ``details`` are the evaluator's own
    facts; ``seconds`` leaves out the wait for the machine."""

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
) -> Evaluated:
    """Evaluate the folder ``submission`` against ``answers``. Errors of the evaluator or the
    submission are results, never exceptions.

    ``label`` names the sandbox; ``scratch`` is a folder for temporary files that the sandbox
    backend can show (default: the system's). A task whose score is a time waits until no other such
    evaluation runs on this machine."""
    with contextlib.ExitStack() as stack:
        if task.timed:
            stack.enter_context(_machine_to_itself())
        # After the wait for the machine, which says nothing about the evaluator.
        begin = clock()
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evaluation-", dir=scratch))
        evaluated = _evaluate(task, sandbox, submission, answers, label, Path(folder), timeout)
        return replace(evaluated, seconds=clock() - begin)


def _evaluate(
    task: Task,
    sandbox: Sandbox,
    submission: Path,
    answers: Path,
    label: str,
    folder: Path,
    timeout: float,
) -> Evaluated:
    # A mount is read-only and cannot be taken away before the submission's code starts. A copy can
    # be deleted.
    private = task.submission.kind == "script"
    if private:
        _copy_answers(answers, folder / _PRIVATE_ANSWERS)
    spec = SandboxSpec(
        folder, label, mounts(task, submission, None if private else answers), task.resources
    )
    try:
        connection = sandbox.open(spec)
        try:
            ended = connection.execute(
                command(connection, private=private), timeout=timeout, keep=KEEP_OUTPUT
            )
        finally:
            connection.close()  # before the result is read: nothing is left that could change it
    except SandboxError as error:
        return Evaluated("infra_error", reason=f"the evaluation sandbox failed: {error}")
    return _read_result(folder / _RESULT, ended, task, timeout)


def _copy_answers(answers: Path, place: Path) -> None:
    """A copy whose files and folders can be deleted, whatever the modes of the prepared ones."""
    for folder, _, names in os.walk(answers):
        target = place / Path(folder).relative_to(answers)
        target.mkdir()
        for name in names:
            shutil.copyfile(Path(folder) / name, target / name)


def mounts(task: Task, submission: Path, answers: Path | None) -> tuple[Mount, ...]:
    """What the evaluation sandbox shows."""
    shown = [
        Mount(submission, "/mlab/submission"),
        Mount(task.folder / "evaluator.py", "/mlab/task/evaluator.py"),
        Mount(_PACKAGE / "__init__.py", "/mlab/lib/pytest_mlab/__init__.py"),
        Mount(_PACKAGE / "evaluation", "/mlab/lib/pytest_mlab/evaluation"),
    ]
    if answers is not None:
        shown.append(Mount(answers, "/mlab/answers"))
    if (task.folder / "env").is_dir():
        shown.append(Mount(task.folder / "env", "/mlab/task/env"))
    return tuple(shown)


def command(connection: Connection, *, private: bool = False, result: str = _RESULT) -> list[str]:
    """The evaluator's program, which writes ``result`` in its workspace.

    -I: Python imports nothing from the working directory, the user's site-packages or places
    that variables name; -B: it writes no bytecode."""
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
        connection.locate(result),
    ]


@contextlib.contextmanager
def _machine_to_itself() -> Iterator[None]:
    """One timed evaluation of this user at a time on this machine."""
    from filelock import FileLock

    # The user's id is in the name, because a file of another user could not be opened for writing.
    with FileLock(os.path.join(tempfile.gettempdir(), f"mlab-timed-{os.getuid()}.lock")):
        yield


# --- what came back ---


def _read_result(path: Path, ended: Execution, task: Task, timeout: float) -> Evaluated:
    if ended.killed_for == "lost":
        return Evaluated(
            "infra_error", reason="the evaluation sandbox was lost: its supervisor was killed"
        )
    failure = _failure(ended, task, timeout)
    if failure:
        return _fault(task, failure, ended)
    without = f"the evaluator ended with status {ended.exit_status} and without a result"
    if ended.exit_status != 0:  # a result that is there all the same is not the evaluator's
        return _fault(task, without, ended)
    try:
        evaluated = read_result(path)
    except FileNotFoundError:
        return _fault(task, without, ended)
    except (OSError, ValueError, OverflowError, StoreError) as error:
        return _fault(task, f"the evaluator's result cannot be read: {error}", ended)
    if evaluated.word == "task_error":
        return replace(evaluated, reason=f"task {task.name}: {evaluated.reason}")
    return evaluated


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


def _fault(task: Task, what: str, ended: Execution) -> Evaluated:
    """A ``task_error`` that quotes the last line of the evaluator's output and keeps its last 4000
    characters."""
    output = ended.output.decode("utf-8", "replace").strip()
    last = output.rpartition("\n")[2][:200]
    reason = f"task {task.name}: {what}" + (f" ({last})" if last else "")
    return Evaluated(
        "task_error", reason=reason, details={"output": output[-4000:]} if output else {}
    )


def read_result(path: Path) -> Evaluated:
    """The result in a file that an evaluator wrote. Raises OSError, ValueError, OverflowError,
    StoreError."""
    return _parse(_read_bounded(path))


def _read_bounded(path: Path) -> bytes:
    """A regular file's content. Raises ValueError when it is too large, StoreError when it is not a
    regular file, OSError."""
    # Code of the submission may have put a link or a FIFO in the file's place.
    descriptor = open_regular(path)
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > MAX_RESULT:
            raise ValueError(f"it has {size} bytes, at most {MAX_RESULT} are read")
        return file.read(MAX_RESULT)


def _parse(text: bytes) -> Evaluated:
    """The result in ``text``. Raises ValueError naming the key that is wrong."""
    try:
        data = json.loads(text)
    # A few kilobytes of brackets exceed the parser's depth.
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError(f"it is a {type(data).__name__}, expected an object")
    word, score, reason, details = map(data.get, ("verdict", "score", "reason", "details"))
    if word not in ("scored", "invalid_submission", "no_submission", "task_error"):
        raise ValueError(f"its verdict is {word!r:.80}")
    if not isinstance(reason, str) or not isinstance(details, dict):
        raise ValueError("its reason is not text, or its details are not an object")
    if word != "scored":
        return Evaluated(word, reason=reason[:MAX_REASON] or word, details=details)
    # JSON's true would be the number 1 in Python, and Python's parser accepts NaN and Infinity. A
    # whole number of hundreds of digits makes isfinite() raise OverflowError, which the caller
    # expects.
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise ValueError(f"its score is {score!r:.80}, expected a finite number")
    return Evaluated("scored", float(score), details=details)
