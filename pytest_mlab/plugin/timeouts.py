"""pytest-timeout as the last resort behind a trial's own deadline.

The trial's watcher ends it at its budget; pytest-timeout, where it is installed, only has to catch
a watcher that hangs. A ``--timeout=300`` meant for unit tests must not end a trial of hours, so
every trial carries a marker of its own; a marker on the test function still wins over it."""

from __future__ import annotations

import pytest

from pytest_mlab.plugin.stash import OPTIONS


def marks(config: pytest.Config, seconds: float) -> list[pytest.MarkDecorator]:
    """The marker for an item, none where pytest-timeout is absent.

    ``signal`` interrupts the wait for the trial and lets its teardown kill it; ``thread`` would end
    the whole worker."""
    if not config.pluginmanager.hasplugin("timeout"):
        return []
    if config.stash[OPTIONS].debug:
        seconds = 0  # no limit: a debugger may wait for hours
    # func_only=False: the trial runs in the fixture, which would otherwise have no limit.
    return [pytest.mark.timeout(seconds, method="signal", func_only=False)]
