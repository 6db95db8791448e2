"""The process that runs trials: a worker of xdist, or pytest itself without one.

Runs each trial once, and turns its test's failure into a report: a short text in place of a
traceback, and under ``--mlab-gate=aggregate`` or ``none`` a category of its own in place of a
failure."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import pluggy
import pytest

from pytest_mlab.core.gate import is_measured_only
from pytest_mlab.core.trial import TrialId, TrialResult
from pytest_mlab.core.wire import Builtin
from pytest_mlab.errors import DataUnavailable, RequirementMissing
from pytest_mlab.lib.atomic import write_text
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.plugin.collect import trials_of
from pytest_mlab.plugin.roles import is_worker
from pytest_mlab.plugin.stash import Run
from pytest_mlab.plugin.trial import TRIAL, Trial, nearby
from pytest_mlab.plugin.trial_hooks import TrialHooks
from pytest_mlab.reporting.junit import trial_properties
from pytest_mlab.reporting.text import wrapped
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.person import kept
from pytest_mlab.trial.stops import Stops

if TYPE_CHECKING:
    from pytest_mlab.trial.runner import TrialRunner

WIDTH = 80


QUITS = (KeyboardInterrupt, pytest.exit.Exception)
"""What ends the session when an agent raises it in this process: Ctrl-C, and a debugger's quit."""


