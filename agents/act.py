"""The simplest agent that uses a model: each reply names one action, and the prompt shows the
results of all earlier actions.

The history stays in the prompt word for word (long observations cut in the middle); when it nears
what the model can read, the oldest steps are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pytest_mlab import ContextWindowError, Environment

from .asking import Asking
from .prompting import (
    RESEARCH_LOG,
    MeasuredSettings,
    ObservationChars,
    ReAsks,
    Room,
    Temperature,
    cut,
    listed,
    sections,
    shown_actions,
)
from .research_parsing import ACTION, INPUT, STOP


class ActSettings(MeasuredSettings, frozen=True, extra="forbid"):
    """The agent's settings."""

    temperature: Temperature = 0.5
    re_asks: ReAsks = 5
    observation_chars: ObservationChars = 8_000


class ActAgent:
    """Works until it submits or the budget ends. ``fields`` are those of an answer, ``prompt`` is
    the prompt file."""

    needs_model = True
    Settings = ActSettings
    fields: ClassVar[tuple[str, ...]] = (ACTION, INPUT)
    prompt: ClassVar[Path] = Path(__file__).with_name("act_prompt.md")

    def __init__(self, settings: ActSettings | None = None) -> None:
        self.settings = settings or self.Settings()

    def run(self, env: Environment) -> None:
        """Step after step; what ends the trial passes through."""
        work = _Work(env, self.settings, self.fields, self.prompt)
        while not work.step():
            pass


@dataclass(frozen=True)
class _Taken:
    """A step as later prompts show it."""

    fields: Mapping[str, str]
    observation: str


class _Work:
    """One trial: the steps that the prompt shows."""

    def __init__(
        self, env: Environment, settings: ActSettings, fields: tuple[str, ...], prompt: Path
    ) -> None:
        self.env = env
        self.settings = settings
        self.fields = fields
        self.texts = sections(prompt)
        self.actions = listed(
            shown_actions(env.actions, RESEARCH_LOG, settings.add_actions, settings.remove_actions)
        )
        self.room = Room(env, settings.context_tokens)
        self.asking = Asking(
            env,
            fields,
            re_asks=settings.re_asks,
            temperature=settings.temperature,
            on_reply=lambda prompt, reply: self.room.learn(len(prompt), reply),
        )
        self.taken: list[_Taken] = []
        self.left_out = 0

    def step(self) -> bool:
        """Ask, act, remember; True when the trial is over."""
        fields = self._answer()
        acted = self.asking.act(fields)
        self.taken.append(_Taken(fields, cut(acted.text, self.settings.observation_chars)))
        return acted.seen.done

    def _answer(self) -> dict[str, str]:
        """The fields of an answer to the longest history that fits."""
        while True:
            prompt = self._prompt()
            while self.taken and not self.room.fits(len(prompt)):
                self._forget()
                prompt = self._prompt()
            try:
                return self.asking.answer(prompt)[0]
            except ContextWindowError:
                if not self.taken:
                    raise
            self.room.refused(len(prompt))
            self._forget()

    def _forget(self) -> None:
        del self.taken[0]
        self.left_out += 1
        self.env.note("history_shortened", {"left_out": self.left_out})

    def _prompt(self) -> str:
        form = self.texts["format"].template
        parts = [
            self.texts["step"].substitute(
                actions=self.actions, task=self.env.task_description, format=form
            )
        ]
        opening = "history" if self.taken else "begin"
        if self.left_out:
            opening = "forgotten"
        parts.append(self.texts[opening].substitute(left_out=str(self.left_out)))
        parts += [self._rendered(taken) for taken in self.taken]
        return "\n\n".join(parts)

    def _rendered(self, taken: _Taken) -> str:
        answer = "\n".join(
            f"{field}: {taken.fields[field]}" for field in self.fields if field in taken.fields
        )
        return f"{answer}\n{STOP}\n```\n{taken.observation}\n```"
