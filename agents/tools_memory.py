"""The conversation of an agent that calls tools: its end word for word, what was before that as
notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import Template

from pytest_mlab import ActionSpec, ContextWindowError, Environment, Message, ModelReply

from .prompting import Room, cut

BLOCK = 20_000
"""Characters of a conversation that the fast model gets to read at once; less when they do not fit
it."""

_LEAST_BLOCK = 1_000
_SHORT = 2_000


@dataclass(frozen=True)
class Turn:
    """What the model said, and the answers to it."""

    said: Message
    answers: tuple[Message, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of it in order."""
        return (self.said, *self.answers)

    @property
    def text(self) -> str:
        """As text for the model that summarises it."""
        calls = [
            f"Called {call.name} {cut(call.arguments, 4_000)}" for call in self.said.tool_calls
        ]
        return "\n".join(
            filter(None, [self.said.content, *calls, *(f"Got: {a.content}" for a in self.answers)])
        )

    @property
    def outline(self) -> str:
        """A few words on it, without a model's help."""
        calls = ", ".join(
            f"{call.name} {cut(call.arguments, 200)}" for call in self.said.tool_calls
        )
        return (
            f"- {calls or cut(self.said.content, 200)}:"
            f" {cut(' '.join(a.content for a in self.answers), 300)}"
        )


class Conversation:
    """What the model gets to read: ``opening``, notes, and the turns since them.

    When it is about to outgrow the model, or the model refuses it, all but the last ``keep`` turns
    become notes by the fast model; when that is not enough, long answers are cut, and then more
    turns become notes."""

    def __init__(
        self,
        env: Environment,
        opening: Sequence[Message],
        tools: Sequence[ActionSpec],
        *,
        room: Room,
        keep: int,
        summarise: Template,
        summary: Template,
    ) -> None:
        self.env = env
        self.opening = tuple(opening)
        self.tools = tuple(tools)
        self.room = room
        self.keep = keep
        self.texts = {"summarise": summarise, "summary": summary}
        self.turns: list[Turn] = []
        self.notes = ""

    @property
    def messages(self) -> list[Message]:
        """The prompt."""
        notes = (
            [Message("user", self.texts["summary"].substitute(summary=self.notes))]
            if self.notes
            else []
        )
        return [
            *self.opening,
            *notes,
            *(message for turn in self.turns for message in turn.messages),
        ]

    @property
    def size(self) -> int:
        """Characters of the prompt, tools included."""
        tools = sum(
            len(f"{t.name}{t.summary}{t.returns}{json.dumps(t.schema, default=str)}")
            for t in self.tools
        )
        return tools + sum(_size(message) for message in self.messages)

    def ask(self, temperature: float | None) -> ModelReply:
        """The model's next reply. Raises ContextWindowError when not even the opening fits."""
        while True:
            while not self.room.fits(self.size) and self._shrink():
                pass
            size = self.size
            try:
                reply = self.env.model.complete(
                    self.messages, temperature=temperature, tools=self.tools
                )
            except ContextWindowError:
                if not self._shrink():
                    raise
                self.room.refused(size)
                continue
            self.room.learn(size, reply)
            return reply

    # --- making it shorter ---

    def _shrink(self) -> bool:
        """Make the prompt shorter by the mildest means that is left; False when there is none."""
        if len(self.turns) > self.keep:
            self._sum_up(len(self.turns) - self.keep)
        elif any(len(answer.content) > _SHORT for turn in self.turns for answer in turn.answers):
            self.turns = [_shortened(turn) for turn in self.turns]
        elif self.turns:
            self._sum_up(max(1, len(self.turns) // 2))
        elif len(self.notes) > _SHORT:
            self.notes = cut(self.notes, _SHORT)
        else:
            return False
        return True

    def _sum_up(self, count: int) -> None:
        """Let the oldest ``count`` turns become notes."""
        old, self.turns = self.turns[:count], self.turns[count:]
        written = self._written("\n\n".join(turn.text for turn in old))
        if not written:  # a fast model that says nothing must not wipe out what was done
            outlines = "\n".join(turn.outline for turn in old)
            written = f"{self.notes}\n{outlines}".strip()
        self.notes = written
        self.env.note("summarised", {"turns": count, "notes": written})

    def _written(self, happened: str) -> str:
        """The notes brought up to date, block by block; '' when the fast model gives none."""
        notes, block, start = self.notes, BLOCK, 0
        while start < len(happened):
            part = happened[start : start + block]
            prompt = self.texts["summarise"].substitute(
                task=self.env.task_description, notes=notes or "(none)", happened=part
            )
            try:
                answer = self.env.model.complete(prompt, role="fast", temperature=0.01).text.strip()
            except ContextWindowError:
                block //= 2
                if block < _LEAST_BLOCK:
                    return ""
                continue
            if not answer:
                return ""
            notes, start = answer, start + block
        return notes


def _size(message: Message) -> int:
    called = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    thought = sum(len(str(value)) for block in message.reasoning for value in block.values())
    return len(message.content) + called + thought


def _shortened(turn: Turn) -> Turn:
    return replace(
        turn, answers=tuple(replace(a, content=cut(a.content, _SHORT)) for a in turn.answers)
    )
