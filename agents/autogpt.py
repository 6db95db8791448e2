"""AutoGPT's loop over our actions, written anew: goals, thoughts with criticism, one command a
reply, a memory.

A reply is one JSON object: thoughts {text, reasoning, plan, criticism, speak} and a command. The
prompt shows the last steps word for word; the fast model keeps a short account of earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from pytest_mlab import Action, ContextWindowError, Environment, Message, action_name

from .prompting import (
    RESEARCH_LOG,
    MeasuredSettings,
    ObservationChars,
    ReAsks,
    Room,
    Temperature,
    cut,
    cut_short,
    listed,
    sections,
    shown_actions,
)
from .research_parsing import clean_action, read_arguments


class AutogptSettings(MeasuredSettings, frozen=True, extra="forbid"):
    """The agent's settings."""

    goals: tuple[str, ...] = Field(
        default=(), description="goals in place of the usual four, as a JSON list"
    )
    shown_steps: int = Field(
        default=5, ge=0, description="last steps that stand in the prompt word for word"
    )
    re_asks: ReAsks = 3
    temperature: Temperature = 0.0
    observation_chars: ObservationChars = 8_000


class AutogptAgent:
    """Works until it submits or the budget ends."""

    needs_model = True
    Settings = AutogptSettings

    def __init__(self, settings: AutogptSettings | None = None) -> None:
        self.settings = settings or self.Settings()

    def run(self, env: Environment) -> None:
        """Step after step; what ends the trial passes through."""
        work = _Work(env, self.settings)
        while not work.step():
            pass


@dataclass(frozen=True)
class _Command:
    """The command in an answer, or why it has none (``problem``); ``text`` is the answer."""

    text: str
    name: str = ""
    args: dict[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True)
class _Taken:
    """A step as later prompts show it."""

    answer: str
    result: str

    @property
    def messages(self) -> tuple[Message, Message]:
        """As a conversation."""
        return Message("assistant", self.answer or "(no words)"), Message("user", self.result)


class _Work:
    """One trial: the steps that the prompt shows, and the account of those before them."""

    def __init__(self, env: Environment, settings: AutogptSettings) -> None:
        self.env = env
        self.settings = settings
        self.texts = sections(Path(__file__).with_name("autogpt_prompt.md"))
        commands = shown_actions(
            env.actions, RESEARCH_LOG, settings.add_actions, settings.remove_actions
        )
        goals = settings.goals or self.texts["goals"].template.splitlines()
        self.system = self._text(
            "system",
            goals="\n".join(f"{number}. {goal}" for number, goal in enumerate(goals, 1)),
            task=env.task_description,
            commands=listed(commands),
        )
        self.room = Room(env, settings.context_tokens)
        self.taken: list[_Taken] = []
        self.account = ""

    def step(self) -> bool:
        """Ask, act, remember; True when the trial is over."""
        while len(self.taken) > self.settings.shown_steps:
            self._remember()
        command = self._ask()
        # An answer without a command is a step as well, so that the budget bounds it.
        args = {"unparsed": command.text[:2_000]} if command.args is None else command.args
        seen = self.env.execute(Action(command.name, args))
        text = cut(f"{command.problem}\n{seen.text}".strip(), self.settings.observation_chars)
        self.taken.append(
            _Taken(command.text, self._text("result", name=command.name or "(none)", result=text))
        )
        return seen.done

    # --- asking ---

    def _ask(self) -> _Command:
        """The command of a usable answer to the longest history that fits, or the last unusable
        answer."""
        while True:
            messages = self._messages()
            while self.taken and not self.room.fits(_size(messages)):
                self._remember()
                messages = self._messages()
            try:
                return self._usable(messages)
            except ContextWindowError:
                if not self.taken:
                    raise
            self.room.refused(_size(messages))
            self._remember()

    def _usable(self, messages: list[Message]) -> _Command:
        command = _Command("", problem="")
        asked = messages
        for attempt in range(1 + self.settings.re_asks):
            reply = self.env.model.complete(asked, temperature=self.settings.temperature)
            self.room.learn(_size(asked), reply)
            command = _read(reply.text, self.env.actions)
            if not command.problem:
                return command
            if why := cut_short(reply):
                command = replace(command, problem=f"{why}; {command.problem}")
            self.env.note("answer_refused", {"attempt": attempt + 1, "problem": command.problem})
            again = Message("user", self._text("refused", problem=command.problem))
            asked = [*messages, Message("assistant", cut(reply.text, 2_000) or "(no words)"), again]
        return command

    def _messages(self) -> list[Message]:
        account = (
            [Message("user", self._text("account", account=self.account))] if self.account else []
        )
        shown = [message for taken in self.taken for message in taken.messages]
        return [
            Message("system", self.system),
            *account,
            *shown,
            Message("user", self.texts["next"].template),
        ]

    # --- remembering ---

    def _remember(self) -> None:
        """Let the oldest step that is shown go into the account."""
        oldest = self.taken.pop(0)
        step = cut(f"{oldest.answer}\n{oldest.result}", self.settings.observation_chars)
        prompt = self._text("remember", account=self.account or "(nothing yet)", step=step)
        try:
            written = self.env.model.complete(prompt, role="fast", temperature=0.01).text.strip()
        except ContextWindowError:
            written = ""
        # A fast model that says nothing must not wipe out what was done.
        self.account = written or cut(f"{self.account}\n- {cut(oldest.result, 300)}".strip(), 4_000)

    def _text(self, section: str, **values: str) -> str:
        return self.texts[section].substitute(values)


def _size(messages: Iterable[Message]) -> int:
    return sum(len(message.content) for message in messages)


def _read(text: str, actions: Iterable[str]) -> _Command:
    """The command in an answer. Its name may be written as AutoGPT writes names
    (``execute_script``)."""
    answer, _ = read_arguments(text, ())
    if answer is None:
        return _Command(text, problem="it is not a JSON object")
    command = answer.get("command")
    if not isinstance(command, dict) or not isinstance(command.get("name"), str):
        return _Command(text, problem="it has no command with a name")
    args = command.get("args", {})
    name = clean_action(command["name"])
    found = action_name(name, actions)
    if found is None:
        return _Command(text, name[:80], problem=f"{name!r:.80} is not a command")
    if isinstance(args, str):
        args, _ = read_arguments(args, ())
    if not isinstance(args, dict):
        return _Command(text, found, problem="its args are not a JSON object")
    return _Command(json.dumps(answer, ensure_ascii=False), found, args)
