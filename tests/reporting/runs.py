"""Run directories for tests of reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.plan import Plan, PlannedAgent, PlannedTask, RunSettings
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from pytest_mlab.store.rundir import RunDir
from tests.core.builders import a_result

SUCCESS, BELOW = Outcome.SUCCESS, Outcome.BELOW_THRESHOLD


def a_run(
    path: Path,
    results: Sequence[TrialResult],
    missing: Sequence[TrialId] = (),
    settings: RunSettings | None = None,
) -> RunDir:
    """A run whose plan is ``results`` and ``missing``, with the results written in the order
    given."""
    trials = tuple(sorted([*(r.id for r in results), *missing], key=lambda i: (i.repeat, i)))
    plan = Plan(
        run_id="20240310-1200-abcd",
        settings=settings or RunSettings(),
        tasks=tuple(
            PlannedTask(t, "toys", f"toys/{t}", "0" * 64) for t in sorted({i.task for i in trials})
        ),
        agents=tuple(PlannedAgent(a, a, "1" * 64, True) for a in sorted({i.agent for i in trials})),
        trials=trials,
    )
    run = RunDir.create(
        path, plan, {"git": {"commit": "c0ffee", "dirty": False}, "versions": {"python": "3.11.7"}}
    )
    for result in results:
        run.trial(result.id).write_result(result)
    return run


def busy_results() -> list[TrialResult]:
    """Two tasks, the research agent and the control, every kind of figure."""
    found = []
    for task, wins in (("cifar10", 3), ("spaceship-titanic", 5)):
        for k in range(1, 9):
            outcome = SUCCESS if k <= wins else BELOW if k < 8 else Outcome.PROVIDER_ERROR
            found.append(
                a_result(
                    k,
                    outcome,
                    task=task,
                    model="gpt-4-turbo",
                    improvement=0.05 * k if outcome.is_scored else None,
                    within_noise=k == 1 if outcome.is_scored else None,
                    seconds=600.0 + k,
                    cost=0.25,
                )
            )
            noisy = SUCCESS if (task, k) == ("cifar10", 2) else BELOW
            found.append(a_control(k, noisy, task))
    return found


def a_control(repeat: int, outcome: Outcome, task: str) -> TrialResult:
    """A trial of the control agent, which calls no model."""
    result = a_result(repeat, outcome, task=task, agent="baseline", model="", improvement=0.0)
    return TrialResult(**{**vars(result), "ledger": type(result.ledger)(steps=2, seconds=12.0)})


SETTINGS = RunSettings(budget=Budget(max_cost=2.0))
