"""The process that runs trials: a worker of xdist, or pytest itself without one.

Runs each trial once, and turns what a test says about it into a report: a short text in place of a
traceback, and under ``--mlab-gate=aggregate`` or ``none`` a category of its own in place of a
failure."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlab.core.trial import TrialId, TrialResult
from pytest_mlab.core.wire import Builtin
from pytest_mlab.errors import DataUnavailable, RequirementMissing
from pytest_mlab.lib.atomic import write_text
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.plugin.collect import Run, trial_of
from pytest_mlab.plugin.roles import is_worker
from pytest_mlab.plugin.trial import TRIAL, Trial, nearby
from pytest_mlab.reporting.junit import trial_properties
from pytest_mlab.reporting.text import wrapped
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.trial.person import kept
from pytest_mlab.trial.stops import Stops

if TYPE_CHECKING:
    from pytest_mlab.trial.runner import TrialRunner

SELECTION = "selection.json"
WIDTH = 80


class Worker:
    """Runs trials and words their reports; registered where items run."""

    def __init__(self, run: Run, options: MlabOptions, gate: str) -> None:
        self._run = run
        self._options = options
        self._gate = gate
        self._dir: RunDir | None = None
        self._runner: TrialRunner | None = None

    @property
    def directory(self) -> RunDir:
        """The run directory."""
        if self._dir is None:
            self._dir = RunDir.open(self._run.brief.run_dir)
        return self._dir

    # --- called by the fixture ---------------------------------------------------------------------------------

    def trial(self, trial: TrialId) -> Trial:
        """Run ``trial``, or take its result from disk when it has one. Skips the test when
        something is missing, and when the run starts no further trial."""
        stored = self.directory.trial(trial).result()
        if stored is not None:
            return Trial(stored, self.directory)
        if blocked := self._run.brief.blocked.get(trial.name):
            self._missing(blocked)
        if stopped := Stops.of(self.directory).why(trial):
            pytest.skip(stopped)
        try:
            result = self._start(trial)
        except (DataUnavailable, RequirementMissing) as error:
            self._missing(str(error))
        return Trial(result, self.directory)

    def properties(self, trial: Trial) -> list[tuple[str, Builtin]]:
        """What JUnit says of a trial's test case."""
        if self._options.junit_properties != "all":
            return []
        return trial_properties(trial.result, f"{nearby(trial.path)}/trace.jsonl")

    def _missing(self, reason: str) -> None:
        if self._options.strict:
            pytest.fail(f"{reason} (--mlab-strict)", pytrace=False)
        pytest.skip(reason)

    def _start(self, trial: TrialId) -> TrialResult:
        if self._runner is None:
            from pytest_mlab.trial.runner import TrialRunner

            self._runner = TrialRunner(self.directory.path, terminal=self._run.brief.terminal)
        try:
            with kept(self._run.brief.terminal):
                return self._runner.run(trial)
        except BaseException:
            # an interrupt or pytest-timeout: nothing of the trial may outlive it
            self.close()
            raise

    def close(self) -> None:
        """End the trial that runs, if any, and its server."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            runner.close()

    # --- hooks -------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell the controller which trials are left after ``-k`` and ``-m``, before xdist reports
        the ids."""
        if is_worker(session.config):
            names = {
                item.nodeid: trial.name
                for item in session.items
                if (trial := trial_of(item)) is not None
            }
            write_text(self._run.brief.run_dir / SELECTION, json.dumps(names))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Word the report of a test that judged a trial."""
        report = yield
        trial = item.stash.get(TRIAL, None)
        if (
            trial is not None
            and call.excinfo is not None
            and report.when == "call"
            and report.failed
        ):
            self._word(item, trial, call.excinfo, report)
        return report

    def _word(
        self,
        item: pytest.Item,
        trial: Trial,
        error: pytest.ExceptionInfo[BaseException],
        report: pytest.TestReport,
    ) -> None:
        if not isinstance(error.value, AssertionError):
            return
        if not trial.beats_baseline and "beats_baseline" in str(error.traceback[-1].statement):
            report.longrepr = _short(item, trial.explain())
        else:
            report.sections.append(("mlab", trial.explain()))
        if _is_soft(self._gate, trial):
            report.outcome = "skipped"
            report.wasxfail = f"{trial.outcome.value}: {trial.reason}"
            report.mlab_outcome = trial.outcome.value  # type: ignore[attr-defined]  # travels with the report

    def pytest_sessionfinish(self) -> None:
        """End the server of trials."""
        self.close()


def _is_soft(gate: str, trial: Trial) -> bool:
    """True when a failed assertion about ``trial`` is a fact to count and not a failure."""
    if gate == "aggregate":
        return trial.outcome.is_agents and not trial.beats_baseline
    return gate == "none"


def _short(item: pytest.Item, text: str) -> str:
    """``text`` as a failure without a traceback: broken into lines for people, as it is where
    pytest and JUnit put one message."""
    lines = [line for long in text.split("\n") for line in wrapped(long, WIDTH, rest="    ")]
    try:
        pytest.fail("\n".join(lines), pytrace=False)
    except pytest.fail.Exception:
        found: Any = item.repr_failure(pytest.ExceptionInfo.from_current())
    found.reprcrash.message = text
    return found  # type: ignore[no-any-return]
