"""From options, suites and agents to a frozen plan, its run directory, and what is missing to carry
it out.

Used by the pytest plugin (on the controller only) and by ``mlab plan``; knows no pytest. Everything
that could make two workers disagree (what exists, which sandbox works, which key is set) is decided
here, once."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import Plan, PlannedAgent, PlannedTask, RunSettings
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.planning import recordable as recordings
from pytest_mlab.planning import requirements
from pytest_mlab.planning.options import MlabOptions, given
from pytest_mlab.planning.planned import REPORTS, Planned
from pytest_mlab.store.rundir import PLAN, RunDir

if TYPE_CHECKING:
    from pytest_mlab.suites.catalog import Catalog

DEFAULT_AGENT = "research"


def make_plan(options: MlabOptions, rootdir: Path, *, probe: bool = True) -> Planned:
    """The plan that ``options`` ask for, seen from ``rootdir``; without ``probe`` nobody asks
    whether keys, packages and the like are there, which takes seconds and matters only to who wants
    to run it.

    Raises ConfigError for names and combinations that cannot be, SuiteError for a broken task,
    AgentLoadError for a broken agent, StoreError for a damaged run to resume."""
    if options.resume:
        from pytest_mlab.planning.resume import resume_plan

        asked = fresh_plan(options, rootdir).plan if options.model or options.agent else None
        return resume_plan(options, rootdir, asked)
    return fresh_plan(options, rootdir, probe=probe)


def fresh_plan(options: MlabOptions, rootdir: Path, *, probe: bool = True) -> Planned:
    """The plan of a new run."""
    from pytest_mlab.suites.catalog import Catalog

    agents = _agents(options, rootdir)
    models = _models(options, agents, rootdir)
    catalog = Catalog(rootdir, _cache_dir(options))
    tasks = _tasks(options, catalog)
    sandbox = requirements.resolve_sandbox(options, agents)
    settings = RunSettings(
        repeats=options.repeats,
        budget=options.budget,
        data=options.data,
        sandbox=sandbox.name,
        network=options.network,
        threshold=options.threshold,
        edit_model=options.edit_model or "",
        fast_model=options.fast_model or "",
        cache_dir=str(_cache_dir(options)),
        isolated=sandbox.isolated,
        docker_image=options.docker_image or "",
        consent=options.accept_rules,
        snapshot_file_mb=options.snapshot_file_mb,
        run_disk_mb=options.run_disk_mb,
        help=options.help,
        models=models,
        run_max_cost=options.run_max_cost,
        record=str(options.record.expanduser().absolute()) if options.record else "",
        replay=str(options.replay.expanduser().absolute()) if options.replay else "",
        replay_mode="lenient" if options.replay_mode == "lenient" else "strict",
    )
    run_id = new_run_id()
    plan = Plan(
        run_id=run_id,
        settings=settings,
        tasks=tuple(PlannedTask(t.name, t.suite, str(t.folder), t.digest) for t in tasks),
        agents=agents,
        trials=order_trials(tasks, agents, options.model, options.repeats),
    )
    by_name = {task.name: task for task in tasks}
    path = options.run_dir.absolute() if options.run_dir else rootdir / REPORTS / run_id
    blocked = (
        requirements.blocked(plan, by_name, sandbox.missing) | recordings.unusable(plan)
        if probe
        else {}
    )
    left_out = {} if options.task else catalog.left_out(options.suite)
    return Planned(plan, by_name, blocked, path, passed_over=sandbox.passed_over, left_out=left_out)


def new_run_id() -> str:
    """An id that sorts by time, such as ``20260131-140501-3f9a``."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


def order_trials(
    tasks: Iterable[Task], agents: Iterable[PlannedAgent], models: Iterable[str], repeats: int
) -> tuple[TrialId, ...]:
    """All trials, repeat by repeat: a run that is stopped early has seen every task."""
    subjects = [
        (agent.name, model)
        for agent in agents
        for model in (models if agent.needs_model else ("",))
    ]
    names = [task.name for task in tasks]
    return tuple(
        TrialId(task, agent, model, repeat)
        for repeat in range(1, repeats + 1)
        for task in names
        for agent, model in subjects
    )


