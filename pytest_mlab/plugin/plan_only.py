"""``--mlab-plan``: a session that collects, shows what it would run, and runs nothing.

It is a session that only collects, so its plan obeys everything that chooses tests: ini files,
``addopts``, ``PYTEST_ADDOPTS``, paths, ``-k``, ``-m`` and the hooks of other plugins."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Sequence

import pytest

from pytest_mlab.planning.estimate import Estimate, estimate
from pytest_mlab.planning.planned import Planned
from pytest_mlab.plugin.roles import width_of, worker_count
from pytest_mlab.plugin.selection import CollectOnly

EXIT_USAGE = int(pytest.ExitCode.USAGE_ERROR)

# pytest_mlab is imported already where pytest is started from it, so that its assertions cannot be
# rewritten; it has none, and pytest warns all the same.
_QUIET = ("-qq", "-W", "ignore::pytest.PytestAssertRewriteWarning")

Show = Callable[[Planned, Estimate], None]

SHOW: pytest.StashKey[Show] = pytest.StashKey()
"""Set by who starts a session to get its plan instead of having it on the terminal."""


def collect_only(config: pytest.Config) -> None:
    """Let pytest and all plugins know that nothing is going to run: xdist then starts no worker,
    and the cache plugin keeps what it knows of earlier sessions."""
    config.option.collectonly = True


class PlanOnly:
    """The hooks of a session that shows its plan."""

    def __init__(self, collecting: CollectOnly) -> None:
        self._collecting = collecting
        self._blocked = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Keep pytest's list of all tests off the terminal: 8 repeats of 13 tasks would hide the
        plan."""
        # The terminal prints the list of items only when this option is set.
        session.config.option.collectonly = False
        try:
            return (yield)
        finally:
            session.config.option.collectonly = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Show the plan of the selected trials. Where collecting failed, pytest raises here and
        reports that itself."""
        result = yield
        planned = self._collecting.planned.narrowed(self._collecting.items.values())
        self._blocked = bool(planned.blocked)
        show = session.config.stash.get(SHOW, None) or _on_terminal(session.config)
        show(planned, estimate(planned, worker_count(session.config), planned.done()))
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Exit status 1 when something is missing for a selected trial."""
        if self._blocked:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def plan_of(words: Sequence[str]) -> tuple[int, tuple[Planned, Estimate] | None]:
    """pytest's exit status for the command line ``words`` and ``--mlab-plan``; and the plan, None
    when there is none. What pytest prints goes to standard error."""
    shown: list[tuple[Planned, Estimate]] = []

    class Keep:
        def pytest_configure(self, config: pytest.Config) -> None:
            config.stash[SHOW] = lambda *plan: shown.append(plan)

    # Standard output belongs to the plan, which may be JSON for a program.
    with contextlib.redirect_stdout(sys.stderr):
        status = pytest.main([*_QUIET, "--mlab-plan", *words], plugins=[Keep()])
    return int(status), shown[0] if shown else None


def _on_terminal(config: pytest.Config) -> Show:
    from pytest_mlab.reporting.plan import plan_lines

    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def show(planned: Planned, facts: Estimate) -> None:
        if reporter is not None:
            reporter.section("mlab plan")
            for line in plan_lines(planned, facts, width_of(config)):
                reporter.write_line(line)

    return show
