"""Actions that run code, always in the sandbox: Execute Script, Python REPL."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Mapping
from typing import Any

from pytest_mlab.core.sandbox_api import Execution
from pytest_mlab.core.task import Resources
from pytest_mlab.trial.actions.base import ActionAnswer, ActionContext, action
from pytest_mlab.trial.actions.script_command import script_command
from pytest_mlab.trial.outputs import Output, step_path

KEEP = 1 << 17
"""Bytes of output that are searched for the reason of a failure; all of it goes to the step's
:class:`~pytest_mlab.trial.outputs.Output`."""

REPL_KEEP = 1 << 20
"""Bytes of output of the Python process that are kept; it comes as one piece."""


_TRIED_NETWORK = re.compile(
    rb"No matching distribution found|No module named pip\b|externally-managed-environment"
    rb"|network was disabled"
    rb"|[Nn]ame resolution|NameResolutionError|Name or service not known|[Cc]ould not resolve host"
    rb"|[Nn]etwork is unreachable|getaddrinfo failed|unable to resolve host|CondaHTTPError"
    rb"|OfflineError|LocalEntryNotFoundError"
)
"""What programs print when there is no network: pip and uv, Python's socket and what stands on it,
curl, wget, git, conda, the Hugging Face hub."""


@action(
    "Execute Script",
    "Runs a Python script (or a shell script, .sh) of the workspace and waits for its end.",
    returns="What it printed to stdout and stderr, and how it ended.",
    order=40,
    optional=("arguments",),
    script_name=(str, "a Python or shell script of the workspace"),
    arguments=(str, "its arguments as in a shell, such as --epochs 3; optional"),
)
def execute_script(context: ActionContext, args: Mapping[str, Any]) -> ActionAnswer:
    """Run a script of the workspace until it ends or the trial's time is over."""
    name, argv = script_command(context, args["script_name"], args.get("arguments", ""))
    with _output(context) as output:
        done = context.connection.execute(argv, timeout=_timeout(context), keep=KEEP, sink=output)
    return _answer(done, f"{_ended(name, done, context)}\n", done.exit_status == 0, output, context)


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
    left_out = done.output_bytes - len(done.output)
    with _output(context) as output:
        if left_out > 0:
            half = len(done.output) // 2
            output(done.output[:half])
            output(f"\n[... {left_out} bytes were not kept ...]\n".encode())
            output(done.output[half:])
        else:
            output(done.output)
    lost = " The Python process has been ended; its variables are lost." if done.killed_for else ""
    ok = not done.killed_for and done.exit_status in (0, None)
    said = f"{_ended('The code', done, context)}{lost}\n"
    if ok:
        said = f"{tried}\n" if (tried := _no_network(done, context).strip()) else ""
    return _answer(done, said, ok, output, context)


def _output(context: ActionContext) -> Output:
    """Where the current step's output goes."""
    return Output(step_path(context.trial, context.step))


def _answer(
    done: Execution, said: str, ok: bool, output: Output, context: ActionContext
) -> ActionAnswer:
    name, hint = output.name(context.trial.path), ""
    if name:
        kept = output.kept(context.trial.path)
        if output.total < done.output_bytes:  # the Python process's, which comes as one piece
            kept = f"; {name} of the trial has the first and the last {REPL_KEEP >> 11} KiB of it"
        hint = (
            f"{kept}; Read Output shows any part: step_number {context.step}, start_character"
            f" {output.cut_at}"
        )
    text = said + output.text(hint)
    return ActionAnswer(
        text if text.strip() else "(nothing was printed)",
        ok=ok,
        exit_status=done.exit_status,
        output_file=name,
        output_bytes=done.output_bytes,
        killed_for=done.killed_for,
    )


def _timeout(context: ActionContext) -> float | None:
    left = min(
        context.account.remaining_seconds(),
        math.inf if context.timeout is None else context.timeout,
    )
    return None if math.isinf(left) else left


def _ended(name: str, done: Execution, context: ActionContext) -> str:
    """How the execution ended, in a sentence that leads to its output."""
    limits = context.limits
    output = "Its output:" if done.output_bytes else "It printed nothing."
    output = f"{_no_network(done, context)}{output}"
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


def _no_network(done: Execution, context: ActionContext) -> str:
    """A sentence for a program that tried to reach the network where there is none."""
    if context.network or not _TRIED_NETWORK.search(done.output):
        return ""
    return (
        "The sandbox has no network: packages cannot be installed and nothing can be downloaded;"
        " use what is installed. "
    )


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
