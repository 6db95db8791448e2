"""Native tool calling over all actions, with no fixed format: the style of today's agents.

The model calls actions as tools, several at once if it likes; each call is answered. The
conversation stays in the prompt until it nears the model's context: then the fast model turns its
older part into notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from pytest_mlab import Action, Environment, Message, ModelReply, ToolCall, read_call

from .prompting import (
    RESEARCH_LOG,
    MeasuredSettings,
    Nudges,
    ObservationChars,
    Room,
    Temperature,
    because,
    cut,
    sections,
    shown_actions,
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
        self.refused = 0

    def turn(self) -> _Answered:
        """One reply of the model, and everything that it calls for, in order."""
        reply = self.talk.ask(self.settings.temperature)
        if not reply.tool_calls:
            self.env.note("no_tool_called", {"finish_reason": reply.finish_reason})
            nudge = self.texts["nudge"].substitute(why=because(reply))
            self._add(reply, (), [Message("user", nudge)])
            return _Answered("")
        answers: list[Message] = []
        calls: list[ToolCall] = []
        acted = False
        # As many replies in a row cost no step as an agent gets nudges. After them, refused calls
        # are steps, so that the budget bounds them.
        free = self.refused < self.settings.nudges
        for call in reply.tool_calls:
            action = read_call(self.env.actions, call.name, call.arguments)
            if isinstance(action, str) and free:
                answered = self._refused(call, reply, action)
            else:
                answered = self._do(action if isinstance(action, Action) else _as_written(call))
            if answered.over:
                return answered
            acted |= answered.acted
            calls.append(_readable(call, action))
            answers.append(Message("tool", answered.text, tool_call_id=call.id))
        self.refused = 0 if acted else self.refused + 1
        self._add(reply, calls, answers)
        return _Answered("", acted=True)

    def _add(
        self, reply: ModelReply, calls: Sequence[ToolCall], answers: Sequence[Message]
    ) -> None:
        text = reply.text
        if not text and not calls:
            text = "(no words)"  # some providers refuse a conversation that holds an empty message
        # Many providers refuse tool calls that have lost the reasoning which came with them.
        said = Message("assistant", text, tool_calls=tuple(calls), reasoning=reply.reasoning)
        self.talk.turns.append(Turn(said, tuple(answers)))

    def _do(self, action: Action) -> _Answered:
        seen = self.env.execute(action)
        steps = f"(step {self.env.ledger.steps} of {self.env.budget.max_steps})"
        return _Answered(
            f"{cut(seen.text, self.settings.observation_chars)}\n{steps}",
            acted=True,
            over=seen.done,
        )

    def _refused(self, call: ToolCall, reply: ModelReply, problem: str) -> _Answered:
        """Not a step, since the action cannot be done."""
        self.env.note("call_refused", {"action": call.name, "problem": problem})
        if reply.finish_reason == "length" and not _parses(call.arguments):
            return _Answered(self.texts["cut"].template)
        return _Answered(self.texts["refused"].substitute(problem=problem))


def _as_written(call: ToolCall) -> Action:
    """A call that cannot be done, for the environment to refuse as a step."""
    return Action(call.name, {"unparsed": call.arguments})


def _readable(call: ToolCall, action: Action | str) -> ToolCall:
    """``call`` with arguments that parse: some providers parse them again, and refuse the whole
    conversation."""
    if _parses(call.arguments):
        return call
    return replace(call, arguments=json.dumps(action.args if isinstance(action, Action) else {}))


def _parses(text: str) -> bool:
    try:
        return not text.strip() or isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
