"""The plan of a new run: its agents, models, tasks and sandbox, and what is missing for them."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import Plan, PlannedAgent, PlannedTask, RunSettings
from pytest_mlab.core.routes import with_limits
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.locate import default_cache_dir, expand, writable_cache
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.planning import recordable
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.planning.planned import Planned
from pytest_mlab.planning.requirements import blocked, resolve_sandbox
from pytest_mlab.store.runs import REPORTS
from pytest_mlab.suites.catalog import Catalog
from pytest_mlab.suites.suite import Suite

DEFAULT_AGENT = "research"


def fresh_plan(options: MlabOptions, rootdir: Path, *, probe: bool) -> Planned:
    """The plan of a new run. Raises as :func:`pytest_mlab.planning.make.make_plan`."""
    # Absolute, since the plan may be resumed from another folder.
    cache_dir = expand(options.cache_dir).absolute() if options.cache_dir else default_cache_dir()
    if probe:
        writable_cache(cache_dir)
    agents = _agents(options.agent, options.agent_arg, rootdir, has_model=bool(options.model))
    models = planned_models(options, agents, rootdir)
    suite = Catalog(rootdir, cache_dir).suite(options.suite)
    tasks = {task.name: task for task in _tasks(suite, options.task)}
    sandbox = resolve_sandbox(options.sandbox_options, agents)
    settings = RunSettings(
        repeats=options.repeats,
        budget=options.budget,
        data=options.data,
        sandbox=sandbox.name,
        isolated=sandbox.isolated,
        network=options.network,
        threshold=options.threshold,
        edit_model=options.edit_model or "",
        fast_model=options.fast_model or "",
        cache_dir=str(cache_dir),
        docker_image=options.docker_image or "",
        consent=options.accept_rules,
        snapshot_file_mb=options.snapshot_file_mb,
        run_disk_mb=options.run_disk_mb,
        help=options.help,
        models=models,
        run_max_cost=options.run_max_cost,
        record=_absolute(options.record),
        replay=_absolute(options.replay),
        replay_mode="lenient" if options.replay_mode == "lenient" else "strict",
    )
    run_id = new_run_id()
    plan = Plan(
        run_id=run_id,
        settings=settings,
        tasks=tuple(PlannedTask(t.name, t.suite, str(t.folder), t.digest) for t in tasks.values()),
        agents=agents,
        trials=order_trials(tasks, agents, options.model, options.repeats),
    )
    missing = {}
    if probe:
        # Found only when asked for: looking at keys, packages and sandboxes takes seconds.
        missing = blocked(plan, tasks, sandbox.missing) | recordable.unusable(plan)
    return Planned(
        plan,
        tasks,
        missing,
        path=options.run_dir.absolute() if options.run_dir else rootdir / REPORTS / run_id,
        passed_over=sandbox.passed_over,
        # With tasks named, the other folders do not matter.
        left_out={} if options.task else suite.left_out,
    )


def new_run_id() -> str:
    """An id that sorts by time, such as ``20260131-140501-3f9a``."""
    # UTC keeps the order of ids when a clock goes back in autumn; the random part separates runs of
    # the same second.
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


def order_trials(
    tasks: Iterable[str], agents: Iterable[PlannedAgent], models: Iterable[str], repeats: int
) -> tuple[TrialId, ...]:
    """All trials of the ``tasks`` by name, repeat by repeat: a run that is stopped early has seen
    every task."""
    subjects = [
        (agent.name, model)
        for agent in agents
        for model in (models if agent.needs_model else ("",))
    ]
    names = list(tasks)
    return tuple(
        TrialId(task, agent, model, repeat)
        for repeat in range(1, repeats + 1)
        for task in names
        for agent, model in subjects
    )


def resolve_models(
    names: Sequence[str], main: Sequence[str], args: Sequence[str], file: Path | None, rootdir: Path
) -> tuple[ModelSettings, ...]:
    """The settings of the models called ``names``, from ``file`` or the project's own; ``args`` are
    added to those of ``main``.

    Raises ConfigError for a model that no known provider serves, naming the nearest; for settings
    that the model does not take; and for a client's variables that make no sense."""
    from pytest_mlab.models.limiter import window_from
    from pytest_mlab.models.retry import Retry
    from pytest_mlab.models.settings import ModelTables

    found = ModelTables.find(file, rootdir).settings(names, main=main, args=args)
    # Read for their errors alone: a trial would find a wrong variable only in its first call.
    Retry.from_environ(os.environ)
    window_from(os.environ)
    return found


def _agents(
    refs: tuple[str, ...], args: tuple[str, ...], rootdir: Path, *, has_model: bool
) -> tuple[PlannedAgent, ...]:
    from pytest_mlab.agentfiles.loader import plan_agents

    agents = plan_agents(refs or (DEFAULT_AGENT,), rootdir, args)
    if not has_model:
        agents = tuple(
            replace(agent, needs_model=False) if agent.model_optional else agent for agent in agents
        )
    # An agent's name is part of its trials' names and folders, so two of one name would share them.
    names = [agent.name for agent in agents]
    for agent in agents:
        if names.count(agent.name) > 1:
            same = " and ".join(other.ref for other in agents if other.name == agent.name)
            raise ConfigError(
                f"two agents have the name {agent.name!r}: {same}; rename one of the classes or"
                " files"
            )
    return agents


def planned_models(
    options: MlabOptions, agents: tuple[PlannedAgent, ...], rootdir: Path
) -> tuple[ModelSettings, ...]:
    """The models that the options name; none in a replay, which asks no model."""
    needy = [agent.name for agent in agents if agent.needs_model]
    if needy and not options.model:
        raise ConfigError(
            f"the agent {needy[0]} needs a model; name one with --mlab-model, such as gpt-4-turbo"
        )
    flags = {
        "--mlab-model": options.model,
        "--mlab-model-arg": options.model_arg,
        "--mlab-edit-model": options.edit_model,
        "--mlab-fast-model": options.fast_model,
    }
    named = [flag for flag, value in flags.items() if value]
    if named and not needy:
        raise ConfigError(
            f"the agent {agents[0].name} uses no model; leave {' and '.join(named)} out or name"
            " another agent"
        )
    if not named or options.replay:
        return ()
    from pytest_mlab.models.prices import require_prices
    from pytest_mlab.models.settings import FILE

    names = (*options.model, options.edit_model or "", options.fast_model or "")
    found = resolve_models(names, options.model, options.model_arg, options.models, rootdir)
    require_prices(found, options.max_cost or options.run_max_cost, str(options.models or FILE))
    return with_limits(found, options.rpm, options.tpm)


def _tasks(suite: Suite, patterns: tuple[str, ...]) -> tuple[Task, ...]:
    """The suite's tasks, or those that ``--mlab-task`` names; the others are not read, and may be
    broken."""
    if not patterns:
        return suite.tasks()
    chosen: set[str] = set()
    for pattern in patterns:
        found = {name for name in suite.names if fnmatchcase(name, pattern)}
        if not found:
            message = unknown("task", pattern, suite.names)
            raise ConfigError(f"--mlab-task={pattern}: {message} (suite {suite.name})")
        chosen |= found
    return suite.tasks(chosen)


def _absolute(folder: Path | None) -> str:
    return str(expand(folder).absolute()) if folder else ""
