"""A plan with all that the controller of its run needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_mlab.core.plan import Plan
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import Outcome, TrialId
from pytest_mlab.store.rundir import RunDir


@dataclass(frozen=True)
class Planned:
    """A plan with all that its controller needs.

    ``tasks`` by name; ``blocked`` holds, by the name of a trial that cannot run, what is missing
    and the command that fixes it; ``path`` is the run directory, which exists only for a
    ``resumed`` run; ``passed_over`` is why ``auto`` did not take a sandbox that it prefers;
    ``left_out`` are folders of the suite that look like tasks but are not, with the reason; trials
    of a resumed run that ended by an outcome of ``retry`` are run again."""

    plan: Plan
    tasks: Mapping[str, Task]
    blocked: Mapping[str, str]
    path: Path
    resumed: bool = False
    passed_over: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    retry: tuple[Outcome, ...] = ()

    def narrowed(self, chosen: Iterable[TrialId]) -> Planned:
        """The same with only the ``chosen`` trials."""
        plan = narrowed(self.plan, chosen)
        names = {trial.name for trial in plan.trials}
        blocked = {name: why for name, why in self.blocked.items() if name in names}
        return replace(self, plan=plan, blocked=blocked)

    def done(self) -> int:
        """How many of the trials have a result: none of a new run's."""
        if not self.resumed:
            return 0
        run = RunDir.open(self.path)
        results = (run.trial(trial).result() for trial in self.plan.trials)
        return sum(r is not None and r.outcome not in self.retry for r in results)


def narrowed(plan: Plan, chosen: Iterable[TrialId]) -> Plan:
    """``plan`` with only the ``chosen`` trials, and the tasks and agents that they need."""
    wanted = set(chosen)
    trials = tuple(trial for trial in plan.trials if trial in wanted)
    tasks = {trial.task for trial in trials}
    agents = {trial.agent for trial in trials}
    return replace(
        plan,
        trials=trials,
        tasks=tuple(task for task in plan.tasks if task.name in tasks),
        agents=tuple(agent for agent in plan.agents if agent.name in agents),
    )
