"""What a run would do, as ``--mlab-plan`` and ``mlab plan`` show it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pytest_mlab.core.routes import limits_of
from pytest_mlab.lib.durations import format_duration
from pytest_mlab.planning.estimate import Estimate
from pytest_mlab.planning.planned import Planned
from pytest_mlab.reporting.text import WIDTH, about_limits, about_spending, grid, plural, wrapped
from pytest_mlab.store.shared import Shared


def plan_lines(planned: Planned, facts: Estimate, width: int = WIDTH) -> list[str]:
    """The plan for people, its table in lines of at most ``width`` columns, prose at 80."""
    plan, settings = planned.plan, planned.plan.settings
    lines = [*_table(facts, width), ""]
    done = f", {facts.done} of them done" if planned.resumed else ""
    lines.append(
        f"{plural(len(plan.trials), 'trial')}{done}; data {settings.data}, sandbox"
        f" {settings.sandbox}, {settings.budget.max_steps} steps a trial"
    )
    if facts.cost is None:
        dollars = "price unknown: bound the run by --mlab-max-tokens"
    else:
        dollars = f"${facts.cost:,.2f}"
    hours = format_duration(math.ceil(facts.seconds))
    lines.append(f"at worst {hours} with {plural(facts.workers, 'worker')}, {dollars}")
    if bounds := about_limits(settings):
        lines += wrapped(f"limits: {bounds}", WIDTH, rest="  ")
    if planned.resumed:
        spent = about_spending(Shared(planned.path).spending(), settings.run_max_cost)
        lines += [spent] if spent else []
    for agent in plan.agents:
        if agent.said:
            lines += wrapped(f"settings of {agent.name}: {agent.said}", WIDTH, rest="  ")
    if planned.passed_over:
        why = f"sandbox {settings.sandbox}, since {planned.passed_over}"
        lines += wrapped(why, WIDTH, rest="  ")
    if planned.blocked:
        lines.append("missing:")
        for reason, n in Counter(planned.blocked.values()).most_common():
            lines.append(f"  {n} trials: {reason}")
    return lines


def _table(facts: Estimate, width: int) -> list[str]:
    rows = [["task", "agent", "trials", "at most, each", "dollars"]]
    for row in facts.rows:
        dollars = "unknown" if row.cost is None else f"{row.cost:,.2f}"
        rows.append([row.task, row.subject, str(row.trials), format_duration(row.seconds), dollars])
    return grid(rows, (6, 13, 7), width, gap=2)


def plan_json(planned: Planned, facts: Estimate) -> Mapping[str, Any]:
    """The plan for programs: seconds and dollars, None where a price is unknown."""
    settings = planned.plan.settings
    names = {"seconds": "max_seconds", "cost": "max_cost_usd"}
    return {
        "format": 1,
        "trials": [trial.name for trial in planned.plan.trials],
        "done": facts.done,
        "rows": [
            {names.get(key, key): value for key, value in asdict(row).items()} for row in facts.rows
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
