"""Actions that run code, always in the sandbox: Execute Script, Python REPL."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from pytest_mlab.core.sandbox_api import Execution
from pytest_mlab.core.task import Resources
from pytest_mlab.trial.actions.base import (
    SHOWN,
    ActionAnswer,
    ActionContext,
    ActionError,
    action,
    shortened,
)

KEEP = 4 * SHOWN
"""Bytes of output that are held in memory: UTF-8 takes at most 4 for a character that is shown."""

REPL_KEEP = 1 << 20
"""The same for the Python process, whose output comes as one piece; it is also what is kept in a
file."""

OUTPUT_FILE_LIMIT = 64 << 20
"""Bytes of output that are kept in a file at most; what comes after is counted and dropped."""


class OutputFile:
    """A sink for output; it makes the file ``path`` only for more than ``threshold`` bytes."""

    def __init__(self, path: Path, threshold: int, limit: int = OUTPUT_FILE_LIMIT) -> None:
        self.path = path
        self.total = 0
        self._threshold = threshold
        self._limit = limit
        self._written = 0
        self._waiting: list[bytes] = []
        self._file: BinaryIO | None = None

    def __call__(self, chunk: bytes) -> None:
        """Take some output."""
        self.total += len(chunk)
        if self._file is not None:
            self._write(chunk)
            return
        self._waiting.append(chunk)
        if self.total > self._threshold:
            # Most steps print little: a file for each of them would be one more write and one more
            # file in the run directory.
            self._file = open(self.path, "wb")  # noqa: SIM115 (closed when the whole object is)
            for earlier in self._waiting:
                self._write(earlier)
            self._waiting.clear()

    def _write(self, chunk: bytes) -> None:
        assert self._file is not None
        kept = chunk[: self._limit - self._written]
        self._file.write(kept)
        self._written += len(kept)

    @property
    def made(self) -> bool:
        """True when there is a file."""
        return self._file is not None

    def hint(self, root: Path) -> str:
        """A note on where the whole output is, for the place where the text is cut."""
        if not self.made:
            return ""
        name = os.path.relpath(self.path, root)
        if self.total > self._limit:
            return (
                f"; the first {self._limit >> 20} MiB of {self.total} bytes are kept as {name} of"
                " the trial"
            )
        return f"; all {self.total} bytes are kept as {name} of the trial"

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._file is not None:
            if self.total > self._limit:
                self._file.write(
                    f"\n[... {self.total - self._limit} bytes were not kept ...]\n".encode()
                )
            self._file.close()


@action(
    "Execute Script",
    "Runs a Python script in the workspace and waits for its end.",
    returns="What it printed to stdout and stderr, and how it ended.",
    order=40,
    script_name=(str, "a Python script of the workspace"),
)
def execute_script(context: ActionContext, args: Mapping[str, Any]) -> ActionAnswer:
    """Run a Python script of the workspace until it ends or the trial's time is over."""
    name = args["script_name"]
    place = context.workspace.resolve(name)
    if not place.path.is_file():
        raise ActionError(f"{name} does not exist or is not a file; List Files shows what there is")
    # Python would take a name that begins with - for an option.
    script = place.rel if not place.rel.startswith("-") else f"./{place.rel}"
    # -u: what was printed before a kill is not lost in a buffer.
    argv = [context.connection.python, "-u", script]
    folder = context.trial.path / "outputs"
    with OutputFile(folder / f"step-{context.step:04d}.txt", SHOWN) as sink:
        folder.mkdir(parents=True, exist_ok=True)
        done = context.connection.execute(argv, timeout=_timeout(context), keep=KEEP, sink=sink)
    text = _text(done, sink.hint(context.trial.path))
    return _answer(
        done, f"{_ended(name, done, context)}\n{text}", done.exit_status == 0, sink, context
    )


