"""One trial: its name, the ways it can end, and its result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from pytest_mlab.core.budget import Ledger

RESULT_FORMAT = 1


# Not StrEnum, which Python has from 3.11 on. The package supports 3.10.
class Outcome(str, Enum):
    """How a planned trial ended: exactly one of these."""

    SUCCESS = "success"
    BELOW_THRESHOLD = "below_threshold"
    INVALID_SUBMISSION = "invalid_submission"
    NO_SUBMISSION = "no_submission"
    AGENT_ERROR = "agent_error"
    INFRA_ERROR = "infra_error"
    PROVIDER_ERROR = "provider_error"
    TASK_ERROR = "task_error"
    NOT_RUN = "not_run"

    @property
    def is_agents(self) -> bool:
        """True when the agent is responsible; False for infra, provider and task errors and for
        trials that did not run."""
        return self in _AGENTS_OWN

    @property
    def is_scored(self) -> bool:
        """True when the evaluator gave a score."""
        return self in (Outcome.SUCCESS, Outcome.BELOW_THRESHOLD)


_AGENTS_OWN = frozenset(
    {
        Outcome.SUCCESS,
        Outcome.BELOW_THRESHOLD,
        Outcome.INVALID_SUBMISSION,
        Outcome.NO_SUBMISSION,
        Outcome.AGENT_ERROR,
    }
)


class EndedBy(str, Enum):
    """The cause of the end of the agent phase."""

    SUBMITTED = "submitted"
    RETURNED = "returned"
    # These four are the names that Ledger.exhausted() gives: EndedBy is made from them.
    STEPS = "steps"
    SECONDS = "seconds"
    TOKENS = "tokens"
    COST = "cost"
    ERROR = "error"
    KILLED = "killed"


def slug(text: str) -> str:
    """``text`` as a file name and test id: ``[a-z0-9._-]`` only; changed texts get a short digest,
    so that two different texts do not share a slug. Only ``/`` and ``:`` become ``-`` without one
    (``openai/gpt-5`` reads ``openai-gpt-5``): a Plan refuses the two in one run."""
    clean = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.") or "x"
    if clean == text or re.sub(r"[/:]", "-", text) == clean:
        return clean
    return f"{clean}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


@dataclass(frozen=True, order=True)
class TrialId:
    """A trial's name: repeat ``repeat`` (from 1) of ``agent`` with ``model`` ('' for none) on
    ``task``."""

    task: str
    agent: str
    model: str
    repeat: int

    @property
    def subject(self) -> str:
        """Agent and model as one word, for folders and tables."""
        return slug(self.agent) + (f"--{slug(self.model)}" if self.model else "")

    @property
    def name(self) -> str:
        """The test id, such as ``cifar10-research-gpt-4-turbo-3``."""
        parts = [slug(self.task), slug(self.agent)] + ([slug(self.model)] if self.model else [])
        return "-".join([*parts, str(self.repeat)])

    @property
    def folder(self) -> PurePosixPath:
        """The trial's folder, relative to the run directory."""
        return PurePosixPath("trials", slug(self.task), self.subject, str(self.repeat))


@dataclass(frozen=True)
class TrialResult:
    """How one trial ended. All fields are plain values; ``None`` means unknown or not applicable.

    ``needed`` is the score that had to be passed (strictly); ``within_noise`` is True when the
    score does not lie outside the baseline's own spread (a two-sided 95 % prediction interval of
    one more baseline run); ``seconds`` is the agent's wall time, ``evaluation_seconds`` the
    evaluator's; timestamps are Unix seconds; ``notes`` are further sentences for the reader, such
    as that a replay left recorded calls unused; ``tools_by_text`` names the models that got their
    tools by text since their providers refused them; ``answered`` counts the model calls that were
    answered, by model (None in results of earlier versions)."""

    id: TrialId
    outcome: Outcome
    reason: str
    score: float | None = None
    baseline: float | None = None
    needed: float | None = None
    improvement: float | None = None
    within_noise: bool | None = None
    ended_by: EndedBy | None = None
    ledger: Ledger = Ledger()
    evaluation_seconds: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    sandbox: str = ""
    data: str = ""
    data_digest: str = ""
    task_digest: str = ""
    snapshot: str = ""
    notes: tuple[str, ...] = ()
    tools_by_text: tuple[str, ...] = ()
    answered: Mapping[str, int] | None = None
    format: int = RESULT_FORMAT

    @property
    def unanswered(self) -> bool:
        """True when a model was to be called and no call was answered."""
        answered = self.ledger.model_calls
        if self.answered is not None:
            answered = sum(self.answered.values())
        return bool(self.id.model) and not answered

    @property
    def cost(self) -> float | None:
        """Dollars; None when the price of any call is unknown, or when none was answered."""
        return None if self.unanswered else self.ledger.known_cost

    @property
    def remarks(self) -> tuple[str, ...]:
        """All that a reader of this one result should know: the notes, and whose tools went by
        text."""
        refused = (
            f"tools by text, no native ones: the provider of {model} refused them"
            for model in self.tools_by_text
        )
        return (*self.notes, *refused)