def freeze(planned: Planned, options: MlabOptions, rootdir: Path) -> RunDir:
    """Write the plan and the run's identity; a resumed run keeps what it has, but for the limits of
    the whole run."""
    if planned.resumed:
        run = RunDir.open(planned.path)
        return run if run.plan.settings == planned.plan.settings else _rewrite(run, planned.plan)
    from pytest_mlab.lib import identity

    described: dict[str, Any] = {
        "run_id": planned.plan.run_id,
        "options": given(options),
        "rootdir": str(rootdir),
    }
    return RunDir.create(planned.path, planned.plan, described | identity.collect(rootdir))


def narrow(run: RunDir, chosen: Iterable[TrialId]) -> RunDir:
    """The run with only the ``chosen`` trials planned: those that ``-k`` and ``-m`` left out are
    not ``not_run``."""
    wanted = set(chosen)
    trials = tuple(trial for trial in run.plan.trials if trial in wanted)
    if trials == run.plan.trials:
        return run
    tasks = {trial.task for trial in trials}
    agents = {trial.agent for trial in trials}
    plan = replace(
        run.plan,
        trials=trials,
        tasks=tuple(task for task in run.plan.tasks if task.name in tasks),
        agents=tuple(agent for agent in run.plan.agents if agent.name in agents),
    )
    return _rewrite(run, plan)


def _rewrite(run: RunDir, plan: Plan) -> RunDir:
    from pytest_mlab.lib.atomic import write_text
    from pytest_mlab.store import serial

    write_text(run.path / PLAN, serial.to_json(plan), durable=True)
    return RunDir(run.path, plan)


def read_selection(file: Path, plan: Plan) -> dict[str, TrialId]:
    """What a worker wrote of its selection: trials by node id. Empty when it wrote nothing."""
    try:
        names = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    by_name = {trial.name: trial for trial in plan.trials}
    return {nodeid: by_name[name] for nodeid, name in names.items() if name in by_name}


def _agents(options: MlabOptions, rootdir: Path) -> tuple[PlannedAgent, ...]:
    from pytest_mlab.agentfiles.loader import plan_agents

    agents = plan_agents(options.agent or (DEFAULT_AGENT,), rootdir, options.agent_arg)
    if not options.model:
        agents = tuple(
            replace(agent, needs_model=False) if agent.model_optional else agent for agent in agents
        )
    names = [agent.name for agent in agents]
    for agent in agents:
        if names.count(agent.name) > 1:
            same = " and ".join(other.ref for other in agents if other.name == agent.name)
            raise ConfigError(
                f"two agents have the name {agent.name!r}: {same}; rename one of the classes or"
                " files"
            )
    return agents


def _models(
    options: MlabOptions, agents: tuple[PlannedAgent, ...], rootdir: Path
) -> tuple[ModelSettings, ...]:
    needy = [agent.name for agent in agents if agent.needs_model]
    if needy and not options.model:
        raise ConfigError(
            f"the agent {needy[0]} needs a model; name one with --mlab-model, such as gpt-4-turbo"
        )
    named = [
        flag
        for flag, value in (
            ("--mlab-model", options.model),
            ("--mlab-model-arg", options.model_arg),
            ("--mlab-edit-model", options.edit_model),
            ("--mlab-fast-model", options.fast_model),
        )
        if value
    ]
    if named and not needy:
        agent = agents[0].name
        raise ConfigError(
            f"the agent {agent} uses no model; leave {' and '.join(named)} out or name another"
            " agent"
        )
    return requirements.resolve_models(options, rootdir) if named and not options.replay else ()


def _tasks(options: MlabOptions, catalog: Catalog) -> tuple[Task, ...]:
    """The suite's tasks that ``--mlab-task`` names; no other is read, and may be broken."""
    names = catalog.task_names(options.suite)
    if not options.task:
        return catalog.tasks(options.suite)
    chosen: set[str] = set()
    for pattern in options.task:
        found = {name for name in names if fnmatchcase(name, pattern)}
        if not found:
            raise ConfigError(
                f"--mlab-task={pattern}: {unknown('task', pattern, names)} (suite {options.suite})"
            )
        chosen |= found
    return catalog.tasks(options.suite, chosen)


def _cache_dir(options: MlabOptions) -> Path:
    if options.cache_dir:
        return options.cache_dir.expanduser().absolute()
    from pytest_mlab.data.cache import default_cache_dir

    return default_cache_dir()
