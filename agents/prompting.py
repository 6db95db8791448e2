"""Shared by the agents: settings, and the parts of prompts (texts from the file beside an agent,
actions with their usage, the room that a model has)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Annotated

from pydantic import BaseModel, Field

from pytest_mlab import ActionSpec, Environment, MlabError, ModelReply

RESEARCH_LOG = frozenset(
    {"Append Summary to Research Log", "Retrieval from Research Log", "Reflection"}
)
"""Actions on the research log, of use only to agents that keep one."""

Temperature = Annotated[
    float | None, Field(ge=0, description="of the model; null: the provider's default")
]
ReAsks = Annotated[int, Field(ge=0, description="how often to ask again for an unusable answer")]
Nudges = Annotated[
    int, Field(ge=0, description="replies in a row without an action after which the agent stops")
]
ObservationChars = Annotated[
    int,
    Field(ge=100, description="characters of an observation above which its middle is left out"),
]


class ShownSettings(BaseModel, frozen=True, extra="forbid"):
    """Which actions a model is shown."""

    add_actions: tuple[str, ...] = Field(
        default=(), description="actions to show that are hidden otherwise"
    )
    remove_actions: tuple[str, ...] = Field(default=(), description="actions not to show")


class MeasuredSettings(ShownSettings, frozen=True, extra="forbid"):
    """Settings of an agent that measures what fits into a prompt (:class:`Room`)."""

    context_tokens: int = Field(
        default=0,
        ge=0,
        description="tokens that fit into a prompt with its answer; 0: what is known of the model",
    )


def sections(file: Path) -> dict[str, Template]:
    """The parts of a prompt file by the names in its comments (``<!-- name -->``)."""
    parts = re.split(r"(?m)^<!-- (\w+) -->\n", file.read_text(encoding="utf-8"))
    return {
        name: Template(text.strip()) for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def shown_actions(
    actions: Mapping[str, ActionSpec],
    hidden: Collection[str],
    add: Sequence[str],
    remove: Sequence[str],
) -> dict[str, ActionSpec]:
    """The actions that a model is shown: all but ``hidden``, with the settings ``add_actions`` and
    ``remove_actions``. Raises MlabError for a name in them that is not an action."""
    for setting, names in (("add_actions", add), ("remove_actions", remove)):
        for name in names:
            if name not in actions:
                raise MlabError(f"{setting}: no action {name!r}; there are {', '.join(actions)}")
    left_out = (set(hidden) - set(add)) | set(remove)
    return {name: spec for name, spec in actions.items() if name not in left_out}


def listed(actions: Mapping[str, ActionSpec]) -> str:
    """Actions with usage and result, a few lines each."""
    return "\n".join(
        f"- {name}: {spec.summary}\n  {usage(spec)}"
        + (f"\n  Gives: {spec.returns}" if spec.returns else "")
        for name, spec in actions.items()
    )


def usage(spec: ActionSpec) -> str:
    """An action's arguments as the JSON object to write."""
    arguments = {
        name: f"<{details.get('description') or details.get('type', 'a value')}>"
        for name, details in spec.schema.get("properties", {}).items()
    }
    return f"Arguments: {json.dumps(arguments, ensure_ascii=False)}"


def cut(text: str, limit: int) -> str:
    """``text``, its middle left out when it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def cut_short(reply: ModelReply) -> str:
    """Why a reply may lack what was asked for although the model meant to give it; ''."""
    thought = bool(reply.reasoning) and not reply.text.strip()
    if reply.finish_reason == "length":
        where = "while it was still reasoning" if thought else "before it was complete"
        return f"it reached its token limit {where}"
    return "it was reasoning alone" if thought else ""


def because(reply: ModelReply) -> str:
    """:func:`cut_short` as an insertion into a sentence."""
    why = cut_short(reply)
    return f" ({why})" if why else ""


class Room:
    """Whether prompts fit the main model.

    The limit is the setting, else the model's known context, less the room for an answer. Without
    either it is learnt from the first prompt that is refused. Tokens are estimated from characters,
    at the rate that the last reply reported."""

    ANSWER = 4_000
    """Tokens kept free for the answer (at most a quarter of the context)."""

    def __init__(self, env: Environment, context_tokens: int = 0) -> None:
        context = context_tokens or env.model.facts().context
        self._limit = None if context is None else context - min(self.ANSWER, context // 4)
        self._tokens_a_character = 1 / 3

    def fits(self, characters: int) -> bool:
        """Whether a prompt of so many characters is expected to fit."""
        return self._limit is None or characters * self._tokens_a_character <= self._limit

    def learn(self, characters: int, reply: ModelReply) -> None:
        """Measure by the reply to a prompt of so many characters."""
        if reply.usage.prompt_tokens and characters:
            self._tokens_a_character = reply.usage.prompt_tokens / characters

    def refused(self, characters: int) -> None:
        """A prompt of so many characters did not fit: the next one has to be a fifth smaller."""
        found = int(characters * self._tokens_a_character * 0.8)
        self._limit = found if self._limit is None else min(found, self._limit)
