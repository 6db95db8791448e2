"""The research agent of the MLAgentBench paper.

One prompt a step: the actions, the task, how to work, the form of an answer, the last steps in
full. An answer holds a reflection, the whole plan with its status, a check of the facts in it, a
thought, and one action. With retrieval on, a summary of each step goes to the research log, and the
log's entries about the plan come back into the prompt; both are ordinary actions and count as
steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, field_validator

from pytest_mlab import Action, ContextWindowError, Environment

from .asking import Acted, Asking
from .prompting import (
    RESEARCH_LOG,
    ReAsks,
    ShownSettings,
    Temperature,
    cut,
    listed,
    sections,
    shown_actions,
)
from .research_parsing import ACTION, FIELDS, INPUT, PLAN, STOP, unmarked

RETRIEVE = "Retrieval from Research Log"
APPEND = "Append Summary to Research Log"

HIDDEN = RESEARCH_LOG | {
    "Read File",
    "Write File",
    "Append File",
    "Python REPL",
    "Edit Script Segment (AI)",
}
"""Actions that exist but are not in the prompt unless they are added."""


class ResearchSettings(ShownSettings, frozen=True, extra="forbid"):
    """The agent's settings."""

    format_entries: tuple[str, ...] = Field(
        default=FIELDS,
        description="fields of an answer, of these; Action and Action Input have to be among them",
    )
    retrieval: bool = Field(
        default=False, description="keep a research log and read in it before each step"
    )
    shown_steps: int = Field(
        default=3, ge=0, description="steps that stand in the prompt word for word"
    )
    re_asks: ReAsks = 5
    summarise_over: int = Field(
        default=5_000,
        ge=100,
        description="characters of an observation above which the fast model summarises it",
    )
    block: int = Field(
        default=10_000, ge=100, description="characters that the fast model summarises at once"
    )
    temperature: Temperature = 0.5
    fast_temperature: float | None = Field(
        default=0.01, ge=0, description="of the fast model; null: likewise"
    )

    @field_validator("format_entries")
    @classmethod
    def _known(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [entry for entry in entries if entry not in FIELDS]
        if wrong or not {ACTION, INPUT} <= set(entries):
            raise ValueError(f"give some of {', '.join(FIELDS)}, among them {ACTION} and {INPUT}")
        return tuple(field for field in FIELDS if field in entries)


class ResearchAgent:
    """Works until it submits or the budget ends."""

    needs_model = True
    Settings = ResearchSettings

    def __init__(self, settings: ResearchSettings | None = None) -> None:
        self.settings = settings or self.Settings()

    def run(self, env: Environment) -> None:
        """Step after step; what ends the trial passes through."""
        work = _Work(env, self.settings)
        while not work.step():
            pass


@dataclass(frozen=True)
class _Taken:
    """A step as later prompts show it. ``failed`` steps had no usable answer or arguments: they
    leave the prompt once a good step follows."""

    fields: Mapping[str, str]
    observation: str
    failed: bool


class _Work:
    """One trial: the history that the prompts show, and the plan as it stands."""

    def __init__(self, env: Environment, settings: ResearchSettings) -> None:
        self.env = env
        self.settings = settings
        self.texts = sections(Path(__file__).with_name("research_prompt.md"))
        shown = shown_actions(env.actions, HIDDEN, settings.add_actions, settings.remove_actions)
        self.tools = listed(shown)
        self.asking = Asking(
            env, settings.format_entries, re_asks=settings.re_asks, temperature=settings.temperature
        )
        self.taken: list[_Taken] = []
        self.steps = 0
        self.plan = ""

    def step(self) -> bool:
        """Ask, act, remember; True when the trial is over."""
        fields, problem = self._answer(
            self._recall(), min(self.settings.shown_steps, len(self.taken))
        )
        self._keep_plan(fields)
        acted = self.asking.act(fields)
        if acted.seen.done:
            return True
        self._remember(
            fields, self._shortened(acted), failed=bool(problem) or acted.arguments is None
        )
        return False

    # --- asking ---

    def _answer(self, recalled: str, shown: int) -> tuple[dict[str, str], str]:
        """The fields of a usable answer; without one, those of the last answer and its problem."""
        try:
            return self.asking.answer(self._prompt(recalled, shown))
        except ContextWindowError:
            if shown == 0:
                raise
        self.env.note("history_shortened", {"shown_steps": shown - 1})
        return self._answer(recalled, shown - 1)  # forget the oldest step rather than give up

    def _prompt(self, recalled: str, shown: int) -> str:
        entries = self.settings.format_entries
        lines = self.texts["fields"].template.splitlines()
        form = "\n".join(line for line in lines if line.partition(":")[0] in entries)
        planning = self._text("planning" if PLAN in entries else "planless")
        parts = [
            self._text(
                "step",
                tools=self.tools,
                task=self.env.task_description,
                planning=planning,
                format=form,
            )
        ]
        if recalled:
            parts.append(self._text("recalled", recalled=recalled))
        parts.append(self._text("history" if self.taken else "begin"))
        parts += [_rendered(taken) for taken in self.taken[len(self.taken) - shown :]]
        return "\n\n".join(parts)

    def _shortened(self, acted: Acted) -> str:
        """An observation, summarised block by block when it is long."""
        text = acted.text
        if len(text) <= self.settings.summarise_over:
            return text
        block = self.settings.block
        blocks = [text[start : start + block] for start in range(0, len(text), block)]
        about = {
            "task": self.env.task_description,
            "action": acted.name,
            "arguments": json.dumps(acted.arguments or {}, ensure_ascii=False)[:2000],
        }
        reports = [
            self._fast(
                self._text(
                    "summarise", text=part, part=str(number), parts=str(len(blocks)), **about
                )
            )
            for number, part in enumerate(blocks, 1)
        ]
        report = (
            reports[0]
            if len(reports) == 1
            else self._fast(self._text("combine", text="\n\n".join(reports)))
        )
        if not report:  # a fast model that says nothing must not hide what happened
            return cut(text, self.settings.summarise_over)
        return f"(summary of {len(text)} characters)\n{report}"

    # --- remembering ---

    def _keep_plan(self, fields: dict[str, str]) -> None:
        plan = unmarked(fields.get(PLAN, ""))
        if plan:
            fields[PLAN] = plan
            if plan != self.plan:
                self.plan = plan
                self.env.note("plan", {"text": plan})

    def _remember(self, fields: Mapping[str, str], observation: str, *, failed: bool) -> None:
        taken = _Taken(fields, observation, failed)
        self.steps += 1
        if not failed:
            self.taken = [earlier for earlier in self.taken if not earlier.failed]
        self.taken.append(taken)
        if self.settings.retrieval:
            entry = self._fast(self._text("log", step=_rendered(taken)))
            self.env.execute(Action(APPEND, {"content": entry}))

    def _recall(self) -> str:
        """What the research log says about the plan, once there are steps that the prompt no longer
        shows."""
        if not self.settings.retrieval or self.steps <= self.settings.shown_steps:
            return ""
        about = self.plan or _rendered(self.taken[-1])  # the format may have no plan
        seen = self.env.execute(Action(RETRIEVE, {"current_plan": about}))
        return seen.text if seen.ok else ""

    # --- texts ---

    def _fast(self, prompt: str) -> str:
        return self.env.model.complete(
            prompt, role="fast", temperature=self.settings.fast_temperature
        ).text.strip()

    def _text(self, section: str, **values: str) -> str:
        return self.texts[section].substitute(values)


def _rendered(taken: _Taken) -> str:
    answer = "\n".join(
        f"{field}: {taken.fields[field]}" for field in FIELDS if field in taken.fields
    )
    return f"{answer}\n{STOP}\n```\n{taken.observation}\n```"
