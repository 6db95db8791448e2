"""What a trial needs and this machine may lack: keys, packages, GPUs, data rules accepted, a
sandbox.

Asked once, on the controller: a probe that differed between workers would make them collect
different items. Every answer that something is missing names the command that fixes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import Plan, PlannedAgent, RunSettings
from pytest_mlab.core.sandbox_api import SandboxOptions
from pytest_mlab.core.task import Task
from pytest_mlab.core.task_commands import command
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import RequirementMissing, SandboxError
from pytest_mlab.lib import packages

# The driver makes this file; asking torch or nvidia-smi would take seconds or need them installed.
NVIDIA_DEVICE = Path("/dev/nvidiactl")


@dataclass(frozen=True)
class SandboxChoice:
    """The sandbox's name, ``auto`` resolved; whether it is ``isolated``; what is ``missing`` for it
    ('' when it works); and why ``auto`` passed over a better one ('' when it did not)."""

    name: str
    isolated: bool
    missing: str = ""
    passed_over: str = ""


def resolve_sandbox(wanted: SandboxOptions, agents: Iterable[PlannedAgent]) -> SandboxChoice:
    """The sandbox of a new run; ``auto`` chooses by what works here and by whether all ``agents``
    are trusted."""
    from pytest_mlab.sandboxes import AUTO, choose, make

    trusted = all(map(is_trusted, agents))
    try:
        sandbox, passed_over = choose(wanted, trusted_agents=trusted)
    except (RequirementMissing, SandboxError) as error:
        # The plan needs a name all the same: that of the sandbox which auto prefers. Its trials are
        # blocked by ``missing``.
        planned = make(AUTO[0] if wanted.name == "auto" else wanted)
        return SandboxChoice(planned.name, planned.isolated, missing=str(error))
    return SandboxChoice(sandbox.name, sandbox.isolated, passed_over=passed_over)


def sandbox_missing(settings: RunSettings) -> str:
    """What is missing for the sandbox of a run that began earlier; '' when it works."""
    from pytest_mlab.sandboxes import make

    try:
        return make(settings.sandbox_options).check()
    except (RequirementMissing, SandboxError) as error:
        return str(error)


def sweep(plan: Plan) -> str:
    """End what sandboxes of killed workers may have left; a sentence on what was found or is in the
    way, or ''."""
    from pytest_mlab.sandboxes import make

    try:
        found = make(plan.settings.sandbox_options).sweep(f"mlab-{plan.run_id}-")
    # Called at the end of a run as well, where a Docker that does not answer must not cost the
    # reports.
    except (SandboxError, RequirementMissing) as error:
        return str(error)
    return (
        f"ended {found} left over from the run's {plan.settings.sandbox} sandboxes" if found else ""
    )


def is_trusted(agent: PlannedAgent) -> bool:
    """True for the built-in agents that replay a task's own scripts: they execute nobody else's
    code."""
    from pytest_mlab.lib.locate import builtin

    file = Path(agent.ref.rpartition(":")[0])
    # The name is not enough: a project may have an agents/baseline.py of its own.
    return agent.name in ("baseline", "reference") and file.parent == builtin("agents").resolve()


def blocked(plan: Plan, tasks: Mapping[str, Task], sandbox: str = "") -> dict[str, str]:
    """What keeps each trial from running, by its name; ``sandbox`` is what is missing for all of
    them."""
    from pytest_mlab.sandboxes import make

    host_python = make(plan.settings.sandbox_options).uses_host_python
    needy = {agent.name for agent in plan.agents if agent.needs_model and not plan.settings.replay}
    of_task = {
        task.name: sandbox or missing_for_task(task, plan.settings, host_python)
        for task in tasks.values()
    }
    of_agent = {agent.name: missing_for_agent(agent, host_python) for agent in plan.agents}
    of_model = cache(lambda name: missing_key(plan.settings.of_model(name)))
    found: dict[str, str] = {}
    for trial in plan.trials:
        reason = of_task[trial.task] or of_agent[trial.agent]
        reason = reason or (_models(trial, plan.settings, of_model) if trial.agent in needy else "")
        if reason:
            found[trial.name] = reason
    return found


def missing_for_agent(agent: PlannedAgent, host_python: bool) -> str:
    """The packages that the agent imports, or the program that it runs, where they are absent; ''
    when all is there. Without ``host_python`` (``Sandbox.uses_host_python``) programs are looked
    for when the sandbox is open."""
    absent = _absent(f"the agent {agent.name}", agent.requirements, agent.fix)
    return absent or (_program(agent) if host_python else "")


def _program(agent: PlannedAgent) -> str:
    """Where a sandbox shows this machine's own programs: those on its PATH."""
    from pytest_mlab.sandboxes.opening import system_path

    if not agent.program or shutil.which(agent.program, path=system_path()):
        return ""
    # On the user's own PATH, to tell a program that is absent from one that the sandbox does not
    # show.
    elsewhere = shutil.which(agent.program)
    where = f", only as {elsewhere}, which the sandbox does not show" if elsewhere else ""
    return str(
        RequirementMissing(
            f"the agent {agent.name} needs the program {agent.program}, and there is none{where}",
            fix="install it below /usr, or --mlab-sandbox=docker with an image that has it",
        )
    )


