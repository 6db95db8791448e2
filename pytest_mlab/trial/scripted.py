"""Running a task's own script outside a trial: the same actions as in one, without an agent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.crashes import crash_line
from pytest_mlab.core.sandbox_api import Connection
from pytest_mlab.core.task import Task
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import SuiteError
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.suites.scripts import scripted_actions
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.actions import definitions
from pytest_mlab.trial.actions.base import ActionContext, perform
from pytest_mlab.trial.time_limits import TASK_SCRIPT
from pytest_mlab.trial.workspace import Workspace

Script = Literal["baseline", "reference", "trivial"]


def run_script(
    task: Task, script: Script, workspace: Workspace, connection: Connection, outputs: Path
) -> None:
    """Do the actions of a task's own script in a fresh workspace. Long outputs go to the folder
    ``outputs``.

    Raises SuiteError when an action fails, SandboxError."""
    # No budget is checked here: a task's script may be long, and each action has a time limit.
    account = Account(Budget(max_seconds=math.inf))
    trial = TrialDir(outputs, TrialId(task.name, script, "", 1))
    context = ActionContext(
        workspace, connection, account, trial, None, task.resources, timeout=TASK_SCRIPT
    )
    for action in scripted_actions(task, script):
        context.step += 1
        answer = perform(definitions(), context, action)
        if not answer.ok:
            raise SuiteError(f"{task.name}: {_what_failed(answer.text)}")


def _what_failed(observation: str) -> str:
    """An action's failure on one line: its first sentence, and where its output says the error
    is."""
    head, _, output = observation.partition("\n")
    where = crash_line(output) or output.strip().rpartition("\n")[2][:300]
    if not where:
        return head
    return f"{head.removesuffix(' Its output:').rstrip('.')}: {where}"
