"""Contracts with models: messages, requests and replies, a provider's client, and the model of an
agent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage

Role = Literal["main", "edit", "fast"]


@dataclass(frozen=True)
class ToolCall:
    """An action that a model asks for. ``id`` ties the answer to it; ``arguments`` is the JSON text
    as the model wrote it, which need not parse; ``name`` is an action's name, or the unknown
    name that the model wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """One chat message. An assistant's may hold ``tool_calls``; a message of the role ``tool``
    answers the one whose id is ``tool_call_id``."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    reasoning: tuple[Mapping[str, Any], ...] = ()
    """The thinking that came with an assistant's message, as :attr:`ModelReply.reasoning` gave it.
    Providers want it back unchanged beside tool calls."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    """The content in parts of the chat completions API, where text alone would lose something
    (images, ``cache_control``); ``content`` holds their text. Empty: ``content`` is all."""


@dataclass(frozen=True)
class ModelRequest:
    """A completion to ask for; None leaves the provider's default. ``timeout`` bounds one attempt,
    in seconds; ``deadline`` (from ``time.monotonic()``) bounds all attempts and waits together.
    ``tools`` are what the model may call, of which it must call one when ``must_call``; ``schema``
    is a JSON schema that the answer's text must follow; ``extra`` are further parameters by
    litellm's names (``top_p``, ``reasoning_effort`` …). The first ``free_wait`` seconds of waiting
    (between attempts, and for the run's limits) move the ``deadline`` by what they last. Without
    ``may_fall_back`` a request whose tools the provider refuses fails, instead of being asked again
    with tools by text."""

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
    may_fall_back: bool = True

    def end(self, waited: float) -> float:
        """The deadline after ``waited`` seconds of waiting; infinite without one."""
        return math.inf if self.deadline is None else self.deadline + min(waited, self.free_wait)


@dataclass(frozen=True)
class ModelReply:
    """A model's answer. ``cost`` in dollars, None when the price is unknown; ``waited`` is the part
    of ``seconds`` spent between attempts and for the limits that the run's workers share."""

    text: str
    model: str
    usage: Usage
    cost: float | None
    seconds: float
    retries: int = 0
    waited: float = 0.0
    finish_reason: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: tuple[Mapping[str, Any], ...] = ()
    """The model's thinking, one mapping a block: ``{"type": "thinking", "thinking": …,
    "signature": …}`` (no signature where the provider gives plain text), ``{"type":
    "redacted_thinking", "data": …}``, ``{"type": "reasoning", …}`` as the responses API has it,
    ``{"type": "reasoning.…", …}`` as OpenRouter has it, or ``{"type": "tool_call", "id": …, …}``
    with what a provider adds to the call of this id. Opaque: it is handed back as it came."""
    remark: str = ""
    """A deviation from the request, such as tools by text because the provider refused them."""
    fell_back: bool = False
    """The tools went by text, because the provider had refused them at this call or before."""


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a model, known before it is called: its litellm name, whether it takes tools
    natively (others get them by a text protocol), how many tokens fit into a prompt, and how many
    an answer may have (None: unknown); ``images`` is what the user says about them (None:
    nothing)."""

    name: str
    native_tools: bool
    context: int | None
    max_output: int | None = None
    images: bool | None = None


class ModelClient(Protocol):
    """Talks to providers. Raises the leaves of :class:`pytest_mlab.errors.ModelError`."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """One completion, retried within bounds."""
        ...

    def facts(self, model: str) -> ModelFacts:
        """The facts about ``model``."""
        ...


class Model(Protocol):
    """The model that an agent uses: a client that charges the trial's ledger and writes every call
    to the trace."""

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
        may_fall_back: bool = True,
    ) -> ModelReply:
        """One completion by the model that plays ``role``. With ``tools`` the reply may hold
        ``tool_calls``, from any model; ``schema`` asks for a text that is JSON of that schema;
        ``extra`` are further parameters by litellm's names; without ``may_fall_back`` a refusal of
        tools is an error, and not a reason to ask again with tools by text. Raises ModelError or
        BudgetExhausted."""
        ...

    def facts(self, role: Role = "main") -> ModelFacts:
        """The facts about the model that plays ``role``."""
        ...
