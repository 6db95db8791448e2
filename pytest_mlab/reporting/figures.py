"""A run's figures: what all reports are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_mlab.core.aggregate import Conditions, SubjectSummary, summarize
from pytest_mlab.core.gate import GatePolicy, GateResult, judge_run
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
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

    @classmethod
    def of(
        cls, run: RunDir, policy: GatePolicy, results: Mapping[TrialId, TrialResult] | None = None
    ) -> RunFigures:
        """The figures of ``run``.

        ``results`` are those on disk unless the caller knows more (why a trial was skipped, that a
        worker died). Raises StoreError when a result cannot be read."""
        settings = run.plan.settings
        conditions = Conditions(settings.data, settings.sandbox, settings.budget)
        known = stored_results(run) if results is None else results
        subjects = summarize(run.plan.trials, known, conditions)
        return cls(run, subjects, judge_run(subjects, policy), Shared(run.path).spending())

    @property
    def missing(self) -> tuple[TrialResult, ...]:
        """What was planned and has no result, with the reason."""
        return tuple(r for r in self.trials if r.outcome is Outcome.NOT_RUN)

    @property
    def stopped(self) -> Mapping[str, int]:
        """Why the run started no further trials, and how many each reason kept from it."""
        return Counter(
            result.reason for result in self.missing if result.reason.startswith(NOT_STARTED)
        )

    @property
    def trials(self) -> tuple[TrialResult, ...]:
        """One result a planned trial."""
        return tuple(r for s in self.subjects for t in s.tasks for r in t.results)


def stored_results(run: RunDir) -> dict[TrialId, TrialResult]:
    """The results on disk; a trial that began and did not end is ``not_run`` and its reason says
    how far it came, one that was not started since the run stops, why it does."""
    found = run.results()
    stops = Stops.of(run)
    for trial in run.plan.trials:
        if trial in found:
            continue
        how_far = run.trial(trial).how_far()
        if not how_far:
            if stopped := stops.why(trial):
                found[trial] = TrialResult(trial, Outcome.NOT_RUN, stopped)
            continue
        found[trial] = TrialResult(
            trial, Outcome.NOT_RUN, f"it was started and did not end: the trace stops {how_far}"
        )
    return found
