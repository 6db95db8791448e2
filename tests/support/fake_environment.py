"""An environment without a workspace or a sandbox, and a model without a provider: for tests of
agents alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_mlab.core.actions import Action, ActionSpec, Observation, Step
from pytest_mlab.core.agent_api import Person
from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.model_api import Message, Model, ModelFacts, ModelReply, Role
from pytest_mlab.core.sandbox_api import Execution
from pytest_mlab.errors import BudgetExhausted, TrialOver

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "List Files": ("dir_path",),
    "Read File": ("file_name",),
    "Write File": ("file_name", "content"),
    "Append File": ("file_name", "content"),
    "Copy File": ("source", "destination"),
    "Undo Edit Script": ("script_name",),
    "Execute Script": ("script_name",),
    "Python REPL": ("command",),
    "Final Answer": ("final_answer",),
    "Understand File": ("file_name", "things_to_look_for"),
    "Inspect Script Lines": ("script_name", "start_line_number", "end_line_number"),
    "Edit Script (AI)": ("script_name", "edit_instruction", "save_name"),
    "Edit Script Segment (AI)": (
        "script_name",
        "start_line_number",
        "end_line_number",
        "edit_instruction",
        "save_name",
    ),
    "Append Summary to Research Log": ("content",),
    "Retrieval from Research Log": ("current_plan",),
    "Reflection": ("things_to_reflect_on",),
}


def spec(name: str) -> ActionSpec:
    """The action ``name`` with texts for its arguments."""
    properties = {
        argument: {"type": "string", "description": f"the {argument}"} for argument in ACTIONS[name]
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ActionSpec(name, f"does {name}", schema, f"what {name} gives")


@dataclass(frozen=True)
class Asked:
    """One call of the fake model; ``prompt`` is the contents of all messages."""

    prompt: str
    role: Role
    temperature: float | None
    stop: tuple[str, ...]
    messages: tuple[Message, ...] = ()
    tools: tuple[ActionSpec, ...] = ()


@dataclass
class FakeModel:
    """Gives ``main`` replies one after the other (each a text, an exception to raise, a tuple of
    tool calls, or a whole reply) and ``fast`` replies by a function of the prompt."""

    main: list[Any] = field(default_factory=list)
    fast: Callable[[str], str] = lambda prompt: "in short"
    known: ModelFacts = ModelFacts("fake", native_tools=True, context=None)
    asked: list[Asked] = field(default_factory=list)

    def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        role: Role = "main",
        temperature: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        tools: Sequence[ActionSpec] = (),
        must_call: bool = False,
        schema: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        may_fall_back: bool = True,
    ) -> ModelReply:
        messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
        text = "\n".join(message.content for message in messages)
        self.asked.append(Asked(text, role, temperature, tuple(stop), messages, tuple(tools)))
        answer = self.fast(text) if role == "fast" else self.main.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ModelReply):
            return answer
        if isinstance(answer, tuple):
            return ModelReply("", "fake", Usage(), 0.0, 0.0, tool_calls=answer)
        return ModelReply(answer, "fake", Usage(), 0.0, 0.0)

    def facts(self, role: Role = "main") -> ModelFacts:
        return self.known

    def prompts(self, role: Role = "main") -> list[str]:
        """The prompts of one role, in order."""
        return [asked.prompt for asked in self.asked if asked.role == role]


@dataclass
class FakeEnvironment:
    """Answers an action by ``react`` (a text, or an observation) after the checks that every
    environment makes."""

    model: Model
    react: Callable[[Action], str | Observation] = lambda action: f"did {action.name}"
    scripts: Mapping[str, Sequence[Action]] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    task_description: str = "Make the number larger. It costs $5."
    log_dir: Path = Path("unused")
    history: list[Step] = field(default_factory=list)
    notes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    done: bool = False
    restored: list[int] = field(default_factory=list)
    somebody: Person | None = None
    cancelled: int = 0
    ended: Execution = Execution(0, b"", 0, 0.0)
    programs: list[tuple[tuple[str, ...], dict[str, str], bytes]] = field(default_factory=list)
    put: dict[str, bytes] = field(default_factory=dict)

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        return {name: spec(name) for name in ACTIONS}

    @property
    def person(self) -> Person:
        assert self.somebody is not None
        return self.somebody

    def cancel(self) -> None:
        self.cancelled += 1

    @property
    def ledger(self) -> Ledger:
        return Ledger(steps=len(self.history))

    @property
    def executed(self) -> list[Action]:
        """The actions so far."""
        return [step.action for step in self.history]

    def execute(self, action: Action, *, timeout: float | None = None) -> Observation:
        if self.done:
            raise TrialOver("the trial is over")
        if len(self.history) >= self.budget.max_steps:
            raise BudgetExhausted("no steps left", limit="steps")
        seen = self._observe(action)
        self.done = seen.done
        self.history.append(Step(len(self.history) + 1, action, seen, 0.0))
        return seen

    def _observe(self, action: Action) -> Observation:
        if action.name not in ACTIONS:
            return Observation(
                f"no action {action.name!r}; actions: {', '.join(ACTIONS)}", ok=False
            )
        if set(action.args) != set(ACTIONS[action.name]):
            return Observation(f"{action.name} takes {', '.join(ACTIONS[action.name])}", ok=False)
        if action.name == "Final Answer":
            return Observation("submitted", done=True)
        answer = self.react(action)
        return Observation(answer) if isinstance(answer, str) else answer

    def restore(self, step: int) -> Sequence[str]:
        if self.done:
            raise TrialOver("the trial is over")
        if not 0 <= step <= len(self.history):
            raise ValueError(f"step {step} was not done")
        self.restored.append(step)
        return ()

    def script(self, name: Literal["baseline", "reference"]) -> Sequence[Action]:
        return self.scripts[name]

    def run_program(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        patience: float = 10.0,
    ) -> Execution:
        self.programs.append((tuple(argv), dict(env or {}), stdin))
        return self.ended

    def put_file(self, name: str, content: bytes) -> str:
        self.put[name] = content
        return f"/home/{name}"

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        self.notes.append((kind, data))
