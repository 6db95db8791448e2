"""A run directory for trials on the toy suite, without pytest's plugin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_mlab.agentfiles.loader import plan_agents
from pytest_mlab.core.budget import Budget
from pytest_mlab.core.plan import Plan, PlannedTask, RunSettings
from pytest_mlab.core.trial import TrialId
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.suites.loader import load_task

BUDGET = Budget(max_steps=20, max_seconds=60.0)


def make_run(
    root: Path,
    agents: Sequence[str],
    *,
    path: Path | None = None,
    tasks: Sequence[str] = ("guess",),
    model: str = "",
    budget: Budget = BUDGET,
    args: Sequence[str] = (),
    **settings: Any,
) -> RunDir:
    """A run of ``agents`` (names, or references) on ``tasks`` of ``root/task_suites/toy``, one
    repeat, in the sandbox ``local`` unless ``settings`` (of RunSettings) say otherwise; ``args``
    are settings of agents. The cache is ``root/cache``."""
    folders = [root / "task_suites" / "toy" / task for task in tasks]
    planned = plan_agents(agents, root, args)
    chosen: dict[str, Any] = {
        "sandbox": "local",
        "cache_dir": str(root / "cache"),
        "repeats": 1,
    } | settings
    plan = Plan(
        run_id=f"toy-{sha256(str(root).encode()).hexdigest()[:8]}",  # sandboxes are swept by it
        settings=replace(RunSettings(budget=budget), **chosen),
        tasks=tuple(
            PlannedTask(f.name, "toy", str(f), load_task(f, "toy").digest) for f in folders
        ),
        agents=planned,
        trials=tuple(
            TrialId(task, agent.name, model if agent.needs_model else "", 1)
            for task in tasks
            for agent in planned
        ),
    )
    return RunDir.create(path or root / "run", plan, {"rootdir": str(root)})
