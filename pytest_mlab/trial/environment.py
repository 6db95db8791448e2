"""What an agent sees of a trial: it does steps, enforces the budget and has everything
recorded."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from pytest_mlab.core.actions import Action, ActionSpec, Observation, Step
from pytest_mlab.core.agent_api import Person
from pytest_mlab.core.budget import Budget, Ledger
from pytest_mlab.core.model_api import Model, ModelReply
from pytest_mlab.core.sandbox_api import Connection, Execution
from pytest_mlab.core.task import Task
from pytest_mlab.errors import BudgetExhausted, ConfigError, MlabError, TrialOver
from pytest_mlab.store.events import WorkspaceRestoring
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.moments import moment
from pytest_mlab.store.snapshots import Snapshots
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.store.underway import PROGRAM
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.actions import definitions
from pytest_mlab.trial.actions.base import ActionAnswer, ActionContext, as_meant, perform
from pytest_mlab.trial.program import Call, ProgramRun, Programs, said, shortened_words
from pytest_mlab.trial.restoring import bring_back
from pytest_mlab.trial.steps import StepRecorder
from pytest_mlab.trial.task_text import NOTHING_KNOWN, task_text
from pytest_mlab.trial.workspace import Workspace

_SHOWN_NAME = 40
RUNAWAY = 1000
"""Actions refused after the trial's end until the agent counts as one that never stops."""


