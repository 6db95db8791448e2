"""Searches in a tree of solutions, in the manner of AIDE: drafts first, then fixes or improvements
of one of them.

A node is a plan and a whole program. To try one, the workspace goes back to what its parent left,
the program is written and run, and a review in JSON says whether it works and what its validation
metric is. The best node's workspace is what stands whenever the model is asked, so that it is what
is scored however the trial ends."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, Field

from pytest_mlab import Action, ContextWindowError, Environment, ModelReply

from .prompting import ReAsks, because, cut, sections
from .tree_reading import REVIEW, Review, Solution, read_review, read_solution
from .tree_search import Node, Stage, Tree

FINAL = 1
"""Steps kept for the end."""

_NARROWEST = 0.05


class TreeSettings(BaseModel, frozen=True, extra="forbid"):
    """The agent's settings."""

    num_drafts: int = Field(
        default=5, ge=1, description="solutions that are written afresh before any is improved"
    )
    debug_probability: float = Field(
        default=0.5, ge=0, le=1, description="of fixing a failing solution next"
    )
    max_debug_depth: int = Field(default=3, ge=0, description="attempts in a row to fix one")
    max_nodes: int = Field(
        default=0, ge=0, description="solutions to try at most; 0: as many as the budget allows"
    )
    seed: int = Field(default=0, description="of the choices made by chance")
    script: str = Field(
        default="train.py", description="name of the file where the model gives none"
    )
    shown_files: int = Field(
        default=4, ge=0, description="Python files of the start that the model is shown"
    )
    memory: int = Field(default=10, ge=0, description="earlier solutions that the model is shown")
    output_chars: int = Field(
        default=8_000, ge=100, description="characters of an output that the model is shown"
    )
    file_chars: int = Field(
        default=20_000, ge=100, description="characters of a file that the model is shown"
    )
    script_share: float = Field(
        default=0.5, gt=0, le=1, description="share of the time left that a run may take"
    )
    reserve: float = Field(
        default=0.02, ge=0, lt=1, description="share of the time that is kept for the end"
    )
    re_asks: ReAsks = 3
    give_up: int = Field(
        default=3, ge=1, description="useless answers in a row, re-asked, after which it submits"
    )
    temperature: float = Field(
        default=0.5, ge=0, description="of the main model, which writes solutions"
    )
    review_temperature: float = Field(
        default=0.0, ge=0, description="of the fast model, which reviews them"
    )


class TreeAgent:
    """Works until the budget is nearly used up, then submits its best solution."""

    needs_model = True
    Settings = TreeSettings

    def __init__(self, settings: TreeSettings | None = None) -> None:
        self.settings = settings or self.Settings()

    def run(self, env: Environment) -> None:
        """Try solution after solution; what ends the trial passes through."""
        work = _Work(env, self.settings)
        work.look_around()
        while work.may_go_on():
            work.try_next()
        work.submit()


