"""Evaluate many submissions in one sandbox, each in a fork of one process: what ``mlab validate``
does with dozens of broken ones.

Refusing a submission takes milliseconds; starting Python and importing what the evaluator uses
(torch, say) takes seconds. A fork tells what it imported, and the next one inherits it: each
submission still gets a process of its own, in which nothing has been evaluated before."""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


def evaluate_each(
    submissions: Path, results: Path, seconds: float, one: Callable[[Path, Path], None]
) -> None:
    """Call ``one(submission, result)`` in a fork for each folder in ``submissions``; ``result`` is
    ``results/NAME.json``. A fork that has not ended after ``seconds``, or fails, writes none."""
    results.mkdir()
    for submission in sorted(submissions.iterdir()):
        for module in _fork(submission, results / f"{submission.name}.json", seconds, one):
            # What cannot be imported here, such as the evaluator's own file, stays the fork's.
            with contextlib.suppress(ImportError):
                importlib.import_module(module)


def _fork(
    submission: Path, result: Path, seconds: float, one: Callable[[Path, Path], None]
) -> list[str]:
    """Names of the modules that the fork imported beyond those of this process."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(submission, result, sink, one)
    os.close(sink)
    told = b""
    with open(source, "rb", buffering=0) as pipe:
        if select.select([pipe], [], [], seconds)[0]:
            told = pipe.readall() or b""
        else:
            os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return told.decode().split()


def _child(
    submission: Path, result: Path, sink: int, one: Callable[[Path, Path], None]
) -> NoReturn:
    before = set(sys.modules)
    try:
        one(submission, result)
        # In the order of their import, which is one that works.
        names = [name for name in list(sys.modules) if name not in before]
        with open(sink, "w", encoding="utf-8") as pipe:
            pipe.write(" ".join(names))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    finally:  # an exception does not return into the parent's loop
        os._exit(1)
