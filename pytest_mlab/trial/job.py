"""The input of a trial's phases; all of it follows from the run directory and the trial's name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.plan import PlannedAgent, PlannedTask, RunSettings
from pytest_mlab.core.sandbox_api import Sandbox
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import TrialId
from pytest_mlab.data.prepare import Prepared, is_prepared
from pytest_mlab.data.sources.base import Options, prepare_command
from pytest_mlab.errors import DataUnavailable, StoreError
from pytest_mlab.sandboxes import make
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.suites.loader import load_task


@dataclass(frozen=True)
class Job:
    """One trial of a run. Cheap to make: files are read on access."""

    run: RunDir
    trial: TrialId

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Job:
        """The job that :attr:`payload` describes. Raises StoreError."""
        return cls(RunDir.open(Path(payload["run_dir"])), TrialId(**payload["trial"]))

    @property
    def payload(self) -> dict[str, Any]:
        """The job as JSON values."""
        return {"run_dir": str(self.run.path), "trial": dataclasses.asdict(self.trial)}

    @property
    def settings(self) -> RunSettings:
        """The run's settings."""
        return self.run.plan.settings

    @property
    def dir(self) -> TrialDir:
        """The trial's folder."""
        return self.run.trial(self.trial)

    @property
    def planned_task(self) -> PlannedTask:
        """The task as it was planned. Raises StoreError when the plan has no such task."""
        for planned in self.run.plan.tasks:
            if planned.name == self.trial.task:
                return planned
        raise StoreError(
            f"{self.run.path}: the plan has no task {self.trial.task!r} for {self.trial.name}"
        )

    @property
    def planned_agent(self) -> PlannedAgent:
        """The agent as it was planned. Raises StoreError when the plan has no such agent."""
        for planned in self.run.plan.agents:
            if planned.name == self.trial.agent:
                return planned
        raise StoreError(
            f"{self.run.path}: the plan has no agent {self.trial.agent!r} for {self.trial.name}"
        )

    # It works on a frozen dataclass, because it writes to __dict__ and not through __setattr__().
    @cached_property
    def task(self) -> Task:
        """The task as it is now. Raises SuiteError."""
        return load_task(Path(self.planned_task.folder), self.planned_task.suite)

    @property
    def budget(self) -> Budget:
        """The run's limits, or the task's own where those are stricter."""
        return self.settings.budget.with_override(self.task.budget)

    @property
    def rootdir(self) -> Path:
        """Where the run was started; references to agents are relative to it. Raises StoreError."""
        return Path(self.run.identity.get("rootdir") or self.run.path)

    @property
    def cache(self) -> Path:
        """The folder of prepared data and workspaces."""
        return Path(self.settings.cache_dir)

    @property
    def prepared(self) -> Prepared:
        """The task's data. Raises DataUnavailable when they are not prepared."""
        found = is_prepared(self.task, self.settings.data, self.cache)
        if found is None:
            name, variant = self.task.name, self.settings.data
            raise DataUnavailable(
                f"the data of {name} ({variant}) are gone from {self.cache}",
                fix=self.prepare_command,
            )
        return found

    @property
    def prepare_command(self) -> str:
        """The command that prepares the task's data in the run's cache."""
        return prepare_command(self.task, Options(self.cache, self.settings.data))

    @property
    def scratch(self) -> Path:
        """The run's folder for files that live no longer than a trial."""
        return scratch_of(self.run)

    @property
    def workspace(self) -> Path:
        """The folder that the agent works in."""
        return self.scratch / self.trial.name

    @property
    def socket(self) -> Path:
        """The Unix socket of the endpoint, for an agent that is a program."""
        # Its name alone must stay below the 107 bytes of a socket's address, and a trial's name may
        # hold a whole command line. The folder may be of any length: see Endpoint.
        return self.scratch / f"{sha256(self.trial.name.encode()).hexdigest()[:16]}.socket"

    @property
    def label(self) -> str:
        """The name of the trial's sandboxes, unique on the machine."""
        return f"mlab-{self.run.plan.run_id}-{self.trial.name}"

    def sandbox(self) -> Sandbox:
        """The run's sandbox backend; it hides answers and results."""
        # The folder above the task's: the evaluators of its neighbours are hidden too.
        hidden = (self.run.path, self.cache, Path(self.planned_task.folder).parent)
        return make(self.settings.sandbox_options, hidden=hidden)


def scratch_of(run: RunDir) -> Path:
    """A run's folder for workspaces and other short-lived files, where every sandbox backend can
    mount from."""
    return Path(run.plan.settings.cache_dir) / "workspaces" / run.plan.run_id
