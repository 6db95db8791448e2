"""The controller's side of a run: freeze the plan, keep track, judge, report.

One :class:`Controller` lives in the process that a user started: pytest itself without xdist,
xdist's controller with it. It never trusts reports for figures: they may be lost with a worker, and
results are on disk."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlab.core.gate import GatePolicy
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.errors import MlabError
from pytest_mlab.planning import make as planning
from pytest_mlab.planning import recordable as recordings
from pytest_mlab.planning import requirements
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.planning.planned import Planned
from pytest_mlab.plugin import collect
from pytest_mlab.plugin.brief import Brief, TaskBrief
from pytest_mlab.plugin.collect import trial_of
from pytest_mlab.plugin.heartbeat import Heartbeat, Progress, terminal_writer
from pytest_mlab.plugin.junitfile import JUnitFile
from pytest_mlab.plugin.roles import is_distributed
from pytest_mlab.plugin.scheduler import refuse_modes
from pytest_mlab.plugin.terminal import find_terminal
from pytest_mlab.plugin.trial import nearby
from pytest_mlab.plugin.verdicts import VERDICTS, nothing_ran, stopped, verdict_reports
from pytest_mlab.plugin.worker import SELECTION
from pytest_mlab.reporting.figures import RunFigures, stored_results
from pytest_mlab.reporting.junit import suite_properties, trial_properties
from pytest_mlab.reporting.render import write_reports
from pytest_mlab.reporting.table import table
from pytest_mlab.reporting.text import wrapped
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.shared import Shared
from pytest_mlab.trial.time_limits import trial_seconds

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn what a user can fix into pytest's usage error: exit status 4, no traceback."""
    try:
        yield
    except MlabError as error:
        raise pytest.UsageError(str(error)) from None


