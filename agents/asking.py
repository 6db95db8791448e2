"""Asking a model for one action in a text format, and doing it: what the research, react and act
agents share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlab import Action, Environment, ModelReply, Observation, action_name

from .prompting import cut_short, sections, usage
from .research_parsing import ACTION, INPUT, STOP, clean_action, parse_reply, read_arguments


@dataclass(frozen=True)
class Acted:
    """A step: the action's name, its arguments (None when they could not be read), what the
    environment answered, and the text that the model is shown."""

    name: str
    arguments: dict[str, Any] | None
    seen: Observation
    text: str


class Asking:
    """Asks until an answer is usable, at most ``1 + re_asks`` times: it has all ``fields`` and
    names an action.

    ``on_reply`` gets every reply with the prompt that it answers.
    """

    def __init__(
        self,
        env: Environment,
        fields: Sequence[str],
        *,
        re_asks: int,
        temperature: float | None,
        on_reply: Callable[[str, ModelReply], None] = lambda prompt, reply: None,
    ) -> None:
        self.env = env
        self.fields = tuple(fields)
        self.re_asks = re_asks
        self.temperature = temperature
        self.on_reply = on_reply
        self.texts = sections(Path(__file__).with_name("asking_prompt.md"))

    def answer(self, prompt: str) -> tuple[dict[str, str], str]:
        """The fields of a usable answer; when none comes, those of the last one and what was wrong
        with it."""
        asked, fields, problem = prompt, dict[str, str](), ""
        for attempt in range(1 + self.re_asks):
            reply = self.env.model.complete(asked, temperature=self.temperature, stop=[STOP])
            self.on_reply(asked, reply)
            fields, problem = parse_reply(reply.text, self.fields)
            name = self._action(fields)
            if not problem and name not in self.env.actions:
                problem = f"{name!r:.80} is not an action" if name else "it names no action"
            if not problem:
                return fields, ""
            if why := cut_short(reply):
                problem = f"{why}; {problem}"
            self.env.note("answer_refused", {"attempt": attempt + 1, "problem": problem})
            reminder = self.texts["reminder"].substitute(
                problem=problem, fields=", ".join(self.fields)
            )
            asked = f"{prompt}\n\n{reminder}"
        return fields, problem

    def act(self, fields: dict[str, str]) -> Acted:
        """Do what an answer says. An action that cannot be done is a step as well, so that the
        budget bounds it."""
        name = self._action(fields)
        written = fields.get(INPUT, "")
        arguments = self._arguments(name, written)
        if arguments is None:
            seen = self.env.execute(Action(name[:80], {"unparsed": written}))
            help_text = self.texts["arguments"].substitute(
                action=name, usage=usage(self.env.actions[name])
            )
            return Acted(name, None, seen, f"{help_text}\n\n{seen.text}")
        seen = self.env.execute(Action(name, arguments))
        return Acted(name, arguments, seen, seen.text)

    def _action(self, fields: Mapping[str, str]) -> str:
        """The action that an answer names, or what it names in the place of one."""
        name = clean_action(fields.get(ACTION, ""))
        return action_name(name, self.env.actions) or name

    def _arguments(self, name: str, text: str) -> dict[str, Any] | None:
        """The arguments as a JSON object, rescued where possible; {} for an action that does not
        exist anyway."""
        spec = self.env.actions.get(name)
        if spec is None:
            return {}
        arguments, how = read_arguments(text, spec.schema.get("properties", {}))
        if how not in ("", "as is"):
            self.env.note("arguments_rescued", {"how": how})
        return arguments
