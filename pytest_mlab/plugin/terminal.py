"""Finding the terminal of a person that a run asks, in the process that the person started."""

from __future__ import annotations

import os
import sys

import pytest

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.core.plan import Plan
from pytest_mlab.plugin.roles import worker_count


def find_terminal(config: pytest.Config, plan: Plan) -> Terminal | None:
    """The terminal of a run that asks a person, None for any other run.

    Raises UsageError when there is no terminal, and when several trials would ask at the same time.
    """
    asking = _asking(plan)
    if not asking:
        return None
    workers = worker_count(config)
    if workers > 1:
        raise pytest.UsageError(
            f"{asking} asks you at the terminal, one thing at a time, and there are {workers}"
            " workers; use -n 0, or leave -n out"
        )
    device = _device(config)
    if not device:
        raise pytest.UsageError(
            f"{asking} asks you at the terminal, and standard input is not one (a pipe, a file or a"
            " CI job); start pytest by hand in a terminal"
        )
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    return Terminal(device, editor, os.environ.get("TERM", ""))


def _asking(plan: Plan) -> str:
    """The part of the run that asks a person, '' when none does."""
    interactive = [agent.name for agent in plan.agents if agent.interactive]
    if interactive:
        return f"the agent {interactive[0]}"
    if plan.settings.help == "human":
        return "--mlab-help=human"
    return ""


def _device(config: pytest.Config) -> str:
    """The name of the terminal that is standard input, '' when it is something else."""
    # Until it is suspended, pytest's capture has /dev/null in place of standard input.
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend(in_=True)
    try:
        stdin = sys.__stdin__
        if stdin is None or not os.isatty(stdin.fileno()):
            return ""
        return os.ttyname(stdin.fileno())
    except (OSError, ValueError):
        return ""  # closed, or not a real file
    finally:
        if capture is not None:
            capture.resume()
            capture.suspend()  # its state at the start of a session: what pytest prints is shown
