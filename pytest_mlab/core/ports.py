"""Contracts between the parts: what an agent sees, what a sandbox and a model client offer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.task import Resources

Role = Literal["main", "edit", "fast"]
Json = dict[str, Any]


# --- actions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ActionSpec:
    """An action that an environment offers. ``schema`` is the JSON schema (an object) of its arguments."""

    name: str
    summary: str
    schema: Mapping[str, Any]
    returns: str = ""


@dataclass(frozen=True)
class Action:
    """What an agent asks for: the action's name and its arguments (JSON values by argument name)."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Observation:
    """What the environment answers.

    ``text`` is what the agent reads (long outputs are cut in the middle); ``ok`` is False for errors;
    ``exit_status`` is that of an executed script; ``output_file`` names the whole output, relative to the trial's
    folder, when ``text`` was cut; ``done`` is True after the action that ended the trial.
    """

    text: str
    ok: bool = True
    exit_status: int | None = None
    output_file: str = ""
    done: bool = False


@dataclass(frozen=True)
class Step:
    """One action and its observation; ``index`` counts from 1; ``seconds`` is the action's wall time."""

    index: int
    action: Action
    observation: Observation
    seconds: float


# --- models --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ToolCall:
    """An action that a model asks for. ``id`` ties the answer to it; ``arguments`` is the JSON text as the model wrote
    it, which need not parse; ``name`` is an action's name, or what the model wrote where it is none."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """One chat message. An assistant's may hold ``tool_calls``; a message of the role ``tool`` answers the one whose
    id is ``tool_call_id``."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True)
class ModelRequest:
    """A completion to ask for; None leaves the provider's default. ``timeout`` bounds one attempt, in seconds;
    ``deadline`` (from ``time.monotonic()``) bounds all attempts and waits together. ``tools`` are what the model may
    call, of which it must call one when ``must_call``; ``schema`` is a JSON schema that the answer's text must follow;
    ``extra`` are further parameters by litellm's names (``top_p``, ``reasoning_effort`` …). The first ``free_wait``
    seconds of waiting (between attempts, and for the run's limits) move the ``deadline`` by what they last.
    """

    model: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    timeout: float = 600.0
    deadline: float | None = None
    tools: tuple[ActionSpec, ...] = ()
    must_call: bool = False
    schema: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    free_wait: float = 0.0

    def end(self, waited: float) -> float:
        """The deadline after ``waited`` seconds of waiting; infinite without one."""
        return math.inf if self.deadline is None else self.deadline + min(waited, self.free_wait)


@dataclass(frozen=True)
class ModelReply:
    """A model's answer. ``cost`` in dollars, None when the price is unknown; ``waited`` is the part of
    ``seconds`` spent between attempts and for the limits that the run's workers share."""

    text: str
    model: str
    usage: Usage
    cost: float | None
    seconds: float
    retries: int = 0
    waited: float = 0.0
    finish_reason: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    remark: str = ""
    """What was done otherwise than asked, such as tools by text since the provider refused them."""


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model before it is called: its litellm name, whether it takes tools natively (others get
    them by a text protocol), how many tokens fit into a prompt, and how many an answer may have (None: unknown)."""

    name: str
    native_tools: bool
    context: int | None
    max_output: int | None = None


class ModelClient(Protocol):
    """Talks to providers. Raises the leaves of :class:`pytest_mlab.errors.ModelError`."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """One completion, retried within bounds."""
        ...

    def facts(self, model: str) -> ModelFacts:
        """What is known of ``model``."""
        ...


class Model(Protocol):
    """What an agent uses: a client that charges the trial's ledger and writes every call to the trace."""

    def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        role: Role = "main",
        temperature: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        tools: Sequence[ActionSpec] = (),
        must_call: bool = False,
        schema: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> ModelReply:
        """One completion by the model that plays ``role``. With ``tools`` the reply may hold ``tool_calls``, from any
        model; ``schema`` asks for a text that is JSON of that schema; ``extra`` are further parameters by litellm's
        names. Raises ModelError or BudgetExhausted."""
        ...

    def facts(self, role: Role = "main") -> ModelFacts:
        """What is known of the model that plays ``role``."""
        ...


# --- people --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terminal:
    """Where a person sits: the device's name, their editor's command ('' without) and the terminal's type."""

    device: str
    editor: str = ""
    term: str = ""


class Person(Protocol):
    """Who sits at the terminal that the run was started from."""

    def tell(self, text: str) -> None:
        """Show ``text``."""
        ...

    def ask(self, prompt: str) -> str:
        """The line that they enter. Raises EOFError for ctrl-D and when the terminal is gone, KeyboardInterrupt for
        ctrl-C, BudgetExhausted when the trial's time is over first."""
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