@action(
    "Python REPL",
    "Runs Python code in a process that keeps its variables from one use to the next.",
    returns="What it printed.",
    order=140,
    command=(str, "Python code; print what you want to see"),
)
def python_repl(context: ActionContext, args: Mapping[str, Any]) -> ActionAnswer:
    """Run code in the trial's Python process, which keeps its variables."""
    done = context.connection.repl(args["command"], timeout=_timeout(context), keep=REPL_KEEP)
    with OutputFile(
        context.trial.path / "outputs" / f"step-{context.step:04d}.txt", SHOWN, REPL_KEEP
    ) as sink:
        if len(done.output) > SHOWN:
            context.trial.outputs.mkdir(exist_ok=True)
        sink(done.output)
    # When the supervisor has left out the middle, the file does not hold the whole output either.
    # The text must then not say that it does.
    text = _text(
        done, sink.hint(context.trial.path) if len(done.output) == done.output_bytes else ""
    )
    lost = " The Python process has been ended; its variables are lost." if done.killed_for else ""
    if done.killed_for or done.exit_status not in (0, None):
        text = f"{_ended('The code', done, context)}{lost}\n{text}"
    ok = not done.killed_for and done.exit_status in (0, None)
    return _answer(done, text if text.strip() else "(nothing was printed)", ok, sink, context)


def _answer(
    done: Execution, text: str, ok: bool, sink: OutputFile, context: ActionContext
) -> ActionAnswer:
    return ActionAnswer(
        text,
        ok=ok,
        exit_status=done.exit_status,
        output_file=os.path.relpath(sink.path, context.trial.path) if sink.made else "",
        output_bytes=done.output_bytes,
        killed_for=done.killed_for,
    )


def _timeout(context: ActionContext) -> float | None:
    left = min(
        context.account.remaining_seconds(),
        math.inf if context.timeout is None else context.timeout,
    )
    return None if math.isinf(left) else left


def _text(done: Execution, hint: str) -> str:
    data, left_out = done.output, done.output_bytes - len(done.output)
    if left_out <= 0:
        return shortened(data.decode("utf-8", "replace"), hint)
    # The cut may be inside a character of several bytes. Each half is decoded by itself, so that
    # only that character is damaged.
    half = SHOWN // 2
    head, tail = (
        data[: len(data) // 2].decode("utf-8", "replace"),
        data[len(data) // 2 :].decode("utf-8", "replace"),
    )
    cut = done.output_bytes - len(head[:half].encode()) - len(tail[-half:].encode())
    return f"{head[:half]}\n[... about {cut} bytes left out{hint} ...]\n{tail[-half:]}"


def _ended(name: str, done: Execution, context: ActionContext) -> str:
    """How the execution ended, in a sentence that leads to its output."""
    limits = context.limits
    output = "Its output:" if done.output_bytes else "It printed nothing."
    if (
        done.killed_for == "timeout"
        and context.timeout is not None
        # Both limits end an execution as a timeout. With time left, it was the agent's own.
        and context.account.remaining_seconds() > 0
    ):
        return (
            f"{name} was stopped after the {context.timeout:.0f} seconds that it may take. {output}"
        )
    if done.killed_for == "timeout":
        return (
            f"{name} was stopped because the time of the trial is used up: the budget is over."
            f" {output}"
        )
    if done.killed_for == "cancelled":
        return f"{name} was stopped from outside. {output}"
    if done.killed_for == "memory":
        return (
            f"{name} was stopped because it needed more than {limits.memory_mb} MiB of memory."
            f" {output}"
        )
    if done.killed_for == "pids":
        return (
            f"{name} was stopped because it started more than {limits.pids} processes and threads."
            f" {output}"
        )
    if done.killed_for == "disk":
        return (
            f"{name} was stopped because the workspace grew beyond {limits.disk_mb} MiB; delete"
            f" files. {output}"
        )
    if done.killed_for == "lost":
        return f"{name} took the sandbox down with it; the sandbox has been started again. {output}"
    if done.killed_for == "signal":
        return f"{name} was ended by the signal {_signal(done.signal)}. {output}"
    if done.exit_status == 0:
        return f"{name} ran to its end. {output}"
    return f"{name} failed with exit status {done.exit_status}.{_met_limit(done, limits)} {output}"


def _met_limit(done: Execution, limits: Resources) -> str:
    """A sentence on the limit that a program ran into, for errors that do not name it."""
    # The kernel refuses a file beyond RLIMIT_FSIZE and memory beyond RLIMIT_DATA with an error. The
    # program then ends by itself, so killed_for is empty.
    if b"[Errno 27] File too large" in done.output:
        return (
            f" A file cannot be larger than the {limits.disk_mb} MiB that the workspace may have."
        )
    if b"MemoryError" in done.output:
        return f" Its memory is limited to {limits.memory_mb} MiB."
    return ""


def _signal(number: int | None) -> str:
    try:
        return f"{number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return str(number)
