"""The end of a run, in the process that the user started: judge, write the reports, show them.

Figures never come from test reports, which may be lost with a worker: results are read from disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlab.core.figure import Figure
from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.trial import Outcome, TrialResult
from pytest_mlab.planning import requirements
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.plugin.failures import HookFailed, call
from pytest_mlab.plugin.junitfile import JUnitFile
from pytest_mlab.plugin.roles import is_distributed, width_of
from pytest_mlab.plugin.selection import Selection
from pytest_mlab.plugin.trial import nearby
from pytest_mlab.plugin.unfinished import Unfinished
from pytest_mlab.plugin.verdicts import VERDICTS, nothing_ran, stopped, verdict_reports
from pytest_mlab.reporting.figures import RunFigures, stored_results
from pytest_mlab.reporting.junit import suite_properties
from pytest_mlab.reporting.render import write_reports
from pytest_mlab.reporting.summary import summary
from pytest_mlab.reporting.table import WIDTH, table
from pytest_mlab.reporting.table import nothing_ran as nothing_ran_text
from pytest_mlab.reporting.text import printable, wrapped

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class Ending:
    """Judges a run after its last test and reports it when its workers are gone.

    ``resume`` is the command that runs what is missing; ``figures`` are users' own."""

    def __init__(
        self,
        session: pytest.Session,
        options: MlabOptions,
        selection: Selection,
        unfinished: Unfinished,
        *,
        policy: GatePolicy,
        resume: str,
        figures: Sequence[Figure] = (),
    ) -> None:
        self._session = session
        self._config = session.config
        self._options = options
        self._selection = selection
        self._unfinished = unfinished
        self._policy = policy
        self._resume = resume
        self._own_figures = figures
        self._junit = JUnitFile(session.config)
        self._junit.place(selection.run.path)
        self._figures: RunFigures | None = None
        self._only_nothing_ran = False
        self._lines: list[str] = []

    def count(self, items: int) -> None:
        """Tell pytest how many tests there are, verdicts included: its percentages are of them."""
        trials = self._selection.run.plan.trials if self._selection.items else ()
        # A verdict is a report without an item: not counted in, it would take pytest past 100 %.
        verdicts = {(trial.task, trial.subject) for trial in trials}
        verdicts |= {("", trial.subject) for trial in trials}
        self._session.testscollected = items + len(verdicts)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last item, judge: later it would be too late to change the exit status."""
        # Under xdist the scheduler calls it, since xdist sets the number anew with each worker that
        # has collected.
        if not is_distributed(self._config):
            self.count(session.testscollected)
        # An interrupt and -x raise here. Then there are no verdicts; _finish still writes the
        # reports.
        result = yield
        if self._selection.items:
            self._judge()
        return result

    def _judge(self) -> None:
        self._figures = figures = self._read()
        reports = verdict_reports(figures, with_properties=self._options.junit_properties == "all")
        more: list[pytest.TestReport] = []
        if figures.stopped:
            more = stopped(figures.stopped, self._resume)
        elif figures.gate.nothing_ran and not self._options.allow_nothing:
            more = nothing_ran(nothing_ran_text(figures))
        self._session.testscollected += bool(more)
        self._log(reports)
        # Failures of tests have their own exit status, which says more than that nothing ran.
        self._only_nothing_ran = figures.gate.nothing_ran and not self._session.testsfailed
        self._log(more)

    def _read(self) -> RunFigures:
        """The figures of the results on disk; this session knows more reasons for missing ones."""
        run = self._selection.run
        results = stored_results(run)
        for trial, reason in self._unfinished.reasons().items():
            # A result on disk wins: a worker may die after its trial has ended.
            if trial not in results or results[trial].outcome is Outcome.NOT_RUN:
                results[trial] = TrialResult(trial, Outcome.NOT_RUN, reason)
        return RunFigures.of(run, self._policy, results, self._own_figures)

    def _log(self, reports: Sequence[pytest.TestReport]) -> None:
        """Let all of pytest's reporters see tests that are not items."""
        hook = self._config.hook
        for report in reports:
            if report.when == "call":
                hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
            hook.pytest_runtest_logreport(report=report)
            if report.when == "teardown":
                hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    # trylast makes this the innermost wrapper. The terminal's own wrapper asks for the summary
    # after its yield, when the lines of this one have to be there.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Write the reports: JUnit's values before its file is written, the rest when workers are
        gone."""
        if self._figures is not None and self._options.junit_properties != "none":
            self._junit.add_suite_properties(suite_properties(self._figures))
        ended = self._session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if ended and self._only_nothing_ran and not self._options.allow_nothing:
            self._session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        try:
            # The reports are written even when another plugin's hook raises.
            return (yield)
        finally:
            self._forget_verdicts()
            self._finish()

    def _finish(self) -> None:
        run = self._selection.run
        if self._selection.is_fresh and not self._selection.items:
            # Only other tests were selected: there is no run to keep.
            shutil.rmtree(run.path, ignore_errors=True)
            return
        # Read again: an interrupted session was not judged, and its workers have written results
        # since.
        self._figures = figures = self._read()
        wrote = write_reports(figures, nearby(run.path))
        # Only a trial without a result can have left a sandbox behind.
        if figures.missing and (left := requirements.sweep(run.plan)):
            wrote.append(left)
        self._junit.copy(run.path)
        if figures.problems:
            self._fail()
        shown = table(figures, self._resume, width_of(self._config))
        self._lines = [*shown, *self._call_hooks(figures), *wrote]

    def _call_hooks(self, figures: RunFigures) -> list[str]:
        """The lines of users' hooks; a hook that raises becomes an error of the session."""
        hook = self._config.hook
        facts = {"config": self._config, "summary": summary(figures), "run_dir": figures.run.path}
        lines: list[str] = []
        try:
            call(hook.pytest_mlab_run_summarised, **facts)
            for added in call(hook.pytest_mlab_terminal_lines, **facts):
                lines += ["", *(printable(line) for line in added)]
        except HookFailed as error:
            lines += ["", *wrapped(f"ERROR: {error}", WIDTH, rest="  ")]
            self._fail()
        return lines

    def _fail(self) -> None:
        # An interrupt or an internal error keeps its own status.
        self._session.exitstatus = self._session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """The run's table, what is missing and where everything is."""
        if not self._lines:
            return
        terminalreporter.section("mlab")
        for line in self._lines:
            terminalreporter.write_line(line)

    def _forget_verdicts(self) -> None:
        """Verdicts are not tests: left in the cache, they would make the next ``--lf`` find nothing
        and run all."""
        cache = getattr(self._config, "cache", None)
        if cache is None:
            return
        failed: dict[str, Any] = cache.get("cache/lastfailed", {})
        kept = {
            nodeid: value
            for nodeid, value in failed.items()
            if not nodeid.startswith(f"{VERDICTS}::")
        }
        if kept != failed:
            cache.set("cache/lastfailed", kept)