class Controller:
    """The run's state: what was planned, selected and skipped; and its end."""

    def __init__(self, session: pytest.Session, options: MlabOptions) -> None:
        config = session.config
        refuse_modes(config)
        self.config = config
        self.session = session
        self.options = options
        self.policy = GatePolicy.resolve(options.gate, options.fail_under)
        with usage_errors():
            self.planned: Planned = planning.make_plan(
                options, config.rootpath, probe=not config.option.collectonly
            )
            self.terminal = (
                None if config.option.collectonly else find_terminal(config, self.planned.plan)
            )
            self.run: RunDir | None = None
            if not config.option.collectonly:
                self.run = planning.freeze(self.planned, options, config.rootpath)
                if self.planned.resumed:
                    requirements.sweep(self.run.plan)  # of a session that was killed
                    Shared(self.run.path).forgive()
        self.items: dict[str, TrialId] = {}
        self.crashes: dict[TrialId, str] = {}
        self.skips: dict[TrialId, str] = {}
        self.figures: RunFigures | None = None
        self._wrote: list[str] = []
        self._selected = False
        self._fresh = not self.planned.resumed
        self._heartbeat: Heartbeat | None = None
        self._junit = JUnitFile(config)
        self._terminate = signal.getsignal(signal.SIGTERM)
        if self.run is not None:
            self._junit.place(self.run.path)
            self._catch_terminate()

    @property
    def brief(self) -> Brief:
        """What workers are told."""
        budget = self.planned.plan.settings.budget
        tasks = {
            name: TaskBrief(
                modality=task.modality,
                slow=task.slow,
                gpus=task.resources.gpus,
                backstop=trial_seconds(budget.with_override(task.budget), timed=task.timed),
            )
            for name, task in self.planned.tasks.items()
        }
        return Brief(self.planned.path, tasks, self.planned.blocked, self.terminal)

    @property
    def trials(self) -> tuple[TrialId, ...]:
        """The planned trials that are selected."""
        return (self.run.plan if self.run is not None else self.planned.plan).trials

    # --- selection ---------------------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without xdist: the items that are left are the selection."""
        if is_distributed(self.config) or sys.exc_info()[0] is not None:
            return  # the latter: collecting failed, of which pytest tells (a path that does not exist)
        self.items = {
            item.nodeid: trial for item in session.items if (trial := trial_of(item)) is not None
        }
        self._freeze_selection(others=bool(session.items))

    def selection_known(self, *, others: bool) -> None:
        """With xdist: a worker has collected and left its selection in the run directory."""
        if self.run is not None and not self._selected:
            self.items = planning.read_selection(self.run.path / SELECTION, self.planned.plan)
            self._freeze_selection(others=others)

    def _freeze_selection(self, *, others: bool) -> None:
        """Narrow the plan to what is selected; nothing at all is a usage error unless tests of
        another kind are."""
        if not self.items and not others and not self.session.testsfailed:
            raise pytest.UsageError(collect.empty_selection(self.config, self.planned.plan))
        self._selected = True
        if self.run is None or not self.items:
            return
        if self._fresh:
            self.run = planning.narrow(self.run, self.items.values())
        with usage_errors():
            recordings.check(self.run.plan, done=self.run.results(), resumed=not self._fresh)
        self._say_downloads(self.run)
        self._start_heartbeat(self.run)

    def _say_downloads(self, run: RunDir) -> None:
        """What a trial is about to fetch is said, with size and licence, before the first one
        begins."""
        from pytest_mlab.data.prepare import downloads

        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        settings = run.plan.settings
        for name in dict.fromkeys(
            t.task for t in run.plan.trials if t.name not in self.planned.blocked
        ):
            found = "; ".join(
                downloads(self.planned.tasks[name], settings.data, Path(settings.cache_dir))
            )
            text = f"mlab: {name} downloads, unless a cache has it: {found}" if found else ""
            for line in wrapped(text, 80, rest="  "):
                reporter.ensure_newline()
                reporter.write_line(line)

    # --- while it runs -----------------------------------------------------------------------------------------

    def _start_heartbeat(self, run: RunDir) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or is_quiet(self.config) or self.terminal is not None:
            return  # the latter: it would write over what a person reads and types
        write = terminal_writer(reporter, shared=not is_distributed(self.config))
        self._heartbeat = Heartbeat(Progress(run, run.plan.trials), self.options.heartbeat, write)
        self._heartbeat.start()

    def enrich_crash(self, nodeid: str, report: pytest.TestReport) -> None:
        """A worker died: say in the report what the trial's trace knows, and that it can be
        resumed."""
        trial = self.items.get(nodeid)
        if trial is None or self.run is None:
            return
        result = self.run.trial(trial).result()
        if result is not None:
            text = (
                f"the worker died after the trial had ended: {result.outcome.value}:"
                f" {result.reason}"
            )
        else:
            self.crashes[trial] = reason = self._why_crashed(self.run, trial)
            result = TrialResult(trial, Outcome.NOT_RUN, reason)
            text = f"not_run: {reason}"
        trace = f"{nearby(self.run.trial(trial).path)}/trace.jsonl"
        report.when = "call"  # xdist leaves it unknown, which JUnit words as an error of the setup
        report.longrepr = f"{text}\n  trace {trace}\n  again {self.resume_command()}"
        report.location = (report.location[0], None, nodeid.partition("::")[2])
        if self.options.junit_properties == "all":
            report.user_properties = [*trial_properties(result, trace)]

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """JUnit takes properties from a test's teardown, which a crashed worker does not report."""
        trial = self.items.get(report.nodeid)
        if trial is not None and report.when == "setup" and not report.passed:
            self.skips[trial] = _why_skipped(report)
        if trial in self.crashes and report.when == "call" and report.failed:
            end = pytest.TestReport(
                report.nodeid,
                report.location,
                {},
                "passed",
                None,
                "teardown",
                user_properties=report.user_properties,
            )
            end.node = report.node  # type: ignore[attr-defined]
            self.config.hook.pytest_runtest_logreport(report=end)

    def _why_crashed(self, run: RunDir, trial: TrialId) -> str:
        try:
            event = run.trial(trial).last_event()
        except MlabError as error:
            return f"the worker died; the trace is unreadable: {error}"
        ledger = getattr(event, "ledger", None)
        where = "before its first step" if ledger is None else f"at step {ledger.steps}"
        return f"the worker that ran it died {where} (killed, out of memory, or os._exit)"

    def resume_command(self) -> str:
        """The command that runs what is missing."""
        return f"pytest --mlab-resume={nearby(self.planned.path)}"

    # --- the end -----------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last item, judge: later it would be too late to change the exit status."""
        if not is_distributed(self.config):
            self.count(session.testscollected)
        result = yield
        if self.run is not None and self.items:
            self.figures = RunFigures.of(self.run, self.policy, self.results(self.run))
            reports = verdict_reports(
                self.figures, with_properties=self.options.junit_properties == "all"
            )
            more: list[pytest.TestReport] = []
            if self.figures.stopped:
                more = stopped(self.figures.stopped, self.resume_command())
            elif self._nothing_ran(self.run):
                more = nothing_ran(
                    len(self.trials),
                    next(iter(self._not_run(self.run).values()), "nobody says why"),
                )
            self.session.testscollected += bool(more)
            self._log(reports + more)
        return result

    def count(self, items: int) -> None:
        """Percentages are of the session's items and the verdicts to come."""
        verdicts = {(trial.task, trial.subject) for trial in self.trials} | {
            ("", t.subject) for t in self.trials
        }
        self.session.testscollected = items + (
            len(verdicts) if self.run is not None and self.items else 0
        )

    def _log(self, reports: list[pytest.TestReport]) -> None:
        """Let all of pytest's reporters see tests that nobody ran."""
        hook = self.config.hook
        for report in reports:
            if report.when == "call":
                hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
            hook.pytest_runtest_logreport(report=report)
            if report.when == "teardown":
                hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    def results(self, run: RunDir) -> dict[TrialId, TrialResult]:
        """The results on disk, and for trials without one what is known of why."""
        done = run.results()
        known = {
            trial: TrialResult(trial, Outcome.NOT_RUN, reason)
            for trial, reason in (self._not_run(run) | self.crashes).items()
            if trial not in done
        }
        return stored_results(run) | known

    def _not_run(self, run: RunDir) -> dict[TrialId, str]:
        """Why trials did not run: known before the session, or found when their turn came."""
        blocked = {
            trial: why for trial in run.plan.trials if (why := self.planned.blocked.get(trial.name))
        }
        return self.skips | blocked

    def _nothing_ran(self, run: RunDir) -> bool:
        """True when CI (or ``--mlab-strict``) would be green only because every trial was
        skipped."""
        must = self.options.strict or bool(os.environ.get("CI"))
        return must and not any(run.trial(trial).result() for trial in run.plan.trials)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> Generator[None, object, object]:
        """Write the reports: JUnit's values before its file is written, the rest when workers are
        gone."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self.figures is not None and self.options.junit_properties != "none":
            self._junit.add_suite_properties(suite_properties(self.figures))
        try:
            return (yield)
        finally:
            self._forget_verdicts()
            if self.run is not None:
                self._finish(self.run)

    def _finish(self, run: RunDir) -> None:
        if self._fresh and not self.items:
            shutil.rmtree(
                run.path, ignore_errors=True
            )  # nothing was selected: there is no run to keep
            self.run = None
            return
        self.figures = RunFigures.of(run, self.policy, self.results(run))
        self._wrote = write_reports(self.figures, nearby(run.path))
        if len(self.figures.missing) and (left := requirements.sweep(run.plan)):
            self._wrote.append(left)
        self._junit.copy(run.path)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """The run's table, what is missing and where everything is."""
        if self.run is None or self.figures is None:
            return
        terminalreporter.section("mlab")
        for line in [*table(self.figures, self.resume_command()), *self._wrote]:
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Leave the process as it was."""
        if self.run is not None and signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, self._terminate)

    def _forget_verdicts(self) -> None:
        """Verdicts are no tests: left in the cache, they would make the next ``--lf`` find nothing
        and run all."""
        cache = getattr(self.config, "cache", None)
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

    def _catch_terminate(self) -> None:
        """SIGTERM (a cancelled CI job) ends the session like ctrl-C, with all reports."""
        try:
            signal.signal(signal.SIGTERM, _interrupt)
        except ValueError:
            return  # not the main thread: whoever runs pytest there handles its signals


def _why_skipped(report: pytest.TestReport) -> str:
    """The reason of a test that was skipped, or failed, before it began."""
    found: Any = report.longrepr
    if isinstance(found, tuple):
        return str(found[2]).removeprefix("Skipped: ")
    crash = getattr(found, "reprcrash", None)
    return str(getattr(crash, "message", None) or found).partition("\n")[0].removeprefix("Failed: ")


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt(f"signal {signal.Signals(number).name}")


def is_quiet(config: pytest.Config) -> bool:
    """True when the user asked for little output."""
    return bool(config.get_verbosity() < -1)
