"""Why trials have no result: skipped in their setup, or lost with the worker that ran them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.errors import StoreError
from pytest_mlab.plugin.selection import Selection
from pytest_mlab.plugin.trial import nearby
from pytest_mlab.reporting.junit import trial_properties
from pytest_mlab.store.trialdir import TrialDir


class Unfinished:
    """Collects the reasons from the tests' reports, and words the reports of crashed workers.

    ``blocked`` maps trial names to what was missing before the session; ``resume`` is the command
    that runs what is missing; ``with_properties``: reports carry the trial's facts for JUnit."""

    def __init__(
        self,
        selection: Selection,
        blocked: Mapping[str, str],
        *,
        resume: str,
        with_properties: bool,
    ) -> None:
        self._selection = selection
        self._blocked = blocked
        self._resume = resume
        self._with_properties = with_properties
        self._skips: dict[TrialId, str] = {}
        self._crashes: dict[TrialId, str] = {}

    def reasons(self) -> dict[TrialId, str]:
        """Why trials did not run or did not end, as far as this session knows."""
        trials = self._selection.run.plan.trials
        blocked = {t: self._blocked[t.name] for t in trials if t.name in self._blocked}
        return self._skips | blocked | self._crashes

    def word_crash(self, nodeid: str, report: pytest.TestReport) -> None:
        """A worker died: put into its report what the trial's trace shows, and how to resume."""
        trial = self._selection.items.get(nodeid)
        if trial is None:
            return
        folder = self._selection.run.trial(trial)
        result = folder.result()
        # The result is the trial's last file: a crash after it takes nothing from the trial.
        if result is not None:
            text = (
                f"the worker died after the trial had ended: {result.outcome.value}:"
                f" {result.reason}"
            )
        else:
            self._crashes[trial] = reason = _why_crashed(folder)
            result = TrialResult(trial, Outcome.NOT_RUN, reason)
            text = f"not_run: {reason}"
        trace = f"{nearby(folder.path)}/trace.jsonl"
        report.when = "call"  # xdist leaves it unknown, which JUnit words as an error of the setup
        report.longrepr = f"{text}\n  trace {trace}\n  again {self._resume}"
        # xdist gives the file as the test's name, which JUnit would show.
        report.location = (report.location[0], None, nodeid.partition("::")[2])
        if self._with_properties:
            report.user_properties = [*trial_properties(result, trace)]

    # trylast: the others have the crash report before its teardown, which is sent from here.
    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the reason of a trial that was skipped; add the teardown that a crash has not."""
        trial = self._selection.items.get(report.nodeid)
        if trial is None:
            return
        if report.when == "setup" and not report.passed:
            self._skips[trial] = _why_skipped(report)
        if trial in self._crashes and report.when == "call" and report.failed:
            # JUnit takes properties from a test's teardown, which a crashed worker does not report.
            end = pytest.TestReport(
                report.nodeid,
                report.location,
                {},
                "passed",
                None,
                "teardown",
                user_properties=report.user_properties,
            )
            # JUnit joins the phases of a test by its node id and its worker.
            end.node = report.node  # type: ignore[attr-defined]
            self._selection.config.hook.pytest_runtest_logreport(report=end)


def _why_crashed(folder: TrialDir) -> str:
    try:
        where = folder.how_far() or "before it started"
    except StoreError as error:
        return f"the worker died; the trace is unreadable: {error}"
    return f"the worker that ran it died {where} (killed, out of memory, or os._exit)"


def _why_skipped(report: pytest.TestReport) -> str:
    """The reason of a test that was skipped, or failed, before it began."""
    found: Any = report.longrepr
    if isinstance(found, tuple):
        return str(found[2]).removeprefix("Skipped: ")
    crash = getattr(found, "reprcrash", None)
    return str(getattr(crash, "message", None) or found).partition("\n")[0].removeprefix("Failed: ")
