"""The parts of every action: its spec, the check of its arguments, its answer."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pytest_mlab.core.actions import Action, ActionSpec
from pytest_mlab.core.agent_api import Person
from pytest_mlab.core.calls import action_name, fitting, unknown
from pytest_mlab.core.model_api import Model
from pytest_mlab.core.sandbox_api import Connection
from pytest_mlab.core.task import Resources
from pytest_mlab.errors import BadRequestError, ConfigError, ContextWindowError, MlabError
from pytest_mlab.store.content import copy_content
from pytest_mlab.store.trialdir import TrialDir
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.actions.file_text import NotText
from pytest_mlab.trial.workspace import PathRefused, Workspace

SHOWN = 30_000
"""Characters of an observation at most; what is longer is cut in the middle."""


class ActionError(MlabError):
    """An action could not be done; the message is for the agent."""


class ActionAnswer(NamedTuple):
    """The result of an action: the observation, and further facts for the trace."""

    text: str
    ok: bool = True
    exit_status: int | None = None
    output_file: str = ""
    done: bool = False
    output_bytes: int = 0
    killed_for: str = ""


@dataclass
class ActionContext:
    """The trial as actions see it.

    ``limits`` and ``network`` are the sandbox's. ``step`` is the number of the current step, which
    may run a command for ``timeout`` seconds (None: as long as the trial has time). ``backups``
    names the versions that edits replaced, by file, oldest first (None: there was no file).
    ``helper`` answers Request Help."""

    workspace: Workspace
    connection: Connection
    account: Account
    trial: TrialDir
    model: Model | None
    limits: Resources
    step: int = 0
    timeout: float | None = None
    backups: dict[str, list[str | None]] = field(default_factory=dict)
    backup_count: int = 0
    network: bool = True
    helper: Person | None = None

    def keep(self, fd: int) -> str:
        """Copy an open file to the trial's backups; its name there, a number that only grows."""
        self.backup_count += 1
        name = f"{self.backup_count:04d}"
        with open(self.trial.backups / name, "x+b") as file:
            copy_content(fd, file.fileno())
            # Undoing an edit makes a file again that was deleted meanwhile.
            os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IRUSR)
        return name


ActionFunction = Callable[["ActionContext", Mapping[str, Any]], "ActionAnswer | str"]


@dataclass(frozen=True)
class ActionDefinition:
    """An action: its spec, which agents see, the function that does it, and its place among the
    others."""

    spec: ActionSpec
    run: ActionFunction
    order: int


def action(
    name: str,
    summary: str,
    *,
    returns: str,
    order: int = 1000,
    optional: Sequence[str] = (),
    **arguments: tuple[type, str],
) -> Callable[[ActionFunction], ActionDefinition]:
    """Make the decorated function an action.

    ``name``, ``summary`` (a sentence) and ``returns`` (what the observation holds) are for the
    agent. ``arguments`` are ``name=(str or int, description)``; those in ``optional`` may be left
    out. The function gets them checked, by name. It returns the observation's text, or an
    :class:`ActionAnswer`, and raises :class:`ActionError` with a text for the agent. Agents see
    actions by ``order``: those of pytest-mlab have 10 to 170."""
    schema = {
        "type": "object",
        "properties": {
            argument: {"type": "integer" if kind is int else "string", "description": text}
            for argument, (kind, text) in arguments.items()
        },
        "required": [argument for argument in arguments if argument not in optional],
        "additionalProperties": False,
    }

    def define(run: ActionFunction) -> ActionDefinition:
        return ActionDefinition(ActionSpec(name, summary, schema, returns), run, order)

    return define


def as_meant(definitions: Mapping[str, ActionDefinition], action: Action) -> Action:
    """``action`` by the name and with the arguments that it means; as it is when it cannot be
    done."""
    definition = definitions.get(action_name(action.name, definitions) or "")
    if definition is None:
        return action
    arguments = fitting(definition.spec, action.args)
    return Action(definition.spec.name, action.args if isinstance(arguments, str) else arguments)


def perform(
    definitions: Mapping[str, ActionDefinition], context: ActionContext, action: Action
) -> ActionAnswer:
    """Do ``action``. The agent's mistakes, and failures that it can handle, come back as answers.

    Raises ProviderError, BudgetExhausted and SandboxError.
    """
    definition = definitions.get(action_name(action.name, definitions) or "")
    if definition is None:
        return ActionAnswer(unknown(action.name, list(definitions)), ok=False)
    arguments = fitting(definition.spec, action.args)
    if isinstance(arguments, str):
        return ActionAnswer(arguments, ok=False)
    try:
        answer = definition.run(context, arguments)
    except (ActionError, NotText, PathRefused) as error:
        return ActionAnswer(f"{action.name}: {error}", ok=False)
    except ContextWindowError as error:
        return ActionAnswer(
            f"{action.name}: the text is too long for the model ({error}); work on a part of it",
            ok=False,
        )
    except BadRequestError as error:
        return ActionAnswer(f"{action.name}: the model refused the request ({error})", ok=False)
    # A full disk or a name that is too long for the file system is the agent's to handle and must
    # not end the trial.
    except OSError as error:
        return ActionAnswer(f"{action.name}: {error.strerror or error}", ok=False)
    return ActionAnswer(answer) if isinstance(answer, str) else answer


def shortened(text: str, hint: str = "", limit: int = SHOWN) -> str:
    """``text``, without its middle when it is longer than ``limit`` characters; ``hint`` says where
    the whole text is."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[... {left_out} characters left out{hint} ...]\n{text[-half:]}"


def ask(
    context: ActionContext, prompt: str, *, role: str, max_tokens: int | None = None
) -> tuple[str, str]:
    """The reply of the edit or fast model, and its finish reason. Raises ActionError without a
    model, ModelError."""
    if context.model is None:
        raise ActionError(
            "the run has no model for this action (see --mlab-model); use the other actions"
        )
    try:
        reply = context.model.complete(
            prompt,
            role="edit" if role == "edit" else "fast",
            # MLAgentBench asks its fast model at about 0, too.
            temperature=0.01,
            max_tokens=max_tokens,
        )
    except ConfigError as error:
        raise ActionError(str(error)) from None
    return reply.text, reply.finish_reason


def ask_over(
    context: ActionContext, text: str, each: Callable[[str, int, int], str], block: int
) -> list[str]:
    """The fast model's answers over blocks of ``block`` characters; ``each(block, number, of)``
    makes the prompt."""
    # An empty text is asked about once, so that callers always get an answer.
    parts = [text[start : start + block] for start in range(0, len(text), block)] or [""]
    return [
        ask(context, each(part, number, len(parts)), role="fast")[0].strip()
        for number, part in enumerate(parts, 1)
    ]