class Worker:
    """Runs trials and words their reports; registered where items run.

    ``shows_output``: what agents print is shown at once, as of tests with ``-s``."""

    def __init__(
        self,
        run: Run,
        options: MlabOptions,
        gate: str,
        hook: pluggy.HookRelay,
        *,
        shows_output: bool = False,
    ) -> None:
        self._shows_output = shows_output
        self._run = run
        self._options = options
        self._gate = gate
        self._hook = hook
        self._runner: TrialRunner | None = None

    @cached_property
    def directory(self) -> RunDir:
        """The run directory."""
        # Opened by the first trial: a session that only collects has no directory, and -k may
        # narrow the plan after this plugin is registered.
        return RunDir.open(self._run.brief.run_dir)

    @cached_property
    def _hooks(self) -> TrialHooks:
        # Not before the first trial: by then all conftest.py are known.
        return TrialHooks(self._hook)

    # --- called by the fixture ---

    def trial(self, item: pytest.Item, trial_id: TrialId) -> Trial:
        """The trial of ``item``: run now, or read from disk when it has a result.

        Skips the test when something is missing or the run starts no further trials; fails it, with
        the trial's result kept, when a hook of users raised."""
        # First of all: a resumed run reports what is on disk, whatever is missing on the machine
        # now.
        stored = self.directory.trial(trial_id).result()
        if stored is not None:
            return self._give(item, stored)
        if blocked := self._run.brief.blocked.get(trial_id.name):
            self._missing(blocked)
        if stopped := Stops.of(self.directory).why(trial_id):
            pytest.skip(stopped)
        self._hooks.begin(item, trial_id)
        try:
            result = self._start(trial_id)
        except (DataUnavailable, RequirementMissing) as error:
            self._missing(str(error))
        except RuntimeError as error:
            # pytest-socket's, about data that are not on this machine yet; agents are in processes
            # of their own, where it forbids nothing.
            if not type(error).__name__.startswith("Socket"):
                raise
            from pytest_mlab.trial.job import Job

            prepare = Job(self.directory, trial_id).prepare_command
            self._missing(
                f"the data of {trial_id.task} cannot be fetched: {error} to fix: leave out"
                f" --disable-socket, or first: {prepare}"
            )
        trial = self._give(item, result)
        self._hooks.finish(trial)
        return trial

    def _give(self, item: pytest.Item, result: TrialResult) -> Trial:
        trial = Trial(result, self.directory)
        item.stash[TRIAL] = trial
        # Not ``record_property``, which warns under pytest's default JUnit family.
        item.user_properties.extend(self._properties(trial))
        return trial

    def _properties(self, trial: Trial) -> list[tuple[str, Builtin]]:
        if self._options.junit_properties != "all":
            return []
        return trial_properties(trial.result, f"{nearby(trial.path)}/trace.jsonl")

    def _missing(self, reason: str) -> NoReturn:
        if self._options.strict:
            pytest.fail(f"{reason} (--mlab-strict)", pytrace=False)
        pytest.skip(reason)

    def _start(self, trial_id: TrialId) -> TrialResult:
        if self._runner is None:
            from pytest_mlab.trial.runner import TrialRunner

            self._runner = TrialRunner(
                self.directory.path,
                terminal=self._run.brief.terminal,
                on_event=self._hooks.on_event if self._hooks.wants_events else None,
                on_output=_print if self._shows_output else None,
                here=QUITS if self._options.debug else None,
            )
        try:
            with kept(self._run.brief.terminal):
                return self._runner.run(trial_id)
        except BaseException:
            # An interrupt or pytest-timeout: none of the trial's processes may outlive it.
            self.close()
            raise

    def close(self) -> None:
        """End the trial that runs, if any, and its server."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            runner.close()

    # --- hooks ---

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave the selection after ``-k`` and ``-m`` to the controller, before xdist sends the
        ids."""
        if is_worker(session.config):
            names = {nodeid: trial.name for nodeid, trial in trials_of(session.items).items()}
            # A file, because xdist sends ids only and takes a message that it does not know for a
            # broken worker. All workers write the same text, each in one step, so their order does
            # not matter.
            write_text(self._run.brief.selection, json.dumps(names))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Word the report of a test that judged a trial."""
        report = yield
        trial = item.stash.get(TRIAL, None)
        if trial is not None and call.excinfo is not None and report.when == "call":
            self._word(item, trial, call.excinfo, report)
        return report

    def _word(
        self,
        item: pytest.Item,
        trial: Trial,
        error: pytest.ExceptionInfo[BaseException],
        report: pytest.TestReport,
    ) -> None:
        # Any other exception is a mistake in the test and keeps its traceback.
        if not report.failed or not isinstance(error.value, AssertionError):
            return
        # Only the plain assertion needs no traceback; pytest's comparison of other values is worth
        # more than a summary.
        if not trial.beats_baseline and "beats_baseline" in str(error.traceback[-1].statement):
            report.longrepr = _short(item, trial.explain())
        else:
            report.sections.append(("mlab", trial.explain()))
        agents = (agent.name for agent in self.directory.plan.agents)
        if _is_soft(self._gate, trial) or is_measured_only(trial.id, agents):
            # What pytest makes of an expected failure: counted, no failure in JUnit, not run again
            # by --lf.
            report.outcome = "skipped"
            report.wasxfail = f"{trial.outcome.value}: {trial.reason}"
            report.mlab_outcome = trial.outcome.value  # type: ignore[attr-defined]  # travels with the report

    def pytest_sessionfinish(self) -> None:
        """End the server of trials."""
        self.close()


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _is_soft(gate: str, trial: Trial) -> bool:
    """True when a failed assertion about ``trial`` is a fact to count and not a failure."""
    if gate == "aggregate":
        # An error that the agent did not make stays a failure.
        return trial.outcome.is_agents and not trial.beats_baseline
    return gate == "none"


def _short(item: pytest.Item, text: str) -> str:
    """A failure without a traceback: wrapped in the terminal, unwrapped as JUnit's message."""
    lines = [line for long in text.split("\n") for line in wrapped(long, WIDTH, rest="    ")]
    # pytest builds the text of a report from a raised exception; one of pytest.fail without a
    # traceback is shown as its message alone.
    try:
        pytest.fail("\n".join(lines), pytrace=False)
    except pytest.fail.Exception:
        failure: Any = item.repr_failure(pytest.ExceptionInfo.from_current())
    # JUnit takes its message attribute from here.
    failure.reprcrash.message = text
    return failure  # type: ignore[no-any-return]
