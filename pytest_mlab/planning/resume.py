"""Finding the run to resume, and making sure that what is missing in it can still be compared with
what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import Plan, RunSettings
from pytest_mlab.core.routes import with_new_limits
from pytest_mlab.core.task import Task
from pytest_mlab.errors import ConfigError, StoreError
from pytest_mlab.planning import requirements
from pytest_mlab.planning.options import NEWEST, MlabOptions
from pytest_mlab.planning.planned import Planned
from pytest_mlab.store.rundir import PLAN, RunDir
from pytest_mlab.store.runs import REPORTS, find_run


def resume_plan(options: MlabOptions, rootdir: Path, asked: Plan | None) -> Planned:
    """The plan of the run that ``--mlab-resume`` names; ``asked`` is what the other options ask
    for, None without any.

    Raises ConfigError when there is no such run, when the other options ask for something else, and
    when a task or an agent has changed since; StoreError when the run is damaged."""
    run = (
        _newest(asked, rootdir)
        if options.resume == NEWEST
        else _named(str(options.resume), rootdir)
    )
    if asked is not None and (difference := _difference(run.plan, asked)):
        raise ConfigError(
            f"run {run.plan.run_id} was started with other settings: {difference}; repeat its"
            f" options, give none but --mlab-resume={run.plan.run_id}, or start a new run"
        )
    plan = replace(run.plan, settings=_with_limits(run.plan.settings, options))
    tasks = _unchanged_tasks(run.plan)
    _check_agents(run.plan, rootdir)
    done = run.results()
    missing = requirements.sandbox_missing(run.plan.settings)
    blocked = requirements.blocked(run.plan, tasks, missing)
    open_ones = {trial.name for trial in run.plan.trials if trial not in done}
    return Planned(
        plan,
        tasks,
        {name: why for name, why in blocked.items() if name in open_ones},
        run.path,
        resumed=True,
    )


def _with_limits(settings: RunSettings, options: MlabOptions) -> RunSettings:
    """A run's settings with the limits of this session: what bounds the whole run changes no trial
    of it."""
    if options.run_max_cost is not None:
        from pytest_mlab.models.prices import require_prices
        from pytest_mlab.models.settings import FILE

        require_prices(settings.models, options.run_max_cost, str(options.models or FILE))
    return replace(
        settings,
        run_max_cost=options.run_max_cost or settings.run_max_cost,
        models=with_new_limits(settings.models, options.rpm, options.tpm),
    )


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
    for run in _runs(rootdir):
        difference = _difference(run.plan, asked) if asked is not None else ""
        if not difference:
            return run
        differences.append(f"{run.plan.run_id} differs: {difference}")
    why = f"; the newest of another kind, {differences[0]}" if differences else ""
    raise ConfigError(
        f"--mlab-resume: no run to resume in {rootdir / REPORTS}{why}; leave it out to start a"
        " new run"
    )


def _runs(rootdir: Path) -> Iterator[RunDir]:
    """Readable runs, the newest first (their ids sort by time)."""
    folder = rootdir / REPORTS
    for path in sorted(folder.iterdir() if folder.is_dir() else (), reverse=True):
        if (path / PLAN).is_file():
            try:
                yield RunDir.open(path)
            except StoreError:
                continue  # of another version, or damaged: by name, it is an error


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
        if task.digest != planned.digest:
            raise ConfigError(
                f"the task {planned.name} ({folder}) has changed since run {plan.run_id} began; its"
                " trials could not be compared with new ones: restore the files, or start a"
                " new run"
            )
        tasks[task.name] = task
    return tasks


def _check_agents(plan: Plan, rootdir: Path) -> None:
    from pytest_mlab.agentfiles.loader import digest_now

    for agent in plan.agents:
        if digest_now(agent, rootdir) != agent.digest:
            raise ConfigError(
                f"the agent {agent.name} ({agent.ref}) has changed since run {plan.run_id} began;"
                " its trials could not be compared with new ones: restore the file, or start a"
                " new run"
            )
