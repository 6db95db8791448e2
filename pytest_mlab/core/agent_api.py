"""The contract between a trial and an agent: the environment, the agent, and a person at the
terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
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
    """The person at the terminal from which the run was started."""

    def tell(self, text: str) -> None:
        """Show ``text``."""
        ...

    def ask(self, prompt: str) -> str:
        """The line that they enter. Raises EOFError for Ctrl-D and when the terminal is gone,
        KeyboardInterrupt for Ctrl-C, BudgetExhausted when the trial's time is over first."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Inside the block Ctrl-C does not kill the process; ``ask`` raises KeyboardInterrupt."""
        ...

    def interrupting(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """Inside the block Ctrl-C calls ``stop``, in another thread."""
        ...

    @property
    def has_editor(self) -> bool:
        """Whether :meth:`edit` can be used."""
        ...

    def edit(self, text: str, name: str) -> str:
        """``text``, edited in their editor; ``name`` is the file's. Raises ConfigError."""
        ...


class Environment(Protocol):
    """What an agent sees of a trial."""

    @property
    def task_description(self) -> str:
        """The task's text, with metric, direction, limits, and what the sandbox has."""
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
        """The person at the terminal. Raises ConfigError in a run without a terminal."""
        ...

    @property
    def budget(self) -> Budget:
        """The limits."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The use so far, wall time up to now included."""
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
        the trial has ended and BudgetExhausted when a limit was reached. A command in the sandbox
        is stopped after ``timeout`` seconds, at the latest when the trial's time is over."""
        ...

    def cancel(self) -> None:
        """Stop the command in the sandbox of the step that another thread waits for."""
        ...

    def restore(self, step: int) -> Sequence[str]:
        """Bring the workspace back to its state after ``step`` (0: the fresh one), and Undo Edit
        Script too. This is not a step; its time counts.

        Read-only files and mounted data stay as they are, and so do the variables of the Python
        REPL, the notes in ``log_dir`` and ``history``. Returns the paths of files that are missing
        because their content was not kept (see ``--mlab-snapshot-file-mb``). Raises ValueError for
        a step that was not done, TrialOver, BudgetExhausted and StoreError."""
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
        keys of the agent's ``program_files`` are replaced by the paths of those files in the
        sandbox. ``output`` of the result is the end of what the program printed. Once the budget is
        used up, further calls are refused, the program is killed after ``patience`` seconds, and
        BudgetExhausted is raised. Raises TrialOver, ProviderError, SandboxError, and
        RequirementMissing when the sandbox has no such program."""
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


# isinstance() then checks that the names exist, and not their signatures.
@runtime_checkable
class Agent(Protocol):
    """The class under test, with ``needs_model`` and a constructor without arguments.

    It may have ``requirements``, a tuple of packages as pip takes them: where one is absent, its
    trials are skipped with the command that installs it. An agent that talks to the person at the
    terminal has ``interactive = True``. An agent that runs a program in the sandbox may have the
    following (its ``requirements`` may be the instance's, and ``requirements_fix`` the command that
    installs them):

    ``needs_endpoint = True``
        the trial's model is offered to that program over HTTP;
    ``model_optional = True``
        it also works without a model; ``needs_model`` then counts as False;
    ``program``
        of the instance: the program that must be installed in the sandbox;
    ``program_files(self, rootdir: Path) -> Mapping[str, Path]``
        files and folders of the host that the sandbox shows read-only, by their names in the
        program's arguments. The agent's digest covers them. Raises ConfigError.
    """

    needs_model: bool

    def run(self, env: Environment) -> Awaitable[None] | None:
        """Work until the task is done; returning, raising TrialOver and a Final Answer all end the
        trial. It may be ``async``: asyncio runs it."""
        ...
