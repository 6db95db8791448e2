"""What a run is going to do: settings, tasks by digest, and the ordered list of trials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.sandbox_api import SandboxOptions
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ConfigError

PLAN_FORMAT = 1


@dataclass(frozen=True)
class Models:
    """litellm names: ``main`` drives the agent, ``edit`` rewrites files, ``fast`` summarises; ''
    means none."""

    main: str = ""
    edit: str = ""
    fast: str = ""


@dataclass(frozen=True)
class PlannedTask:
    """A task of the plan: where its folder was and what its content was (sha256) when the run
    began."""

    name: str
    suite: str
    folder: str
    digest: str


@dataclass(frozen=True)
class PlannedAgent:
    """An agent of the plan: its display name and the reference that loads it (name, file.py:Class,
    module:Class).

    ``settings`` are those that differ from the agent's defaults, as JSON values; ``digest`` covers
    them and its files. ``requirements`` are packages that it imports, as pip takes them, and
    ``fix`` the command that installs them ('': pip install); an ``interactive`` one talks to who
    sits at the terminal; one with ``model_optional`` works without a model, and then has
    ``needs_model`` False; ``program`` is what it runs in the sandbox, where that has to be
    installed there."""

    name: str
    ref: str
    digest: str
    needs_model: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    fix: str = ""
    interactive: bool = False
    model_optional: bool = False
    program: str = ""

    @property
    def unmetered(self) -> bool:
        """True for one that could have a model and was given none."""
        return self.model_optional and not self.needs_model

    @property
    def said(self) -> str:
        """The settings as a command line gives them; '' when all are the defaults."""
        shown = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in self.settings.items()
        }
        return ", ".join(f"{key}={value}" for key, value in shown.items())


def drift(planned: PlannedTask | PlannedAgent, digest: str) -> str:
    """Why trials of now, with the content ``digest``, cannot be compared with the others of the
    plan; '' when nothing has changed."""
    if digest == planned.digest:
        return ""
    if isinstance(planned, PlannedTask):
        kind, place = "task", planned.folder
    else:
        kind, place = "agent", planned.ref
    return (
        f"the {kind} {planned.name} has changed since the plan was made ({place}: digest"
        f" {digest[:12]}, planned {planned.digest[:12]}); undo the change or start a new run"
    )


@dataclass(frozen=True)
class RunSettings:
    """Everything that decides what a trial does. Paths are absolute, as text.

    ``sandbox`` is the backend's resolved name (never ``auto``), ``isolated`` whether it protects
    the host, ``docker_image`` the image for a backend that runs containers; ``network`` lets the
    sandbox reach the network; ``data`` is the variant; ``threshold`` overrides every task's
    improvement threshold when not None; files above ``snapshot_file_mb`` MiB are stored with final
    snapshots only, and so is every file once the run's snapshots take ``run_disk_mb`` MiB;
    ``models`` are the settings of all models that the run names. ``run_max_cost`` is how many
    dollars may be spent before no further trial starts (None: no limit). ``help`` is who answers
    Request Help: nobody, or human. ``record`` is the folder that model calls are recorded into,
    ``replay`` the one they are answered from ('': none)."""

    # Together with Budget's 50 steps and 5 hours, the published settings of MLAgentBench.
    repeats: int = 8
    budget: Budget = Budget()
    data: str = "mini"
    sandbox: str = "bubblewrap"
    network: bool = False
    threshold: float | None = None
    edit_model: str = ""
    fast_model: str = ""
    cache_dir: str = ""
    docker_image: str = ""
    consent: tuple[str, ...] = ()
    snapshot_file_mb: int = 200
    run_disk_mb: int = 50_000
    help: str = "nobody"
    models: tuple[ModelSettings, ...] = ()
    run_max_cost: float | None = None
    record: str = ""
    replay: str = ""
    replay_mode: Literal["strict", "lenient"] = "strict"
    isolated: bool = True

    @property
    def sandbox_options(self) -> SandboxOptions:
        """The backend and its settings."""
        return SandboxOptions(self.sandbox, self.docker_image)

    def of_model(self, name: str) -> ModelSettings:
        """The settings of the model called ``name``; all defaults for one that the run does not
        name."""
        return next(
            (found for found in self.models if found.name == name), ModelSettings(name, name)
        )


@dataclass(frozen=True)
class Plan:
    """The frozen plan of a run; ``trials`` is in the order in which they start (repeat-major).

    Raises ConfigError when two trials would share a name or a folder.
    """

    run_id: str
    settings: RunSettings
    tasks: tuple[PlannedTask, ...]
    agents: tuple[PlannedAgent, ...]
    trials: tuple[TrialId, ...]
    format: int = PLAN_FORMAT

    def __post_init__(self) -> None:
        # slug() writes / and : as -, so two different models may share a name or a folder. One
        # trial's result would then be taken for the other's.
        for what in ("name", "folder"):
            seen: dict[object, TrialId] = {}
            for trial in self.trials:
                shared = getattr(trial, what)
                if shared in seen:
                    raise ConfigError(
                        f"two trials have the {what} {shared}: {_said(seen[shared])} and"
                        f" {_said(trial)}; leave one out of this run, or name the agent or model"
                        " otherwise"
                    )
                seen[shared] = trial


def _said(trial: TrialId) -> str:
    return (
        f"(task {trial.task!r}, agent {trial.agent!r}, model {trial.model!r}, repeat"
        f" {trial.repeat})"
    )
