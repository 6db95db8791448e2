"""The research agent of the MLAgentBench paper.

One prompt a step: the actions, the task, how to work, the form of an answer, the last steps in full. An answer holds a
reflection, the whole plan with its status, a check of the facts in it, a thought, and one action. With retrieval on, a
summary of each step goes to the research log, and what the log says about the plan comes back into the prompt; both
are ordinary actions and count as steps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from pydantic import BaseModel, Field

from pytest_mlab import Action, ActionSpec, ContextWindowError, Environment, MlabError, Observation

from .research_parsing import ACTION, FIELDS, INPUT, PLAN, STOP, clean_action, parse_reply, read_arguments, unmarked

RETRIEVE = "Retrieval from Research Log"
APPEND = "Append Summary to Research Log"

HIDDEN = frozenset(
    {
        "Read File",
        "Write File",
        "Append File",
        "Python REPL",
        "Edit Script Segment (AI)",
        APPEND,
        RETRIEVE,
        "Reflection",
    }
)
"""Actions that exist but are not in the prompt unless they are added."""


class ResearchSettings(BaseModel, frozen=True, extra="forbid"):
    """What can be changed about the agent."""

    retrieval: bool = Field(False, description="keep a research log and read in it before each step")
    shown_steps: int = Field(3, ge=0, description="steps that stand in the prompt word for word")
    re_asks: int = Field(5, ge=0, description="how often an answer that cannot be used is asked for again")
    summarise_over: int = Field(
        5_000, ge=100, description="characters of an observation above which the fast model summarises it"
    )
    block: int = Field(10_000, ge=100, description="characters that the fast model summarises at once")
    temperature: float = Field(0.5, ge=0, description="of the main model")
    fast_temperature: float = Field(0.01, ge=0, description="of the fast model")
    add_actions: tuple[str, ...] = Field((), description="actions to show that are hidden otherwise")
    remove_actions: tuple[str, ...] = Field((), description="actions not to show")


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
    """A step as later prompts show it. ``failed`` steps had no usable answer or arguments: they leave the prompt once
    a good step follows."""

    fields: Mapping[str, str]
    observation: str
    failed: bool


class _Work:
    """One trial: the history that the prompts show, and the plan as it stands."""

    def __init__(self, env: Environment, settings: ResearchSettings) -> None:
        self.env = env
        self.settings = settings
        self.texts = _sections(Path(__file__).with_name("research_prompt.md"))
        self.tools = _tools(env.actions, settings)
        self.taken: list[_Taken] = []
        self.steps = 0
        self.plan = ""

    def step(self) -> bool:
        """Ask, act, remember; True when the trial is over."""
        fields, problem = self._answer(self._recall(), min(self.settings.shown_steps, len(self.taken)))
        self._keep_plan(fields)
        name = clean_action(fields.get(ACTION, ""))
        arguments = self._arguments(name, fields.get(INPUT, ""))
        if arguments is None:
            seen = self.env.execute(Action(name[:80], {"unparsed": fields.get(INPUT, "")}))
            text = self._unreadable(name, seen)
        else:
            seen = self.env.execute(Action(name, arguments))
            text = seen.text
        if seen.done:
            return True
        self._remember(fields, self._shortened(name, arguments, text), failed=bool(problem) or arguments is None)
        return False

    # --- asking ----------------------------------------------------------------------------------------------

    def _answer(self, recalled: str, shown: int) -> tuple[dict[str, str], str]:
        """The fields of a usable answer; when none comes, those of the last one and what was wrong with it."""
        try:
            return self._answer_to(self._prompt(recalled, shown))
        except ContextWindowError:
            if shown == 0:
                raise
        self.env.note("history_shortened", {"shown_steps": shown - 1})
        return self._answer(recalled, shown - 1)  # forget the oldest step rather than give up

    def _answer_to(self, prompt: str) -> tuple[dict[str, str], str]:
        asked, fields, problem = prompt, dict[str, str](), ""
        for attempt in range(1 + self.settings.re_asks):
            reply = self.env.model.complete(asked, temperature=self.settings.temperature, stop=[STOP])
            fields, problem = parse_reply(reply.text)
            name = clean_action(fields.get(ACTION, ""))
            if not problem and name not in self.env.actions:
                problem = f"{name!r:.80} is no action" if name else "it names no action"
            if not problem:
                return fields, ""
            self.env.note("answer_refused", {"attempt": attempt + 1, "problem": problem})
            asked = f"{prompt}\n\n{self._text('reminder', problem=problem)}"
        return fields, problem

    def _prompt(self, recalled: str, shown: int) -> str:
        fields = self.texts["fields"].template
        parts = [self._text("step", tools=self.tools, task=self.env.task_description, format=fields)]
        if recalled:
            parts.append(self._text("recalled", recalled=recalled))
        parts.append(self._text("history" if self.taken else "begin"))
        parts += [_rendered(taken) for taken in self.taken[len(self.taken) - shown :]]
        return "\n\n".join(parts)

    # --- acting ----------------------------------------------------------------------------------------------

    def _arguments(self, name: str, text: str) -> dict[str, Any] | None:
        """The arguments as a JSON object, rescued where possible; {} for an action that does not exist anyway."""
        spec = self.env.actions.get(name)
        if spec is None:
            return {}
        arguments, how = read_arguments(text, spec.schema.get("properties", {}))
        if how not in ("", "as is"):
            self.env.note("arguments_rescued", {"how": how})
        return arguments

    def _unreadable(self, name: str, seen: Observation) -> str:
        usage = _usage(self.env.actions[name])
        return f"{self._text('arguments', action=name, usage=usage)}\n\n{seen.text}"

    def _shortened(self, name: str, arguments: Mapping[str, Any] | None, text: str) -> str:
        """An observation, summarised block by block when it is long."""
        if len(text) <= self.settings.summarise_over:
            return text
        block = self.settings.block
        blocks = [text[start : start + block] for start in range(0, len(text), block)]
        about = {
            "task": self.env.task_description,
            "action": name,
            "arguments": json.dumps(dict(arguments or {}), ensure_ascii=False)[:2000],
        }
        reports = [
            self._fast(self._text("summarise", text=part, part=str(number), parts=str(len(blocks)), **about))
            for number, part in enumerate(blocks, 1)
        ]
        report = reports[0] if len(reports) == 1 else self._fast(self._text("combine", text="\n\n".join(reports)))
        if not report:  # a fast model that says nothing must not hide what happened
            half = self.settings.summarise_over // 2
            return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
        return f"(summary of {len(text)} characters)\n{report}"

    # --- remembering -----------------------------------------------------------------------------------------

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
        """What the research log says about the plan, once there are steps that the prompt no longer shows."""
        if not self.settings.retrieval or self.steps <= self.settings.shown_steps:
            return ""
        seen = self.env.execute(Action(RETRIEVE, {"current_plan": self.plan}))
        return seen.text if seen.ok else ""

    # --- texts -----------------------------------------------------------------------------------------------

    def _fast(self, prompt: str) -> str:
        return self.env.model.complete(prompt, role="fast", temperature=self.settings.fast_temperature).text.strip()

    def _text(self, section: str, **values: str) -> str:
        return self.texts[section].substitute(values)


def _sections(file: Path) -> dict[str, Template]:
    """The parts of the prompt file by the names in its comments."""
    parts = re.split(r"(?m)^<!-- (\w+) -->\n", file.read_text(encoding="utf-8"))
    return {name: Template(text.strip()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _tools(actions: Mapping[str, ActionSpec], settings: ResearchSettings) -> str:
    """The actions that the prompt shows, with their usage. Raises MlabError for a setting that names no action."""
    for setting in ("add_actions", "remove_actions"):
        for name in getattr(settings, setting):
            if name not in actions:
                raise MlabError(f"ResearchSettings.{setting}: no action {name!r}; there are {', '.join(actions)}")
    hidden = (HIDDEN - set(settings.add_actions)) | set(settings.remove_actions)
    return "\n".join(
        f"- {name}: {spec.summary}\n  {_usage(spec)}" + (f"\n  Gives: {spec.returns}" if spec.returns else "")
        for name, spec in actions.items()
        if name not in hidden
    )


def _usage(spec: ActionSpec) -> str:
    arguments = {
        name: f"<{details.get('description') or details.get('type', 'a value')}>"
        for name, details in spec.schema.get("properties", {}).items()
    }
    return f"Arguments: {json.dumps(arguments, ensure_ascii=False)}"


def _rendered(taken: _Taken) -> str:
    answer = "\n".join(f"{field}: {taken.fields[field]}" for field in FIELDS if field in taken.fields)
    return f"{answer}\n{STOP}\n```\n{taken.observation}\n```"
