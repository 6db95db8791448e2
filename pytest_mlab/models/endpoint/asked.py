"""A program's request, whichever API it speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, Model, ModelReply, Role
from pytest_mlab.models.endpoint.body import Json
from pytest_mlab.models.endpoint.offered import Kind
from pytest_mlab.models.endpoint.suited import needs_facts, suited
from pytest_mlab.models.takes import takes


@dataclass(frozen=True)
class Asked:
    """One completion. ``model`` is the name that the program used, ``role`` that of the trial's
    model which answers; ``left_out`` says what of the request does not go to the model; ``places``
    are those of each message's blocks; ``kinds`` are the tools that are no functions in the
    program's eyes; ``shows_reasoning``: the program does not forbid it in the answer;
    ``on_response`` is told the response of an API that keeps them."""

    model: str
    messages: tuple[Message, ...]
    role: Role = "main"
    places: tuple[tuple[str, ...], ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[ActionSpec, ...] = ()
    must_call: bool = False
    schema: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    usage_in_stream: bool = False
    left_out: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    shows_reasoning: bool = True
    on_response: Callable[[Json], None] = lambda response: None

    @property
    def thinks(self) -> bool:
        """Whether the request asks for reasoning."""
        thinking = self.extra.get("thinking")
        if thinking:
            return bool(thinking.get("type") != "disabled")
        return "reasoning_effort" in self.extra

    def suited_to(self, model: Model) -> Asked:
        """As the trial's model takes it; ``left_out`` says what is lost."""
        if not needs_facts(self.messages, self.tools, self.extra):
            return self
        places = self.places or ((),) * len(self.messages)
        known = model.facts(self.role)
        facts = takes(known.name).with_images(known.images)
        found = suited(self.messages, self.tools, self.extra, places, facts)
        return replace(
            self,
            messages=found.messages,
            places=(),
            tools=found.tools,
            extra=found.extra,
            left_out=(*self.left_out, *found.left_out),
        )

    def complete(self, model: Model) -> ModelReply:
        """The answer of the trial's model. Raises what
        :meth:`pytest_mlab.core.model_api.Model.complete` does.

        A program bounds answers by the longest one of the model that it asks for. Where the trial's
        model can give less, its provider would refuse that bound, so it is lowered."""
        max_tokens = self.max_tokens
        if max_tokens:
            max_tokens = min(max_tokens, model.facts(self.role).max_output or max_tokens)
        return model.complete(
            self.messages,
            role=self.role,
            temperature=self.temperature,
            max_tokens=max_tokens,
            stop=self.stop,
            tools=self.tools,
            must_call=self.must_call,
            schema=self.schema,
            extra=self.extra,
            # The program speaks of tools by itself: by text they would be another protocol.
            may_fall_back=False,
        )
