"""What an agent sees of a trial: it does steps, enforces the budget, and records everything."""

from __future__ import annotations

import json
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
from pytest_mlab.store.events import (
    Note,
    ProgramEnded,
    StepDone,
    WorkspaceRestored,
    WorkspaceRestoring,
)
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.moments import moment
from pytest_mlab.store.snapshots import Change, Snapshots
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.actions import DEFINITIONS, SPECS
from pytest_mlab.trial.actions.base import Answer, Context, perform
from pytest_mlab.trial.program import Call, Programs, Ran, said, shortened_words
from pytest_mlab.trial.restoring import bring_back
from pytest_mlab.trial.workspace import Workspace

RUNAWAY = 1000
"""Refused actions after the trial's end that are taken for an agent which will not stop."""

_NOTE_LIMIT = 200_000


class TrialEnvironment:
    """Implements :class:`pytest_mlab.core.agent_api.Environment` for one trial.

    ``scripts`` gives a task's own lists of actions by name; ``on_runaway`` ends the process of an
    agent that goes on after the end. ``snapshots`` has taken the fresh workspace already. One step
    is done at a time."""

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
        now: Callable[[], float] = time.time,
    ) -> None:
        self._task = task
        self._account = account
        self._journal = journal
        self._snapshots = snapshots
        self._model = model
        self._scripts = scripts
        self._on_runaway = on_runaway
        self._programs = programs or Programs(connection, account, trial_dir)
        self._now = now
        self._trial_dir = trial_dir
        self._log_dir = trial_dir.logs
        self._person = person
        self._context = Context(
            workspace, connection, account, trial_dir, model, task.resources, helper=helper
        )
        self._history: list[Step] = []
        self._backups: list[dict[str, tuple[str | None, ...]]] = [{}]
        self._over: TrialOver | None = None
        self._refused = 0
        self._lock = threading.Lock()
        self.submitted = False
        """True once the final answer was given."""

    # --- what the agent sees ---

    @property
    def task_description(self) -> str:
        """The task's text and the trial's limits."""
        return f"{self._task.description.rstrip()}\n\n{limits_text(self._account.budget)}\n"

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """All actions by name."""
        return SPECS

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
        """Who sits at the terminal. Raises ConfigError in a run in which nobody is asked."""
        if self._person is None:
            raise ConfigError(
                "nobody sits at a terminal in this run; start it with pytest, in a terminal"
            )
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
        return tuple(self._history)

    @property
    def log_dir(self) -> Path:
        """A folder for the agent's own notes, outside the workspace."""
        return self._log_dir

    def script(self, name: Literal["baseline", "reference"]) -> Sequence[Action]:
        """A task's own list of actions: for the control agents only."""
        return self._scripts(name)

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write an agent's own event to the trace; what is no JSON is written as text, what is very
        long is cut."""
        text = json.dumps(dict(data), default=repr, skipkeys=True)
        plain = json.loads(text) if len(text) <= _NOTE_LIMIT else {"cut": text[:_NOTE_LIMIT]}
        self._journal.write(Note(t=self._now(), kind=str(kind), data=plain))

    # --- a step ---

    def execute(self, action: Action, *, timeout: float | None = None) -> Observation:
        """Do one step. Mistakes come back as observations with ``ok`` False and are steps like all
        others; what it runs is stopped after ``timeout`` seconds.

        Raises BudgetExhausted when a limit is reached, TrialOver after the final answer,
        ProviderError when a model that an action needs is out of reach, SandboxError, StoreError.
        """
        with self._lock:
            self._check()
            index = self._context.step = self._account.charge_step()
            self._context.timeout = timeout
            begin = time.monotonic()
            try:
                answer = perform(DEFINITIONS, self._context, action)
            except MlabError as error:
                self._record(
                    index, action, Answer(f"{type(error).__name__}: {error}", ok=False), begin
                )
                if isinstance(error, TrialOver):
                    self._over = error
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
        words = self._programs.argv(argv)
        begin = time.monotonic()
        if self._programs.has_model:
            ran = self._programs.run(words, env or {}, stdin, patience, self._model_step)
            self._record_program(words, ran, time.monotonic() - begin)
        else:
            with self._lock:
                index = self._context.step = self._account.charge_step()
                ran = self._programs.run(words, env or {}, stdin, patience, self._model_step)
                self._record(
                    index,
                    Action("Run Program", {"argv": shortened_words(words)}),
                    _answer(ran),
                    begin,
                )
        if ran.over is not None:
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
                self._record(
                    self._next(),
                    action,
                    Answer(f"{type(error).__name__}: {error}", ok=False),
                    begin,
                )
                if isinstance(error, TrialOver):
                    self._over = error
                raise
            self._record(self._next(), action, Answer(said(reply)), begin)
            return reply

    def _next(self) -> int:
        """One step more, charged after a model call: the call itself is refused when no steps are
        left."""
        self._context.step = self._account.charge_step()
        return self._context.step

    def _record_program(self, argv: Sequence[str], ran: Ran, seconds: float) -> None:
        self._journal.write(
            ProgramEnded(
                t=self._now(),
                argv=shortened_words(argv),
                exit_status=ran.done.exit_status,
                killed_for=ran.done.killed_for,
                output=ran.text,
                output_file=ran.output_file,
                output_bytes=ran.done.output_bytes,
                seconds=seconds,
            )
        )

    def _check(self) -> None:
        if self._over is None:
            try:
                self._account.check()
            except BudgetExhausted as error:
                self._over = error
            else:
                return
        self._refused += 1
        if self._refused > RUNAWAY:
            self._on_runaway()
        raise self._over.with_traceback(None)

    def _record(self, index: int, action: Action, answer: Answer, begin: float) -> Observation:
        if (
            not answer.text.isascii()
        ):  # names of files may be no text, and neither a trace nor a model takes those
            answer = answer._replace(text=answer.text.encode("utf-8", "replace").decode())
        change = self._snapshots.take()
        seconds = time.monotonic() - begin
        self._journal.write(
            StepDone.model_construct(
                t=self._now(),
                index=index,
                action=str(action.name)[:200],
                args=_plain(action.args),
                observation=answer.text,
                ok=answer.ok,
                exit_status=answer.exit_status,
                output_file=answer.output_file,
                output_bytes=answer.output_bytes,
                killed_for=answer.killed_for,
                seconds=seconds,
                snapshot=change.id,
                set=change.set,
                deleted=change.deleted,
                ledger=self._account.ledger,
            )
        )
        self._note_snapshot(change)
        observation = Observation(
            answer.text, answer.ok, answer.exit_status, answer.output_file, answer.done
        )
        self._history.append(Step(index, action, observation, seconds))
        self._backups.append({name: tuple(kept) for name, kept in self._context.backups.items()})
        return observation

    def cancel(self) -> None:
        """Stop what the step that another thread waits for runs in the sandbox."""
        self._context.connection.cancel()

    # --- going back ---

    def restore(self, step: int) -> tuple[str, ...]:
        """Make the workspace what it was after ``step``; see
        :class:`pytest_mlab.core.agent_api.Environment`.

        The event before says what is being done: when the process dies in the middle of it, who
        freezes the workspace finishes it first."""
        with self._lock:
            self._check()
            if not 0 <= step <= len(self._history):
                raise ValueError(
                    f"step {step!r} was not done: the trial has steps 1 to {len(self._history)}, 0"
                    " is fresh"
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
            self._record_restored(step, missing, begin)
            return missing

    def _record_restored(self, step: int, missing: tuple[str, ...], begin: float) -> None:
        change = self._snapshots.take()
        self._journal.write(
            WorkspaceRestored(
                t=self._now(),
                step=step,
                snapshot=change.id,
                set=change.set,
                deleted=change.deleted,
                missing=[path.encode("utf-8", "replace").decode() for path in missing],
                seconds=time.monotonic() - begin,
                ledger=self._account.ledger,
            )
        )
        self._note_snapshot(change)

    def _note_snapshot(self, change: Change) -> None:
        for text in change.notes:
            self._journal.write(Note(t=self._now(), kind="snapshot", data={"text": text}))


def _answer(ran: Ran) -> Answer:
    done = ran.done
    return Answer(
        ran.text or "(nothing was printed)",
        ok=done.exit_status == 0,
        exit_status=done.exit_status,
        output_file=ran.output_file,
        output_bytes=done.output_bytes,
        killed_for=done.killed_for,
    )


def limits_text(budget: Budget) -> str:
    """The limits in a sentence for the agent."""
    parts = [f"{budget.max_steps} steps (actions)", f"{_duration(budget.max_seconds)} of time"]
    if budget.max_tokens is not None:
        parts.append(f"{budget.max_tokens} tokens")
    if budget.max_cost is not None:
        parts.append(f"${budget.max_cost:g}")
    return (
        f"Your limits: {', '.join(parts)}. When one is reached, the trial ends and the workspace is"
        " scored as it is. Paths are relative to the workspace."
    )


def _duration(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.3g} hours"
    return f"{seconds / 60:.3g} minutes" if seconds >= 120 else f"{seconds:.3g} seconds"


def _plain(args: Any) -> dict[str, Any]:
    """An action's arguments for the trace; what is no JSON as text."""
    if isinstance(args, dict) and all(
        type(k) is str and type(v) in (str, int, float, bool) for k, v in args.items()
    ):
        return args
    try:
        return dict(json.loads(json.dumps(dict(args), default=repr, skipkeys=True)))
    except (TypeError, ValueError):
        return {"unusable": repr(args)[:2000]}