def missing_for_task(task: Task, settings: RunSettings, host_python: bool) -> str:
    """The first thing that the task needs and is absent; '' when all is there. Without
    ``host_python`` (``Sandbox.uses_host_python``) packages are looked for in the open sandbox."""
    return (
        task.fault
        # Before the other checks, which look the variant up.
        or _variant(task, settings.data)
        or (_packages(task) or _foreign_imports(task) if host_python else "")
        or _foreign_baseline(task, settings.data)
        or _gpus(task)
        or _rules(task, settings)
    )


def missing_key(model: ModelSettings) -> str:
    """The environment variable that a model needs; '' when it is set."""
    from pytest_mlab.models.names import missing_key as missing

    own = model.api_key_env
    variable = (own if not os.environ.get(own) else "") if own else missing(model.model)
    if not variable:
        return ""
    first = variable.split(" ")[0]
    return str(
        RequirementMissing(
            f"the model {model.name} needs {variable}", fix=f"export {first}=<your key>"
        )
    )


def _models(trial: TrialId, settings: RunSettings, missing: Callable[[str], str]) -> str:
    names = (trial.model, settings.edit_model, settings.fast_model)
    return next((reason for name in names if name and (reason := missing(name))), "")


def _variant(task: Task, variant: str) -> str:
    if variant in task.variants:
        return ""
    have = ", ".join(task.variants)
    return str(
        RequirementMissing(
            f"the task {task.name} has no data variant {variant}, only {have}",
            fix=f"--mlab-data={next(iter(task.variants))}",
        )
    )


def _foreign_imports(task: Task) -> str:
    """A task in MLAgentBench's format need not list what it imports: its files are read for
    that."""
    from pytest_mlab.suites.foreign.imports import missing_imports
    from pytest_mlab.suites.foreign.reader import origin_of

    origin = origin_of(task)
    absent = missing_imports(origin, task.starter_script) if origin else {}
    if not absent:
        return ""
    named = ", ".join(f"{name} ({file})" for name, file in absent.items())
    return str(
        RequirementMissing(
            f"the task {task.name} imports packages that are not installed: {named}",
            fix=f"python -m pip install {' '.join(absent)}",
        )
    )


def _foreign_baseline(task: Task, variant: str) -> str:
    """A task in MLAgentBench's format brings no baseline: what has to be beaten must be known
    before a trial."""
    from pytest_mlab.suites.foreign.reader import origin_of

    origin = origin_of(task)
    if (
        origin is None
        or task.variants[variant].baseline is not None
        or task.threshold.absolute is not None
    ):
        return ""
    return str(
        RequirementMissing(
            f"the task {task.name} has no baseline: add baseline = [<scores of the starter code>]"
            f" or threshold = <score to beat> to {origin / 'mlab.toml'}",
            fix=command("measure", task, "--runs", "5"),
        )
    )


def _gpus(task: Task) -> str:
    if not task.resources.gpus or (
        NVIDIA_DEVICE.exists() and os.environ.get("CUDA_VISIBLE_DEVICES", "all") != ""
    ):
        return ""
    what = f"the task {task.name} needs {task.resources.gpus} GPU, and none is visible here"
    return str(
        RequirementMissing(
            what,
            fix="nvidia-smi (it must list a GPU), or leave the task out with -m 'not mlab_gpu'",
        )
    )


def _packages(task: Task) -> str:
    return _absent(f"the task {task.name}", task.requirements)


def _absent(who: str, requirements: Iterable[str], fix: str = "") -> str:
    wanted = packages.applicable(requirements)
    absent = packages.unmet(wanted, packages.installed(one.name for one in wanted))
    if not absent:
        return ""
    what = ", ".join(map(str, absent))
    fix = fix or packages.install_command(absent)
    return str(RequirementMissing(f"{who} needs {what}", fix=fix))


def _rules(task: Task, settings: RunSettings) -> str:
    """Rules of a data source that nobody has accepted yet, unless the data are there already."""
    from pytest_mlab.data.prepare import refused_rules

    return str(refused_rules(task, settings.data, Path(settings.cache_dir), settings.consent) or "")
