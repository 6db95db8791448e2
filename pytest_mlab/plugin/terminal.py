"""Where a run needs a person: finding the terminal that they sit at, on the process that they
started."""

from __future__ import annotations

import os
import sys

import pytest

from pytest_mlab.core.agent_api import Terminal
from pytest_mlab.core.plan import Plan
from pytest_mlab.plugin.roles import is_distributed


def find_terminal(config: pytest.Config, plan: Plan) -> Terminal | None:
    """The terminal of a run in which somebody is asked something, None for any other run.

    Raises UsageError when there is no terminal, and when several trials would ask at the same time.
    """
    what = _who_asks(plan)
    if not what:
        return None
    workers = _workers(config)
    if workers > 1:
        raise pytest.UsageError(
            f"{what} asks you at the terminal, one thing at a time, and there are {workers}"
            " workers; use -n 0, or leave -n out"
        )
    device = _device(config)
    if not device:
        raise pytest.UsageError(
            f"{what} asks you at the terminal, and standard input is none (a pipe, a file or a CI"
            " job); start pytest by hand in a terminal"
        )
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    return Terminal(device, editor, os.environ.get("TERM", ""))


def _who_asks(plan: Plan) -> str:
    interactive = [agent.name for agent in plan.agents if agent.interactive]
    if interactive:
        return f"the agent {interactive[0]}"
    return "--mlab-help=human" if plan.settings.help == "human" else ""


def _workers(config: pytest.Config) -> int:
    if not is_distributed(config):
        return 1
    from xdist.workermanage import parse_tx_spec_config

    return len(parse_tx_spec_config(config))


def _device(config: pytest.Config) -> str:
    """The name of the terminal that is standard input; pytest's capture has put /dev/null in its
    place."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend(in_=True)
    try:
        found = sys.__stdin__
        return os.ttyname(found.fileno()) if found is not None and os.isatty(found.fileno()) else ""
    except (OSError, ValueError):
        return ""  # closed, or no real file
    finally:
        if capture is not None:
            capture.resume()
            capture.suspend()  # as pytest has it at the start of a session: what it prints is shown
