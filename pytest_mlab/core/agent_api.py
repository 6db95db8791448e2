"""What an agent and a trial are to each other: the environment, the agent, and a person at the
terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pytest_mlab.core.actions import Action, ActionSpec, Observation, Step
from pytest_mlab.core.budget import Budget, Ledger
from pytest_mlab.core.model_api import Model
from pytest_mlab.core.sandbox_api import Execution


@dataclass(frozen=True)
class Terminal:
    """Where a person sits: the device's name, their editor's command ('' without) and the
    terminal's type."""

    device: str
    editor: str = ""
    term: str = ""


class Person(Protocol):
    """Who sits at the terminal that the run was started from."""

    def tell(self, text: str) -> None:
        """Show ``text``."""
        ...

    def ask(self, prompt: str) -> str:
        """The line that they enter. Raises EOFError for ctrl-D and when the terminal is gone,
        KeyboardInterrupt for ctrl-C, BudgetExhausted when the trial's time is over first."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Until the end of the block ctrl-C ends no process: it is raised from a question."""
        ...

    def interrupting(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Until the end of the block ctrl-C calls ``stop``, in another thread."""
        ...

    @property
    def has_editor(self) -> bool:
        """Whether :meth:`edit` can be used."""
        ...

    def edit(self, text: str, name: str) -> str:
        """What they make of ``text`` in their editor; ``name`` is a file's. Raises ConfigError."""
        ...


class Environment(Protocol):
    """What an agent sees of a trial."""

    @property
    def task_description(self) -> str:
        """The task's text, with metric, direction and limits."""
        ...

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """All actions by name."""
        ...

    @property
    def model(self) -> Model:
        """The metered model client. Raises ConfigError when the run names no model."""
        ...

    @property
    def person(self) -> Person:
        """Who sits at the terminal. Raises ConfigError in a run in which nobody is asked."""
        ...

    @property
    def budget(self) -> Budget:
        """The limits."""
        ...

    @property
    def ledger(self) -> Ledger:
        """What has been used, up to now."""
        ...

    @property
    def history(self) -> Sequence[Step]:
        """All steps so far."""
        ...

    @property
    def log_dir(self) -> Path:
        """A folder of the trial for the agent's own notes, outside the workspace (the research log
        lives here)."""
        ...

    def execute(self, action: Action, *, timeout: float | None = None) -> Observation:
        """Do one step. Mistakes come back as observations with ``ok`` False; raises TrialOver when
        the trial has ended and BudgetExhausted when a limit was reached. What the step runs in the
        sandbox is stopped after ``timeout`` seconds, and with the trial's time in any case."""
        ...

    def cancel(self) -> None:
        """Stop what the step that another thread waits for runs in the sandbox."""
        ...

    def restore(self, step: int) -> Sequence[str]:
        """Make the workspace what it was after ``step`` (0: the fresh one), Undo Edit Script
        included. No step is counted; the time it takes is.

        Read-only files and mounted data stay as they are, and so do the variables of the Python
        REPL, the notes in ``log_dir`` and ``history``. Returns the paths of files that are not
        there again because their content was not kept (see ``--mlab-snapshot-file-mb``). Raises
        ValueError for a step that was not done, TrialOver, BudgetExhausted and StoreError."""
        ...

    def run_program(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        patience: float = 10.0,
    ) -> Execution:
        """Run a program in the sandbox, in the workspace, until it ends; for agents with
        ``needs_endpoint``.

        Its environment leads OpenAI's and Anthropic's clients to the trial's model, and each of its
        model calls is a step. Without a model the whole run is one step. Words of ``argv`` that are
        keys of the agent's ``program_files`` become the places where those are seen; ``output`` of
        the result is the end of what it printed. Once the budget is used up it is refused further
        calls and killed after ``patience`` seconds, and BudgetExhausted is raised. Raises
        TrialOver, ProviderError, SandboxError, and RequirementMissing when there is no such program
        inside."""
        ...

    def put_file(self, name: str, content: bytes) -> str:
        """Write a file for programs into the sandbox, outside the workspace; its path inside.
        Raises SandboxError."""
        ...

    def script(self, name: Literal["baseline", "reference"]) -> Sequence[Action]:
        """A task's own list of actions: for the control agents only."""
        ...

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Write an agent's own event to the trace (prompt parts, parse failures, plans)."""
        ...


@runtime_checkable
class Agent(Protocol):
    """What is under test. A class with ``needs_model`` and a constructor without arguments.

    It may have ``requirements``, a tuple of packages as pip takes them: where one is absent, its
    trials are skipped with the command that installs it; ``interactive = True``, when it talks to
    who sits at the terminal; and, where it runs a program of its own in the sandbox
    (``requirements`` may then be the instance's, and ``requirements_fix`` the command that
    installs them):

    ``needs_endpoint = True``
        the trial's model is offered to that program over HTTP;
    ``model_optional = True``
        without a model it works as well, then with ``needs_model`` taken for False;
    ``program``
        an instance's: what it runs, where that has to be installed in the sandbox;
    ``program_files(self, rootdir: Path) -> Mapping[str, Path]``
        files and folders of the host that the sandbox shows read-only, by the words that programs'
        arguments have for them. The agent's digest covers them. Raises ConfigError.
    """

    needs_model: bool

    def run(self, env: Environment) -> None:
        """Work until the task is done; returning, raising TrialOver and a Final Answer all end the
        trial."""
        ...
