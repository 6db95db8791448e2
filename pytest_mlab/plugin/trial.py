"""The object that tests judge: a trial that has ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_mlab.core.trial import Outcome, TrialId, TrialResult

if TYPE_CHECKING:
    from pytest_mlab.store.rundir import RunDir

TRIAL: pytest.StashKey[Trial] = pytest.StashKey()


class Files(Mapping[str, bytes]):
    """The files of a trial's final workspace, read from its snapshot when asked for.

    The task's public data are left out, as are files that were too large or impossible to keep.
    """

    def __init__(self, run: RunDir, snapshot: str) -> None:
        self._run = run
        self._snapshot = snapshot

    @cached_property
    def _digests(self) -> dict[str, str]:
        from pytest_mlab.store import manifest

        if not self._snapshot:
            return {}
        tree = manifest.load(self._run.store, self._snapshot)
        found = {
            manifest.decode(path): (entry, manifest.digest_of(entry))
            for path, entry in tree.items()
        }
        return {
            path: digest
            for path, (entry, digest) in found.items()
            if digest and not entry.startswith("public:") and self._run.store.has(digest)
        }

    def __getitem__(self, path: str) -> bytes:
        return self._run.store.read_bytes(self._digests[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)


@dataclass(frozen=True, repr=False)
class Trial:
    """A trial that has ended. ``result`` holds all facts; the properties are the usual ones."""

    result: TrialResult
    run: RunDir

    def __repr__(self) -> str:
        return f"<trial {self.id.name}: {self.outcome.value}>"

    @property
    def id(self) -> TrialId:
        """Task, agent, model and repeat."""
        return self.result.id

    @property
    def outcome(self) -> Outcome:
        """The kind of its end."""
        return self.result.outcome

    @property
    def reason(self) -> str:
        """Why, in one sentence."""
        return self.result.reason

    @property
    def beats_baseline(self) -> bool:
        """True when the score is strictly better than what the task asks for."""
        return self.outcome is Outcome.SUCCESS

    @property
    def score(self) -> float | None:
        """The evaluator's score of the final workspace, None when there is none."""
        return self.result.score

    @property
    def baseline(self) -> float | None:
        """The mean score of the starter code."""
        return self.result.baseline

    @property
    def needed(self) -> float | None:
        """The score that had to be passed."""
        return self.result.needed

    @property
    def improvement(self) -> float | None:
        """Relative improvement over the baseline: 0.1 is 10 % better."""
        return self.result.improvement

    @property
    def steps(self) -> int:
        """Actions that the agent took."""
        return self.result.ledger.steps

    @property
    def cost(self) -> float | None:
        """Dollars, None when the price of any call is unknown."""
        return self.result.cost

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens of all calls."""
        return self.result.ledger.usage.total

    @property
    def seconds(self) -> float:
        """Wall time of the agent's part."""
        return self.result.ledger.seconds

    @property
    def path(self) -> Path:
        """The trial's folder, with its trace."""
        return self.run.trial(self.id).path

    @cached_property
    def files(self) -> Files:
        """The final workspace: contents by relative path."""
        return Files(self.run, self.result.snapshot)

    def explain(self) -> str:
        """The outcome in a few short lines: reason, scores, use of the budget, the place of the
        trace and the command that shows it."""
        from pytest_mlab.lib.durations import format_duration
        from pytest_mlab.store.trialdir import AGENT_LOG

        budget = self.run.plan.settings.budget
        seconds = format_duration(max(self.seconds, 0.1))
        spent = f"{self.steps} of {budget.max_steps} steps, {seconds}"
        if not math.isinf(budget.max_seconds):
            spent += f" of {format_duration(budget.max_seconds)}"
        if self.tokens:
            price = "price unknown" if self.cost is None else f"${self.cost:.2f}"
            spent += f", {self.tokens} tokens, {price}"
        scores = [
            ("score", self.score),
            ("baseline", self.baseline),
            ("needed: better than", self.needed),
        ]
        folder = nearby(self.run.path)
        lines = [f"{self.outcome.value}: {self.reason or 'no reason was recorded'}"]
        lines += [
            "  " + ", ".join(f"{name} {value:.6g}" for name, value in scores if value is not None)
        ]
        lines += [f"  note: {note}" for note in self.result.remarks]
        lines += [f"  used {spent}", f"  trace {nearby(self.path)}/trace.jsonl"]
        if (self.path / AGENT_LOG).is_file():
            lines += [f"  log   {nearby(self.path)}/{AGENT_LOG} (what the agent printed)"]
        lines += [f"  see   mlab show {folder} {self.id.name}"]
        return "\n".join(line for line in lines if line.strip())


def nearby(path: Path) -> str:
    """``path`` relative to the current folder where that is shorter to read."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
