"""Native tool calling over all actions, with no fixed format: the style of today's agents.

The model calls actions as tools, several at once if it likes; each call is answered. The
conversation stays in the prompt until it nears the model's context: then the fast model turns its
older part into notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from pytest_mlab import Action, Environment, Message, ModelReply, ToolCall

from .prompting import (
    RESEARCH_LOG,
    MeasuredSettings,
    Nudges,
    ObservationChars,
    Room,
    Temperature,
    cut,
    sections,
    shown_actions,
    usage,
)
from .tools_memory import Conversation, Turn


class ToolsSettings(MeasuredSettings, frozen=True, extra="forbid"):
    """The agent's settings."""

    temperature: Temperature = None
    nudges: Nudges = 3
    keep_turns: int = Field(
        default=6, ge=1, description="latest replies that stay word for word when notes are made"
    )
    observation_chars: ObservationChars = 20_000


class ToolsAgent:
    """Works until it submits, stops calling tools, or the budget ends."""

    needs_model = True
    Settings = ToolsSettings

    def __init__(self, settings: ToolsSettings | None = None) -> None:
        self.settings = settings or self.Settings()

    def run(self, env: Environment) -> None:
        """Reply after reply; what ends the trial passes through."""
        work = _Work(env, self.settings)
        idle = 0
        while idle <= self.settings.nudges:
            answered = work.turn()
            if answered.over:
                return
            idle = 0 if answered.acted else idle + 1
        env.note("gave_up", {"replies_without_an_action": idle})


@dataclass(frozen=True)
class _Answered:
    """The answer to a call, or to a whole reply: whether an action was done, and whether it ended
    the trial."""

    text: str
    acted: bool = False
    over: bool = False


class _Work:
    """One trial: its conversation."""

    def __init__(self, env: Environment, settings: ToolsSettings) -> None:
        self.env = env
        self.settings = settings
        self.texts = sections(Path(__file__).with_name("tools_prompt.md"))
        shown = shown_actions(
            env.actions, RESEARCH_LOG, settings.add_actions, settings.remove_actions
        )
        opening = (
            Message("system", self.texts["system"].template),
            Message("user", self.texts["task"].substitute(task=env.task_description)),
        )
        self.talk = Conversation(
            env,
            opening,
            tuple(shown.values()),
            room=Room(env, settings.context_tokens),
            keep=settings.keep_turns,
            summarise=self.texts["summarise"],
            summary=self.texts["summary"],
        )

    def turn(self) -> _Answered:
        """One reply of the model, and everything that it calls for, in order."""
        reply = self.talk.ask(self.settings.temperature)
        if not reply.tool_calls:
            self.env.note("no_tool_called", {"finish_reason": reply.finish_reason})
            self._add(reply, (), [Message("user", self.texts["nudge"].template)])
            return _Answered("")
        answers: list[Message] = []
        calls: list[ToolCall] = []
        acted = False
        for call in reply.tool_calls:
            arguments, problem = _arguments(call)
            answered = (
                self._unreadable(call, reply, problem)
                if problem
                else self._do(call.name, arguments)
            )
            if answered.over:
                return answered
            acted |= answered.acted
            # What did not parse is not sent back: some providers parse it again, and refuse the
            # whole conversation.
            calls.append(replace(call, arguments="{}") if problem else call)
            answers.append(Message("tool", answered.text, tool_call_id=call.id))
        self._add(reply, calls, answers)
        return _Answered("", acted=acted)

    def _add(
        self, reply: ModelReply, calls: Sequence[ToolCall], answers: Sequence[Message]
    ) -> None:
        text = reply.text
        if not text and not calls:
            text = "(no words)"  # some providers refuse a conversation that holds an empty message
        # Many providers refuse tool calls that have lost the reasoning which came with them.
        said = Message("assistant", text, tool_calls=tuple(calls), reasoning=reply.reasoning)
        self.talk.turns.append(Turn(said, tuple(answers)))

    def _do(self, name: str, arguments: dict[str, Any]) -> _Answered:
        seen = self.env.execute(Action(name, arguments))
        steps = f"(step {self.env.ledger.steps} of {self.env.budget.max_steps})"
        return _Answered(
            f"{cut(seen.text, self.settings.observation_chars)}\n{steps}",
            acted=True,
            over=seen.done,
        )

    def _unreadable(self, call: ToolCall, reply: ModelReply, problem: str) -> _Answered:
        """Not a step, since the action cannot be done; the nudges bound such replies."""
        self.env.note("arguments_refused", {"action": call.name, "problem": problem})
        if reply.finish_reason == "length":
            return _Answered(self.texts["cut"].template)
        spec = self.env.actions.get(call.name)
        shown = usage(spec) if spec else f"one of {', '.join(self.env.actions)}"
        return _Answered(self.texts["unreadable"].substitute(problem=problem, usage=shown))


def _arguments(call: ToolCall) -> tuple[dict[str, Any], str]:
    """A call's arguments, and '' or why they cannot be read. None at all are an empty object."""
    try:
        found = json.loads(
            call.arguments.strip() or "{}", strict=False
        )  # raw line breaks in strings are harmless
    except (ValueError, RecursionError) as error:
        return {}, str(error)
    if not isinstance(found, dict):
        return {}, f"it is a {type(found).__name__}"
    return found, ""
