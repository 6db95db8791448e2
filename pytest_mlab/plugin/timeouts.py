"""pytest-timeout as the last resort behind a trial's own deadline.

The trial's watcher ends it at its budget; pytest-timeout, where it is installed, only has to catch
a watcher that hangs. A ``--timeout=300`` meant for unit tests must not end a trial of hours, so
every trial carries a marker of its own; a marker on the test function still wins over it."""

from __future__ import annotations

import pytest

from pytest_mlab.core.budget import Budget

EVALUATION = 2400.0
"""Seconds that an evaluation may take before the trial's own watcher ends it."""

TIMED_IN_LINE = 32
"""How many times longer a timed evaluation may wait for the machine: only one runs at a time."""

MARGIN = 3600.0
"""Seconds for preparing data, starting a sandbox and freezing the workspace, and then some."""


def backstop(budget: Budget, *, timed: bool) -> float:
    """Seconds after which a trial under ``budget`` must have ended, evaluation and all else
    included."""
    return (
        budget.max_seconds
        + budget.free_wait
        + EVALUATION * (TIMED_IN_LINE if timed else 1)
        + MARGIN
    )


def marks(config: pytest.Config, seconds: float) -> list[pytest.MarkDecorator]:
    """The marker for an item, none where pytest-timeout is absent.

    ``signal`` interrupts the wait for the trial and lets its teardown kill it; ``thread`` would end
    the whole worker."""
    if not config.pluginmanager.hasplugin("timeout"):
        return []
    return [pytest.mark.timeout(seconds, method="signal", func_only=False)]
