"""The whole text that an agent gets: the task, the trial's limits, and what the sandbox has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.task import Task

NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})

_MOST = 25
"""Packages that are named at most."""

_VERSION = re.compile(r"[\w.+!-]{1,40}")  # an image may say anything


def task_text(task: Task, budget: Budget, *, network: bool, found: Mapping[str, str]) -> str:
    """The text of a trial; ``found`` are versions of packages of the sandbox's Python by name, and
    of ``python`` itself."""
    parts = [task.description.rstrip(), limits_text(budget)]
    if sandbox := sandbox_text(network, found):
        parts.append(sandbox)
    return "\n\n".join(parts) + "\n"


def sandbox_text(network: bool, found: Mapping[str, str]) -> str:
    """What the sandbox has, on one line; '' when nothing is known of it and it has network.

    Replays leave a line of this form out of their comparison (models/recording/matching.py),
    because another machine has other versions."""
    known = {name: version for name, version in found.items() if _VERSION.fullmatch(version)}
    python = f"The sandbox has Python {known.pop('python', '3')}"
    named = [f"{name} {version}" for name, version in known.items()][:_MOST]
    text = f"{python} with {', '.join(named)}." if named else f"{python}."
    if not network:
        return f"{text} It has no network, so nothing can be downloaded or installed."
    return text if named else ""


def limits_text(budget: Budget) -> str:
    """The limits in a sentence for the agent."""
    parts = [f"{budget.max_steps} steps (actions)", f"{_duration(budget.max_seconds)} of time"]
    if budget.max_tokens is not None:
        parts.append(f"{budget.max_tokens} tokens")
    if budget.max_cost is not None:
        parts.append(f"${budget.max_cost:g}")
    return (
        f"Your limits: {', '.join(parts)}. When one is reached, the trial ends and the workspace is"
        " scored as it is. Paths are relative to the workspace."
    )


def _duration(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.3g} hours"
    if seconds >= 120:
        return f"{seconds / 60:.3g} minutes"
    return f"{seconds:.3g} seconds"