class _Work:
    """One trial: the tree, and what the workspace is at the moment."""

    def __init__(self, env: Environment, settings: TreeSettings) -> None:
        self.env = env
        self.settings = settings
        self.texts = sections(Path(__file__).with_name("tree_prompt.md"))
        self.chance = random.Random(settings.seed)
        self.tree = Tree()
        self.surroundings: list[tuple[str, str]] = []
        self.listing = ""
        self.start = self.at = 0
        self.missing: Sequence[str] = ()
        self.useless = 0
        self.scale = 1.0

    # --- the budget ---

    @property
    def steps_left(self) -> int:
        """Steps that solutions may take."""
        return self.env.budget.max_steps - self.env.ledger.steps - FINAL

    @property
    def seconds_left(self) -> float:
        """Seconds that solutions may take."""
        # infinite without a limit
        return (1 - self.settings.reserve) * self.env.budget.max_seconds - self.env.ledger.seconds

    def timeout(self) -> float:
        """Seconds that the next run may take."""
        return max(1.0, self.settings.script_share * self.seconds_left)

    def may_go_on(self) -> bool:
        """Whether another solution can be tried."""
        enough = (
            0 < self.settings.max_nodes <= len(self.tree.nodes)
            or self.useless >= self.settings.give_up
        )
        return not enough and self.steps_left >= 2 and self.seconds_left > 0

    # --- trying ---

    def look_around(self) -> None:
        """See which files there are, and read the programs among them."""
        if self.steps_left < 3:
            return
        self.listing = self.env.execute(Action("List Files", {"dir_path": "."})).text
        scripts = [name for name in self.listing.splitlines() if name.endswith(".py")]
        for name in scripts[: self.settings.shown_files]:
            if self.steps_left >= 3:
                seen = self.env.execute(Action("Read File", {"file_name": name}))
                if seen.ok:
                    self.surroundings.append((name, seen.text))
        self.start = self.at = len(self.env.history)

    def try_next(self) -> None:
        """Choose, propose, run and judge one solution."""
        stage, parent = self.tree.choose(self.settings, self.chance)
        solution = self._proposed(stage, parent)
        if solution is None:
            self.useless += 1
            return
        self.useless = 0
        node = self._run(stage, parent, solution)
        if self.tree.best is not None:
            self._stand_on(self.tree.best)
        node = self._judged(node)
        self.tree.nodes.append(node)
        self.env.note(
            "node",
            {
                "index": node.index,
                "stage": stage,
                "parent": None if parent is None else parent.index,
                "step": node.step,
                "is_bug": node.is_bug,
                "metric": node.metric,
                "summary": node.summary,
            },
        )
        self._stand_on(self.tree.standing)

    def _run(self, stage: Stage, parent: Node | None, solution: Solution) -> Node:
        self._go(self.start if parent is None else parent.step)
        acts = [
            Action("Write File", {"file_name": name, "content": content})
            for name, content in solution.files
        ]
        acts.append(Action("Execute Script", {"script_name": solution.run}))
        for act in acts:
            seen = self.env.execute(
                act, timeout=None if math.isinf(self.seconds_left) else self.timeout()
            )
            if not seen.ok:
                break  # what could not be written need not be run
        self.at, self.missing = len(self.env.history), ()
        files = {**({} if parent is None else parent.files), **dict(solution.files)}
        index = len(self.tree.nodes) + 1
        return Node(
            index, stage, parent, solution.plan, files, solution.run, self.at, seen.text, seen.ok
        )

    def submit(self) -> None:
        """Hand in the best solution's workspace."""
        node = self.tree.standing
        self._stand_on(node)
        if node is not None and self.missing and self.steps_left >= 1:
            self.env.note("made_again", {"node": node.index, "files": list(self.missing)})
            self.env.execute(Action("Execute Script", {"script_name": node.run}))
        said = (
            "no solution worked"
            if node is None
            else f"node {node.index}, metric {node.metric}: {node.plan}"
        )
        self.env.execute(Action("Final Answer", {"final_answer": said}))

    def _stand_on(self, node: Node | None) -> None:
        self._go(self.start if node is None else node.step)

    def _go(self, step: int) -> None:
        """Bring the workspace back to what it was after ``step``, but for files that were not
        kept."""
        if step != self.at:
            self.missing = self.env.restore(step)
            self.at = step

    # --- asking ---

    def _proposed(self, stage: Stage, parent: Node | None) -> Solution | None:
        """A solution, None when no answer was of use."""
        problem = ""
        for attempt in range(1 + self.settings.re_asks):
            reply = self._ask(stage, parent, problem)
            solution = read_solution(reply.text, self.settings.script)
            if solution is None:
                problem = f"it holds neither a file nor a script to run{because(reply)}"
            elif len(solution.files) + 1 > self.steps_left:
                problem = (
                    f"it changes {len(solution.files)} files, at most {self.steps_left - 1} can be"
                    " changed now"
                )
            else:
                return solution
            self.env.note("answer_refused", {"attempt": attempt + 1, "problem": problem})
        return None

    def _ask(self, stage: Stage, parent: Node | None, problem: str) -> ModelReply:
        """The main model's answer; the prompt is made narrower until it fits."""
        while True:
            prompt = self._prompt(stage, parent, problem)
            try:
                return self.env.model.complete(prompt, temperature=self.settings.temperature)
            except ContextWindowError as error:
                self._narrow(error)

    def _narrow(self, error: ContextWindowError) -> None:
        """Show half as much from now on; raises ``error`` when little is left to leave out."""
        if self.scale < _NARROWEST:
            raise error
        self.scale /= 2
        self.env.note("prompt_narrowed", {"scale": self.scale})

    def _judged(self, node: Node) -> Node:
        review = self._review(node)
        if review is None:
            return node
        works = node.ok and not review.is_bug and review.metric is not None
        return replace(
            node,
            is_bug=not works,
            metric=review.metric if works else None,
            lower_is_better=review.lower_is_better,
            summary=review.summary,
        )

    def _review(self, node: Node) -> Review | None:
        asked = 0
        while asked <= self.settings.re_asks:
            prompt = self._text(
                "review",
                task=self.env.task_description,
                solution=self._solution(node),
                output=self._cut(node.output, self.settings.output_chars),
            )
            try:
                reply = self.env.model.complete(
                    prompt, role="fast", temperature=self.settings.review_temperature, schema=REVIEW
                )
            except ContextWindowError as error:
                self._narrow(error)
                continue
            if (review := read_review(reply.text)) is not None:
                return review
            asked += 1
            self.env.note("review_refused", {"attempt": asked, "reply": reply.text[:200]})
        return None

    # --- texts ---

    def _prompt(self, stage: Stage, parent: Node | None, problem: str) -> str:
        parts = [self._text("introduction", task=self.env.task_description)]
        if self.listing:
            parts.append(
                self._text(
                    "surroundings", listing=self._cut(self.listing, self.settings.output_chars)
                )
            )
        parts += [
            self._text("file", name=name, content=self._cut(content, self.settings.file_chars))
            for name, content in self.surroundings
        ]
        if entries := self._memory():
            parts.append(self._text("memory", entries=entries))
        parts.append(self._task_of(stage, parent))
        # the same in every prompt: what depends on the clock could not be replayed
        seconds = self.settings.script_share * self.env.budget.max_seconds
        shown = f"at most {seconds:.0f} seconds, and less later"
        if math.isinf(seconds):
            shown = "as much time as it needs"
        files = str(max(1, min(9, self.steps_left - 1)))
        parts.append(self._text("form", script=self.settings.script, seconds=shown, files=files))
        if problem:
            parts.append(self._text("reminder", problem=problem))
        return "\n\n".join(parts)

    def _task_of(self, stage: Stage, parent: Node | None) -> str:
        if parent is None:
            return self._text("draft")
        if stage == "improve":
            return self._text("improve", solution=self._solution(parent), result=_result(parent))
        finding = f"A review found: {parent.summary}" if parent.summary else ""
        output = self._cut(parent.output, self.settings.output_chars)
        return self._text("debug", solution=self._solution(parent), output=output, finding=finding)

    def _memory(self) -> str:
        count = int(self.settings.memory * self.scale)
        shown = self.tree.good[-count:] if count else []
        return "\n".join(f"- {node.plan} Result: {_result(node)}" for node in shown)

    def _solution(self, node: Node) -> str:
        files = "\n\n".join(
            self._text(
                "solution_file", name=name, content=self._cut(content, self.settings.file_chars)
            )
            for name, content in node.files.items()
        )
        return self._text("solution", plan=node.plan, files=files, run=node.run)

    def _cut(self, text: str, limit: int) -> str:
        return cut(text, max(50, int(limit * self.scale)))

    def _text(self, section: str, **values: str) -> str:
        return self.texts[section].substitute(values)


def _result(node: Node) -> str:
    return f"metric {node.metric:.6g}. {node.summary}" if node.metric is not None else node.summary
