"""Small facts for tests of the core and of reports."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from pytest_mlab.core.aggregate import Conditions
from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.task import Baseline, Direction, Metric, Submission, Task, Threshold, Variant
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult

CONDITIONS = Conditions("mini", "bubblewrap", Budget())


def a_baseline(*scores: float, measured: str = "starter") -> Baseline:
    """A baseline with the mean and the spread of ``scores``."""
    std = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return Baseline(measured, scores, statistics.fmean(scores), std, machine="test")


def a_task(
    baseline: Baseline | None = None,
    *,
    name: str = "toy",
    direction: Direction = Direction.MAXIMIZE,
    threshold: Threshold | None = None,
    low: float | None = None,
    high: float | None = None,
    reference: Baseline | None = None,
) -> Task:
    """A task with one data variant, ``mini``."""
    return Task(
        name=name,
        suite="toys",
        version="1",
        summary="A toy.",
        modality="tabular",
        folder=Path("toys") / name,
        description="Make it better.",
        metric=Metric("accuracy", direction, low=low, high=high),
        submission=Submission("csv", "submission.csv"),
        variants={"mini": Variant("mini", (), baseline, reference)},
        digest="0" * 64,
        threshold=threshold or Threshold(),
    )


def a_result(
    repeat: int = 1,
    outcome: Outcome = Outcome.SUCCESS,
    *,
    task: str = "toy",
    agent: str = "research",
    model: str = "m",
    improvement: float | None = None,
    cost: float | None = 0.5,
    steps: int = 10,
    seconds: float = 60.0,
    data: str = "mini",
    sandbox: str = "bubblewrap",
    within_noise: bool | None = None,
) -> TrialResult:
    """A result with one model call."""
    ledger = Ledger(steps=steps).with_call(Usage(100, 20), cost).at(seconds)
    return TrialResult(
        TrialId(task, agent, model, repeat),
        outcome,
        "a reason",
        score=0.7 if outcome.is_scored else None,
        baseline=0.5,
        needed=0.55,
        improvement=improvement,
        within_noise=within_noise,
        ledger=ledger,
        data=data,
        sandbox=sandbox,
    )


def by_id(results: Sequence[TrialResult]) -> dict[TrialId, TrialResult]:
    """Results as a run directory gives them."""
    return {r.id: r for r in results}