# --- environment and agents ----------------------------------------------------------------------------------


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
        """A folder of the trial for the agent's own notes, outside the workspace (the research log lives here)."""
        ...

    def execute(self, action: Action, *, timeout: float | None = None) -> Observation:
        """Do one step. Mistakes come back as observations with ``ok`` False; raises TrialOver when the trial has
        ended and BudgetExhausted when a limit was reached. What the step runs in the sandbox is stopped after
        ``timeout`` seconds, and with the trial's time in any case."""
        ...

    def cancel(self) -> None:
        """Stop what the step that another thread waits for runs in the sandbox."""
        ...

    def restore(self, step: int) -> Sequence[str]:
        """Make the workspace what it was after ``step`` (0: the fresh one), Undo Edit Script included. No step is
        counted; the time it takes is.

        Read-only files and mounted data stay as they are, and so do the variables of the Python REPL, the notes in
        ``log_dir`` and ``history``. Returns the paths of files that are not there again because their content was not
        kept (see ``--mlab-snapshot-file-mb``). Raises ValueError for a step that was not done, TrialOver,
        BudgetExhausted and StoreError.
        """
        ...

    def run_program(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        patience: float = 10.0,
    ) -> Execution:
        """Run a program in the sandbox, in the workspace, until it ends; for agents with ``needs_endpoint``.

        Its environment leads OpenAI's and Anthropic's clients to the trial's model, and each of its model calls is a
        step. Without a model the whole run is one step. Words of ``argv`` that are keys of the agent's
        ``program_files`` become the places where those are seen; ``output`` of the result is the end of what it
        printed. Once the budget is used up it is refused further calls and killed after ``patience`` seconds, and
        BudgetExhausted is raised.
        Raises TrialOver, ProviderError, SandboxError, and RequirementMissing when there is no such program inside.
        """
        ...

    def put_file(self, name: str, content: bytes) -> str:
        """Write a file for programs into the sandbox, outside the workspace; its path inside. Raises SandboxError."""
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

    It may have ``requirements``, a tuple of packages as pip takes them: where one is absent, its trials are skipped
    with the command that installs it; ``interactive = True``, when it talks to who sits at the terminal; and, where
    it runs a program of its own in the sandbox (``requirements`` may then be the instance's, and
    ``requirements_mend`` the command that installs them):

    ``needs_endpoint = True``
        the trial's model is offered to that program over HTTP;
    ``model_optional = True``
        without a model it works as well, then with ``needs_model`` taken for False;
    ``program``
        an instance's: what it runs, where that has to be installed in the sandbox;
    ``program_files(self, rootdir: Path) -> Mapping[str, Path]``
        files and folders of the host that the sandbox shows read-only, by the words that programs' arguments have for
        them. The agent's digest covers them. Raises ConfigError.
    """

    needs_model: bool

    def run(self, env: Environment) -> None:
        """Work until the task is done; returning, raising TrialOver and a Final Answer all end the trial."""
        ...


# --- sandboxes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mount:
    """A host path that a sandbox shows read-only at ``target`` (an absolute path, or relative to the workspace)."""

    source: Path
    target: str


@dataclass(frozen=True)
class SandboxSpec:
    """What a sandbox is to show and allow. ``workspace`` is a host folder, writable inside and the working
    directory there; ``label`` is unique on the machine (for sweeping); ``relay`` is a Unix socket of the host that
    programs inside can connect to, network or not, at ``Connection.relay_port``."""

    workspace: Path
    label: str
    mounts: tuple[Mount, ...] = ()
    resources: Resources = Resources()
    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    relay: Path | None = None


@dataclass(frozen=True)
class Execution:
    """How a command in a sandbox ended.

    ``output`` is stdout and stderr interleaved, at most ``keep`` bytes (first and last half of it, when more came);
    ``output_bytes`` is what came in all. ``exit_status`` is None when the command was killed; ``killed_for`` then
    says why: ``timeout``, ``memory``, ``pids``, ``disk``, ``lost`` (the supervisor died; it has been restarted and
    the REPL's state is gone), ``cancelled`` (by ``Connection.cancel``) or ``signal`` (the command died of a signal of
    its own, number in ``signal``).
    """

    exit_status: int | None
    output: bytes
    output_bytes: int
    seconds: float
    killed_for: Literal["", "timeout", "memory", "pids", "disk", "lost", "cancelled", "signal"] = ""
    signal: int | None = None


class Connection(Protocol):
    """An open sandbox: one supervisor program inside, spoken to over its stdin and stdout."""

    python: str
    relay_port: int
    """The port of 127.0.0.1 inside that leads to the spec's ``relay``, 0 without one; it may be another one after the
    supervisor was lost."""

    def locate(self, target: str) -> str:
        """The path inside the sandbox of a mount's target or of a path relative to the workspace ('.' is itself)."""
        ...

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        keep: int = 1 << 20,
        sink: Callable[[bytes], None] | None = None,
    ) -> Execution:
        """Run ``argv`` in a process group of its own and wait; when it ends or ``timeout`` (seconds) is over,
        everything that it started is killed. ``sink`` gets the output as it comes."""
        ...

    def repl(self, code: str, *, timeout: float | None = None, keep: int = 1 << 20) -> Execution:
        """Run ``code`` in the sandbox's persistent Python process; on a timeout that process is killed and its
        state lost."""
        ...

    def cancel(self) -> None:
        """Kill the command that another thread is waiting for, if any."""
        ...

    def close(self) -> None:
        """Kill everything inside and remove the sandbox; files of the workspace belong to the caller afterwards."""
        ...


class Sandbox(Protocol):
    """A backend. ``isolated`` is False when agent code can see and change the host; ``mounts`` is False when
    mounts below the workspace are impossible (the caller copies instead)."""

    name: str
    isolated: bool
    mounts: bool

    def check(self) -> str:
        """'' when the backend works here (a self-test of at most a second), else the reason and the way out."""
        ...

    def open(self, spec: SandboxSpec) -> Connection:
        """Start a sandbox. Raises SandboxError."""
        ...

    def sweep(self, label_prefix: str) -> int:
        """Remove what dead owners left behind; how many were removed."""
        ...
