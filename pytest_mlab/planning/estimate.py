"""The worst case of a plan: every trial uses all of its budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.planning.planned import Planned

_EVALUATION_SECONDS = 60.0
"""Added to each trial's budget for preparing its workspace and evaluating it."""


@dataclass(frozen=True)
class Row:
    """All trials of one subject (agent and model) on one task: ``seconds`` is the wall time of one
    trial, ``cost`` the dollars of all of them, None when a price is unknown."""

    subject: str
    task: str
    trials: int
    seconds: float
    cost: float | None


@dataclass(frozen=True)
class Estimate:
    """``seconds`` of wall time with that many ``workers``; ``cost`` in dollars, None when a price
    is unknown. ``done`` counts the trials of a resumed run that already have a result; the figures
    include them."""

    rows: tuple[Row, ...]
    seconds: float
    cost: float | None
    workers: int
    done: int


def estimate(planned: Planned, workers: int, done: int = 0) -> Estimate:
    """The worst case of ``planned`` with ``workers`` trials at a time."""
    settings = planned.plan.settings
    counts = Counter((trial.agent, trial.model, trial.task) for trial in planned.plan.trials)
    rows = []
    for (agent, model, task), n in counts.items():
        budget = settings.budget.with_override(planned.tasks[task].budget)
        cost = _cost(settings, model, budget)
        subject = f"{agent} with {model}" if model else agent
        seconds = budget.max_seconds + budget.free_wait
        rows.append(Row(subject, task, n, seconds, None if cost is None else n * cost))
    total = _total(rows, workers, settings.run_max_cost)
    return Estimate(tuple(rows), _makespan(rows, workers), total, workers, done)


def trial_cost(models: Sequence[ModelSettings], steps: int, max_cost: float | None) -> float | None:
    """Dollars of one trial: its limit, else one call of the dearest of its ``models`` with a full
    context in each step. None when a price or a context size is unknown."""
    if max_cost is not None:
        return max_cost
    # Prices come from litellm, which is slow to import and not needed when a limit is the answer.
    from pytest_mlab.models.prices import price_of

    dearest = 0.0
    for model in models:
        price = price_of(model)
        if price is None or price.context is None:
            return None
        reply = (price.max_output or 0) * price.completion
        # No call is larger than the whole context, so this bounds it without a guess at the agent.
        dearest = max(dearest, price.context * price.prompt + reply)
    return steps * dearest


def _cost(settings: RunSettings, model: str, budget: Budget) -> float | None:
    if not model or settings.replay:
        return 0.0
    # Any step may call any of the three models.
    names = filter(None, (model, settings.edit_model, settings.fast_model))
    return trial_cost([*map(settings.of_model, names)], budget.max_steps, budget.max_cost)


def _total(rows: list[Row], workers: int, limit: float | None) -> float | None:
    """Dollars of all trials. A limit of the whole run stops no trial that is under way: each worker
    may still spend what its last trial costs."""
    costs: list[float] = []
    for row in rows:
        if row.cost is None:
            return None
        costs += [row.cost / row.trials] * row.trials
    if limit is None:
        return math.fsum(costs)
    under_way = sum(sorted(costs, reverse=True)[:workers])
    return min(math.fsum(costs), limit + under_way)


def _makespan(rows: list[Row], workers: int) -> float:
    """Wall seconds when each trial goes to the first worker that is free, the longest first."""
    lengths = [row.seconds + _EVALUATION_SECONDS for row in rows for _ in range(row.trials)]
    busy = [0.0] * max(1, min(workers, len(lengths)))
    for length in sorted(lengths, reverse=True):
        busy[busy.index(min(busy))] += length
    return max(busy)
