"""``mlab plan``: what a run would do, what it may cost at worst and what is missing for it, without
running it."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import PlannedAgent
from pytest_mlab.core.routes import limits_of
from pytest_mlab.lib.durations import format_duration
from pytest_mlab.planning.make import make_plan
from pytest_mlab.planning.options import add_flags, resolve
from pytest_mlab.planning.planned import Planned
from pytest_mlab.reporting.text import about_limits, about_spending, wrapped
from pytest_mlab.store.shared import Shared

HELP = "what a run would do: trials, worst-case hours and dollars, and what is missing for it"

_EVALUATION = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of pytest's own command line."""
    add_flags(parser.add_argument)
    parser.add_argument(
        "-n", dest="workers", type=_workers, default=1, metavar="N", help="workers of pytest-xdist"
    )
    parser.add_argument(
        "--rootdir", type=Path, default=Path("."), help="the project's folder (default: this one)"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the plan. Exit status 1 when something is missing for a trial."""
    from pytest_mlab.planning.ini import read_ini

    rootdir = args.rootdir.absolute()
    options = resolve(lambda dest: getattr(args, dest), read_ini(rootdir))
    planned = make_plan(options, rootdir)
    done = 0
    if planned.resumed:
        from pytest_mlab.store.rundir import RunDir

        done = len(RunDir.open(planned.path).results())
    facts = estimate(planned, args.workers)
    print(
        json.dumps(as_json(planned, facts, done), indent=1)
        if args.json
        else text(planned, facts, args.workers, done)
    )
    return 1 if planned.blocked else 0


@dataclass(frozen=True)
class Row:
    """One subject's share: ``cost`` in dollars is None when a price is unknown, and is for all of
    its trials."""

    subject: str
    task: str
    trials: int
    seconds: float
    cost: float | None


@dataclass(frozen=True)
class Estimate:
    """Worst cases: ``seconds`` of wall time with the workers asked for; ``cost`` None when a price
    is unknown."""

    rows: tuple[Row, ...]
    seconds: float
    cost: float | None


def estimate(planned: Planned, workers: int) -> Estimate:
    """The worst case: every trial uses all of its budget."""
    plan = planned.plan
    counts = Counter((trial.agent, trial.model, trial.task) for trial in plan.trials)
    rows = []
    for (agent, model, task), n in counts.items():
        budget = plan.settings.budget.with_override(planned.tasks[task].budget)
        cost = _cost(planned, model, budget)
        subject = f"{agent} with {model}" if model else agent
        seconds = budget.max_seconds + budget.free_wait
        rows.append(Row(subject, task, n, seconds, None if cost is None else n * cost))
    return Estimate(
        tuple(rows), _makespan(rows, workers), _total(rows, workers, plan.settings.run_max_cost)
    )


def _total(rows: list[Row], workers: int, limit: float | None) -> float | None:
    """Dollars of all trials; with a limit for the run no more than that and what the trials of all
    workers, begun before it was reached, may cost."""
    costs = [
        row.cost / row.trials for row in rows for _ in range(row.trials) if row.cost is not None
    ]
    if len(costs) < sum(row.trials for row in rows):
        return None
    running = sum(sorted(costs, reverse=True)[:workers])
    return math.fsum(costs) if limit is None else min(math.fsum(costs), limit + running)


def _cost(planned: Planned, model: str, budget: Budget) -> float | None:
    settings = planned.plan.settings
    if not model or settings.replay:
        return 0.0
    models = [
        settings.of_model(name)
        for name in (model, settings.edit_model, settings.fast_model)
        if name
    ]
    return trial_cost(models, budget.max_steps, budget.max_cost)


def trial_cost(models: Sequence[ModelSettings], steps: int, max_cost: float | None) -> float | None:
    """Dollars of one trial at worst: its limit, else a call a step with a full context by the
    dearest of its models.

    None when a price or a context size is unknown.
    """
    if max_cost is not None:
        return max_cost
    from pytest_mlab.models.prices import price_of

    dearest = 0.0
    for model in models:
        price = price_of(model)
        if price is None or price.context is None:
            return None
        dearest = max(
            dearest, price.context * price.prompt + (price.max_output or 0) * price.completion
        )
    return steps * dearest


def _makespan(rows: list[Row], workers: int) -> float:
    """Wall seconds when every trial takes all of its time and goes to the first worker that is
    free."""
    lengths = sorted(
        (row.seconds + _EVALUATION for row in rows for _ in range(row.trials)), reverse=True
    )
    busy = [0.0] * max(1, min(workers, len(lengths)))
    for length in lengths:
        first = busy.index(min(busy))
        busy[first] += length
    return max(busy)


def text(planned: Planned, facts: Estimate, workers: int, done: int) -> str:
    """The plan for people, within 80 columns."""
    plan, settings = planned.plan, planned.plan.settings
    width = max([len("task"), *(len(row.task) for row in facts.rows)])
    limit = 80 - width - 34
    lines = [
        f"{'task':<{width}}  {'agent':<{limit}}  {'trials':>6}  {'at most, each':>13} "
        f" {'dollars':>7}"
    ]
    for row in facts.rows:
        subject = row.subject if len(row.subject) <= limit else row.subject[: limit - 3] + "..."
        lines.append(
            f"{row.task:<{width}}  {subject:<{limit}}  {row.trials:>6} "
            f" {format_duration(row.seconds):>13}  {_dollars(row.cost):>7}"
        )
    lines += [
        "",
        f"{len(plan.trials)} trials"
        + (f", {done} of them done" if planned.resumed else "")
        + f"; data {settings.data}, sandbox {settings.sandbox}, "
        f"{settings.budget.max_steps} steps a trial",
        f"at worst {format_duration(math.ceil(facts.seconds))} with {workers}"
        f" worker{'' if workers == 1 else 's'}, "
        + (
            "price unknown: bound the run by --mlab-max-tokens"
            if facts.cost is None
            else f"${facts.cost:,.2f}"
        ),
    ]
    if bounds := about_limits(settings):
        lines += wrapped(f"limits: {bounds}", 80, rest="  ")
    if planned.resumed and (
        spent := about_spending(Shared(planned.path).spending(), settings.run_max_cost)
    ):
        lines.append(spent)
    lines += [line for agent in plan.agents if agent.said for line in _settings(agent)]
    if planned.passed_over:
        lines += wrapped(f"sandbox {settings.sandbox}, since {planned.passed_over}", 80, rest="  ")
    if planned.blocked:
        lines.append("missing:")
        for reason, n in Counter(planned.blocked.values()).most_common():
            lines.append(f"  {n} trials: {reason}")
    return "\n".join(lines)


def _settings(agent: PlannedAgent) -> list[str]:
    return wrapped(f"settings of {agent.name}: {agent.said}", 80, rest="  ")


def as_json(planned: Planned, facts: Estimate, done: int) -> Mapping[str, Any]:
    """The plan for programs."""
    settings = planned.plan.settings
    return {
        "format": 1,
        "trials": [trial.name for trial in planned.plan.trials],
        "done": done,
        "rows": [
            {
                "subject": r.subject,
                "task": r.task,
                "trials": r.trials,
                "max_seconds": r.seconds,
                "max_cost_usd": r.cost,
            }
            for r in facts.rows
        ],
        "max_seconds": facts.seconds,
        "max_cost_usd": facts.cost,
        "run_max_cost_usd": settings.run_max_cost,
        "limits_a_minute": {
            model.name: {"requests": limits.rpm, "tokens": limits.tpm}
            for model in settings.models
            for limits in [limits_of(model.name, settings)]
        },
        "data": settings.data,
        "sandbox": settings.sandbox,
        "agent_settings": {agent.name: dict(agent.settings) for agent in planned.plan.agents},
        "missing": dict(planned.blocked),
    }


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.2f}"


def _workers(text: str) -> int:
    import os

    if text in ("auto", "logical"):
        return len(os.sched_getaffinity(0))
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("give a number of workers from 0, or auto")
    return max(1, value)
