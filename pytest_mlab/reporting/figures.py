"""A run's figures, which all reports show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_mlab.core.aggregate import Conditions, SubjectSummary, summarize
from pytest_mlab.core.figure import Figure
from pytest_mlab.core.gate import GatePolicy, GateResult, judge_run
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.reporting.earlier import Earlier
from pytest_mlab.reporting.figure_table import FIGURES, Cell, Entry, entries
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.shared import Shared, Spending
from pytest_mlab.trial.stops import NOT_STARTED, Stops


@dataclass(frozen=True)
class RunFigures:
    """A run, summarized and judged."""

    run: RunDir
    subjects: tuple[SubjectSummary, ...]
    gate: GateResult
    spending: Spending = Spending()
    table: tuple[Entry, ...] = FIGURES
    """The figures that reports show, users' own included."""
    problems: tuple[str, ...] = ()
    """Why figures of users' own are left out."""
    earlier: Earlier = Earlier()

    @classmethod
    def of(
        cls,
        run: RunDir,
        policy: GatePolicy,
        results: Mapping[TrialId, TrialResult] | None = None,
        figures: Sequence[Figure] = (),
    ) -> RunFigures:
        """The figures of ``run``.

        ``results`` are those on disk unless the caller knows more (why a trial was skipped, that a
        worker died). ``figures`` are users' own; one that cannot be computed is left out and named
        in ``problems``, because the other figures and the gate need not suffer from it. Raises
        StoreError when a result cannot be read, ConfigError when two figures have one name."""
        settings = run.plan.settings
        conditions = Conditions(settings.data, settings.sandbox, settings.budget)
        known = stored_results(run) if results is None else results
        subjects = summarize(run.plan.trials, _without_secrets(known), conditions)
        problems = {entry: _problem(entry, subjects) for entry in entries(figures)}
        return cls(
            run,
            subjects,
            judge_run(subjects, policy),
            Shared(run.path).spending(),
            tuple(entry for entry, problem in problems.items() if not problem),
            tuple(filter(None, problems.values())),
            Earlier.of(run),
        )

    @property
    def missing(self) -> tuple[TrialResult, ...]:
        """The planned trials that did not run, with the reason."""
        return tuple(r for r in self.trials if r.outcome is Outcome.NOT_RUN)

    @property
    def stopped(self) -> Mapping[str, int]:
        """The reasons why trials were not started, with the number of trials of each."""
        return Counter(r.reason for r in self.missing if r.reason.startswith(NOT_STARTED))

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """One result for every planned trial."""
        return tuple(r for s in self.subjects for t in s.tasks for r in t.results)


def _without_secrets(results: Mapping[TrialId, TrialResult]) -> dict[TrialId, TrialResult]:
    # Reasons quote providers and agents' programs, whose errors may repeat a key.
    redact = Redactor(os.environ)
    return {
        trial: replace(result, reason=redact(result.reason), notes=tuple(map(redact, result.notes)))
        for trial, result in results.items()
    }


def _problem(entry: Entry, subjects: Sequence[SubjectSummary]) -> str:
    """Why ``entry`` cannot be computed; '' when it can."""
    try:
        for subject in subjects:
            cells: list[Cell] = [subject, *subject.tasks]
            for cell in cells:
                entry.of(cell)
    except ConfigError as error:
        return str(error)
    return ""


def stored_results(run: RunDir) -> dict[TrialId, TrialResult]:
    """The results on disk. A trial that began and did not end is ``not_run``, and its reason says
    how far it came; so is one that was not started because the run stopped."""
    found = run.results()
    stops = Stops.of(run)
    for trial in run.plan.trials:
        if trial in found:
            continue
        # For a trial that began, how far it came says more than why the run stopped.
        how_far = run.trial(trial).how_far()
        if not how_far:
            if stopped := stops.why(trial):
                found[trial] = TrialResult(trial, Outcome.NOT_RUN, stopped)
            continue
        found[trial] = TrialResult(
            trial, Outcome.NOT_RUN, f"it was started and did not end: the trace stops {how_far}"
        )
    return found