class TrialEnvironment:
    """Implements :class:`pytest_mlab.core.agent_api.Environment` for one trial.

    ``scripts`` gives a task's own lists of actions by name; ``on_runaway`` ends the process of an
    agent that does not stop after the end. ``snapshots`` has taken the fresh workspace already.
    ``network`` and ``packages`` (versions by name) are the sandbox's.
    Steps are done one at a time."""

    def __init__(
        self,
        *,
        task: Task,
        workspace: Workspace,
        connection: Connection,
        account: Account,
        journal: Journal,
        snapshots: Snapshots,
        trial_dir: TrialDir,
        model: Model | None,
        scripts: Callable[[Literal["baseline", "reference"]], Sequence[Action]],
        on_runaway: Callable[[], NoReturn],
        programs: Programs | None = None,
        person: Person | None = None,
        helper: Person | None = None,
        network: bool = True,
        packages: Mapping[str, str] = NOTHING_KNOWN,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._task = task
        self._account = account
        self._journal = journal
        self._snapshots = snapshots
        self._recorder = StepRecorder(journal, snapshots, account, now)
        self._model = model
        self._scripts = scripts
        self._on_runaway = on_runaway
        self._programs = programs or Programs(connection, account, trial_dir)
        self._now = now
        self._trial_dir = trial_dir
        self._log_dir = trial_dir.logs
        self._person = person
        self._context = ActionContext(
            workspace,
            connection,
            account,
            trial_dir,
            model,
            task.resources,
            network=network,
            helper=helper,
        )
        self._packages = packages
        self._definitions = definitions()
        self._specs = {name: definition.spec for name, definition in self._definitions.items()}
        self._backups: list[dict[str, tuple[str | None, ...]]] = [{}]
        self._over: TrialOver | None = None
        self._refused = 0
        self._lock = threading.Lock()
        self.submitted = False
        """True once the final answer was given."""

    # --- what the agent sees ---

    @property
    def task_description(self) -> str:
        """The task's text, the trial's limits and what the sandbox has."""
        return task_text(
            self._task, self._account.budget, network=self._context.network, found=self._packages
        )

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """All actions by name."""
        return self._specs

    @property
    def model(self) -> Model:
        """The metered model client. Raises ConfigError when the run names no model."""
        if self._model is None:
            raise ConfigError(
                "this run names no model for the agent; give one with --mlab-model=NAME"
            )
        return self._model

    @property
    def person(self) -> Person:
        """The person at the terminal. Raises ConfigError in a run without a terminal."""
        if self._person is None:
            raise ConfigError("this run has no terminal; start it with pytest, in a terminal")
        return self._person

    @property
    def budget(self) -> Budget:
        """The limits."""
        return self._account.budget

    @property
    def ledger(self) -> Ledger:
        """What has been used, up to now."""
        return self._account.ledger

    @property
    def history(self) -> Sequence[Step]:
        """All steps so far."""
        return tuple(self._recorder.history)

    @property
    def log_dir(self) -> Path:
        """A folder for the agent's own notes, outside the workspace."""
        return self._log_dir

    def script(self, name: Literal["baseline", "reference"]) -> Sequence[Action]:
        """A task's own list of actions: for the control agents only."""
        return self._scripts(name)

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write an agent's own event to the trace. Values that are not JSON become text, long data
        are cut."""
        self._recorder.note(kind, data)

    # --- a step ---

    def execute(self, action: Action, *, timeout: float | None = None) -> Observation:
        """Do one step. Mistakes come back as observations with ``ok`` False and are steps like all
        others; what it runs is stopped after ``timeout`` seconds.

        Raises BudgetExhausted when a limit is reached, TrialOver after the final answer,
        ProviderError when a model that an action needs cannot be reached, SandboxError, StoreError.
        """
        with self._lock:
            self._check()
            index = self._context.step = self._account.charge_step()
            # The step is charged before it is done. MeteredModel therefore lets the last step's own
            # calls of the edit and fast models pass.
            self._context.timeout = timeout
            begin = time.monotonic()
            action = as_meant(self._definitions, action)
            try:
                with self._account.doing(str(action.name)[:_SHOWN_NAME]):
                    answer = perform(self._definitions, self._context, action)
            except MlabError as error:
                self._record_failed(index, action, error, begin)
                raise
            observation = self._record(index, action, answer, begin)
            if answer.done:
                self.submitted = True
                self._over = TrialOver("the trial is over: the final answer was given")
            return observation

    def run_program(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        patience: float = 10.0,
    ) -> Execution:
        """Run a program in the sandbox; see :class:`pytest_mlab.core.agent_api.Environment`."""
        with self._lock:
            self._check()
        # The lock is not held while a program with a model runs: each of its model calls takes it
        # for a step of its own.
        words = self._programs.argv(argv)
        begin = time.monotonic()
        if self._programs.has_model:
            with self._account.doing(f"{PROGRAM}{os.path.basename(words[0])}"):
                ran = self._programs.run(words, env or {}, stdin, patience, self._model_step)
            self._recorder.program(words, ran, begin)
        else:
            with self._lock:
                index = self._context.step = self._account.charge_step()
                ran = self._programs.run(words, env or {}, stdin, patience, self._model_step)
                action = Action("Run Program", {"argv": shortened_words(words)})
                self._record(index, action, _answer(ran), begin)
        if ran.over is not None:
            # The exception was raised in another thread already. A second raise would add to its
            # traceback, which keeps that thread's frames alive.
            raise ran.over.with_traceback(None)
        return ran.done

    def put_file(self, name: str, content: bytes) -> str:
        """Write a file for programs into the sandbox, outside the workspace; its path inside.
        Raises SandboxError."""
        return self._programs.put_file(name, content)

    def _model_step(self, about: Mapping[str, Any], call: Call) -> ModelReply:
        """A program's model call as a step. Raises what the call does, BudgetExhausted and
        TrialOver."""
        with self._lock:
            self._check()
            begin, action = time.monotonic(), Action("Model Call", about)
            try:
                reply = call(self.model)
            except MlabError as error:
                self._record_failed(self._next(), action, error, begin)
                raise
            self._record(self._next(), action, ActionAnswer(said(reply)), begin)
            return reply

    def _next(self) -> int:
        """Charge one step more. A model call is charged after it was made: before, the last step of
        the budget would refuse its own call."""
        self._context.step = self._account.charge_step()
        return self._context.step

    def _check(self) -> None:
        # The first reason stays the reason: a later check could find another limit used up as well.
        if self._over is None:
            try:
                self._account.check()
            except BudgetExhausted as error:
                self._over = error
            else:
                return
        self._refused += 1
        # An agent that catches every exception would spin here until its time is over.
        if self._refused > RUNAWAY:
            self._on_runaway()
        raise self._over.with_traceback(None)

    def _record(
        self, index: int, action: Action, answer: ActionAnswer, begin: float
    ) -> Observation:
        observation = self._recorder.step(index, action, answer, begin)
        # One entry for each step, because restore() brings back what Undo Edit Script knew at that
        # step. Tuples, because the lists go on changing.
        self._backups.append({name: tuple(kept) for name, kept in self._context.backups.items()})
        return observation

    def _record_failed(self, index: int, action: Action, error: MlabError, begin: float) -> None:
        """Record a step that raised; the error passes on to the agent."""
        answer = ActionAnswer(f"{type(error).__name__}: {error}", ok=False)
        self._record(index, action, answer, begin)
        if isinstance(error, TrialOver):
            self._over = error

    def cancel(self) -> None:
        """Stop what the step that another thread waits for runs in the sandbox."""
        # Without the lock: the step that is to be stopped holds it.
        self._context.connection.cancel()

    # --- going back ---

    def restore(self, step: int) -> tuple[str, ...]:
        """Make the workspace what it was after ``step``; see
        :class:`pytest_mlab.core.agent_api.Environment`.

        An event before it names the step: when the process dies in the middle, the finish phase
        reads it and completes the restoring before it freezes the workspace."""
        with self._lock:
            self._check()
            done = len(self._recorder.history)
            if not 0 <= step <= done:
                raise ValueError(
                    f"step {step!r} was not done: the trial has steps 1 to {done}, 0 is fresh"
                )
            begin = time.monotonic()
            workspace, store = self._context.workspace, self._snapshots.store
            wanted = moment(self._trial_dir, store, step)
            self._journal.write(WorkspaceRestoring(t=self._now(), step=step, snapshot=wanted.id))
            missing = bring_back(
                workspace.root,
                wanted.tree,
                self._snapshots.tree(),
                store=store,
                keep=workspace.untouchable,
                open_public=workspace.open_public,
            )
            self._context.backups = {name: list(kept) for name, kept in self._backups[step].items()}
            self._recorder.restored(step, missing, begin)
            return missing


def _answer(ran: ProgramRun) -> ActionAnswer:
    done = ran.done
    return ActionAnswer(
        ran.text or "(nothing was printed)",
        ok=done.exit_status == 0,
        exit_status=done.exit_status,
        output_file=ran.output_file,
        output_bytes=done.output_bytes,
        killed_for=done.killed_for,
    )
