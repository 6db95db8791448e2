"""Keep the answers from code that an evaluator runs for a submission.

Such code runs in a process of its own, in the evaluator's sandbox and under its user, so it could
read two places: the folder of answers, and the evaluator's memory. The harness gives the evaluator
of a task whose submission is code (``kind = "script"``) a private copy of the answers, and
:func:`withdraw_answers` deletes it once they are in memory; the kernel closes the memory from the
evaluator's start. Linux only."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

_SET_DUMPABLE = 4

_private: Path | None = None


def close_memory() -> None:
    """Let no other process of this user read this process's memory, trace it or follow its
    descriptors.

    Holds until this process executes another program; its children are ordinary processes as soon
    as they do. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"the evaluator's memory cannot be closed: {os.strerror(error)}")


def declare_private(answers: Path | None) -> None:
    """Say that ``answers`` is a copy for this evaluation alone; None: the answers are others' as
    well."""
    global _private
    _private = answers


def withdraw_answers(answers: Path) -> None:
    """Delete the folder of answers; call it when they have been read and before anything of the
    submission runs.

    Does nothing where the folder is not a private copy, as in a test that calls ``evaluate``
    itself. Raises OSError."""
    if answers == _private:
        shutil.rmtree(answers)
