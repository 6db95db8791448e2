"""The plan of a run that is resumed: found, and checked to be comparable with what is there now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import Plan, RunSettings, drift
from pytest_mlab.core.routes import with_new_limits
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import Outcome
from pytest_mlab.core.values import PerModel
from pytest_mlab.errors import ConfigError
from pytest_mlab.planning import requirements
from pytest_mlab.planning.options import NEWEST
from pytest_mlab.planning.planned import Planned
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.runs import REPORTS, find_run, newest_first


def resume_plan(
    name: str, rootdir: Path, asked: Plan | None, retry: Sequence[Outcome] = ()
) -> Planned:
    """The plan of the run called ``name``; ``asked`` is the plan of the other options, None without
    any; trials that ended by an outcome of ``retry`` are not done.

    Raises ConfigError when there is no such run, when ``asked`` differs from it, and when a task or
    an agent has changed since; StoreError when the run is damaged."""
    run = _newest(asked, rootdir) if name == NEWEST else _named(name, rootdir)
    plan = run.plan
    if asked is not None and (difference := _difference(plan, asked)):
        raise ConfigError(
            f"run {plan.run_id} was started with other settings: {difference}; repeat its"
            f" options, give none but --mlab-resume={plan.run_id}, or start a new run"
        )
    tasks = _unchanged_tasks(plan)
    _check_agents(plan, rootdir)
    done = {t.name for t, result in run.results().items() if result.outcome not in retry}
    missing = requirements.blocked(plan, tasks, requirements.sandbox_missing(plan.settings))
    # A trial with a result is reported from disk and needs nothing.
    blocked = {name: why for name, why in missing.items() if name not in done}
    return Planned(plan, tasks, blocked, run.path, resumed=True, retry=tuple(retry))


@dataclass(frozen=True)
class RunLimits:
    """The options that a later session of a run may change, since they bound the whole run and
    alter no trial: dollars, requests and tokens a minute. ``models`` is the file where prices can
    be written."""

    run_max_cost: float | None
    rpm: tuple[PerModel, ...]
    tpm: tuple[PerModel, ...]
    models: Path | None

    def on(self, plan: Plan) -> Plan:
        """``plan`` with these limits; those that are not given stay as they were."""
        settings = plan.settings
        if self.run_max_cost is not None:
            from pytest_mlab.models.prices import require_prices
            from pytest_mlab.models.settings import FILE

            require_prices(settings.models, self.run_max_cost, str(self.models or FILE))
        settings = replace(
            settings,
            run_max_cost=self.run_max_cost or settings.run_max_cost,
            models=with_new_limits(settings.models, self.rpm, self.tpm),
        )
        return replace(plan, settings=settings)


def _comparable(settings: RunSettings) -> RunSettings:
    """``settings`` without the limits that another session of the run may change."""
    models = tuple(replace(model, rpm=None, tpm=None) for model in settings.models)
    return replace(settings, run_max_cost=None, models=models)


def _named(name: str, rootdir: Path) -> RunDir:
    try:
        found = find_run(name, rootdir / REPORTS)
    except ConfigError as error:
        hint = "write --mlab-resume=RUN with an equals sign; alone, it must not stand before a path"
        raise ConfigError(f"--mlab-resume={name}: {error} ({hint})") from None
    return RunDir(found.path.absolute(), found.plan)


def _newest(asked: Plan | None, rootdir: Path) -> RunDir:
    differences: list[str] = []
    for run in newest_first(rootdir / REPORTS):
        difference = _difference(run.plan, asked) if asked is not None else ""
        if not difference:
            return run
        differences.append(f"{run.plan.run_id} differs: {difference}")
    why = f"; the newest of another kind, {differences[0]}" if differences else ""
    raise ConfigError(
        f"--mlab-resume: no run to resume in {rootdir / REPORTS}{why}; leave it out to start a"
        " new run"
    )


def _difference(stored: Plan, asked: Plan) -> str:
    """The first thing in which a stored run differs from what is asked for; '' when it can be
    resumed."""
    before, after = _comparable(stored.settings), _comparable(asked.settings)
    for name in before.__dataclass_fields__:
        was, now = getattr(before, name), getattr(after, name)
        if was != now and name == "models":
            return _other_models(was, now)
        if was != now:
            return f"{name.replace('_', '-')} was {was}, is {now}"
    names = {agent.name: agent for agent in asked.agents}
    for agent in stored.agents:
        if agent.name not in names:
            return f"it has the agent {agent.name}"
        if dict(agent.settings) != dict(names[agent.name].settings):
            was, now = (one.said or "no settings" for one in (agent, names[agent.name]))
            return f"the agent {agent.name} had {was}, has {now}"
    # In one direction: a run that -k has narrowed has fewer agents and trials than its options ask
    # for.
    planned = set(asked.trials)
    for trial in stored.trials:
        if trial not in planned:
            return f"it has the trial {trial.name}"
    return ""


def _other_models(was: Sequence[ModelSettings], now: Sequence[ModelSettings]) -> str:
    """The first thing in which the settings of models differ."""
    asked = {model.name: model for model in now}
    for model in was:
        if model.name not in asked:
            return f"it has the model {model.name}"
        for name in model.__dataclass_fields__:
            before, after = getattr(model, name), getattr(asked[model.name], name)
            if before != after:
                return f"{name} of the model {model.name} was {before}, is {after}"
    return f"it has no model {', '.join(sorted(asked.keys() - {model.name for model in was}))}"


def _unchanged_tasks(plan: Plan) -> dict[str, Task]:
    from pytest_mlab.suites.foreign.reader import load_for_plan

    tasks: dict[str, Task] = {}
    for planned in plan.tasks:
        folder = Path(planned.folder)
        if not folder.is_dir():
            raise ConfigError(
                f"run {plan.run_id} has the task {planned.name} from {folder}, which is gone;"
                " restore it"
            )
        task = load_for_plan(folder, planned.suite, Path(plan.settings.cache_dir))
        if changed := drift(planned, task.digest):
            raise ConfigError(changed)
        tasks[task.name] = task
    return tasks


def _check_agents(plan: Plan, rootdir: Path) -> None:
    from pytest_mlab.agentfiles.loader import digest_now

    for agent in plan.agents:
        if changed := drift(agent, digest_now(agent, rootdir)):
            raise ConfigError(changed)
