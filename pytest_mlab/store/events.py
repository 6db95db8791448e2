"""The trace's events: one JSON object a line of ``trace.jsonl``, the only source of a trial's
metrics.

``v`` is the event's format version, ``t`` the Unix time in seconds at which it was written. Readers
ignore fields that they do not know; a field's meaning never changes, a new meaning gets a new name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.core.trial import EndedBy, Outcome, TrialId

EVENT_VERSION = 1


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    v: int = EVENT_VERSION
    t: float


class TrialStarted(_Event):
    """The first line: what runs, under which budget, from which content."""

    type: Literal["trial_started"] = "trial_started"
    trial: TrialId
    pid: int
    sandbox: str
    budget: Budget
    task_digest: str
    data: str
    data_digest: str
    agent_digest: str
    machine: str
    starter: str
    """Snapshot id of the fresh workspace."""


class ModelCall(_Event):
    """One model call, failed ones included; ``prompt`` and ``reply`` are digests of blobs in the
    run's store."""

    type: Literal["model_call"] = "model_call"
    role: str
    model: str
    prompt: str
    reply: str = ""
    usage: Usage = Usage()
    cost: float | None = None
    seconds: float
    waited: float = 0.0
    retries: int = 0
    finish_reason: str = ""
    tool_calls: list[dict[str, str]] = Field(default_factory=list)
    """What the model called: ``name`` and ``arguments`` (JSON text) of each."""
    reasoning: str = ""
    """The digest of a blob with the reply's reasoning, a JSON list of blocks; '' without any."""
    fell_back: bool = False
    """The tools went by text, because the provider had refused them."""
    remark: str = ""
    """What was done otherwise than the agent asked."""
    error: str = ""
    ledger: Ledger


class StepDone(_Event):
    """One step. ``set`` and ``deleted`` are what the workspace changed since the step before: path
    → digest."""

    type: Literal["step"] = "step"
    index: int
    action: str
    args: dict[str, Any]
    observation: str
    ok: bool
    exit_status: int | None = None
    output_file: str = ""
    output_bytes: int = 0
    killed_for: str = ""
    seconds: float
    snapshot: str
    set: dict[str, str] = Field(default_factory=dict)
    deleted: list[str] = Field(default_factory=list)
    ledger: Ledger


class WorkspaceRestoring(_Event):
    """The workspace is about to become what it was after ``step`` (0: the fresh one), which is
    ``snapshot``."""

    type: Literal["workspace_restoring"] = "workspace_restoring"
    step: int
    snapshot: str


class WorkspaceRestored(_Event):
    """It has; ``snapshot`` is what it is now, ``set`` and ``deleted`` what that changed, as in a
    step. ``missing`` are files whose content was not kept: they are not there."""

    type: Literal["workspace_restored"] = "workspace_restored"
    step: int
    snapshot: str
    set: dict[str, str] = Field(default_factory=dict)
    deleted: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    seconds: float
    ledger: Ledger


class ProgramEnded(_Event):
    """An agent's program ended. ``output`` is what it printed, long ones cut in the middle;
    ``output_file`` keeps it whole."""

    type: Literal["program_ended"] = "program_ended"
    argv: list[str]
    exit_status: int | None
    killed_for: str = ""
    output: str
    output_file: str = ""
    output_bytes: int = 0
    seconds: float


class Note(_Event):
    """An agent's own event."""

    type: Literal["note"] = "note"
    kind: str
    data: dict[str, Any]


class AgentEnded(_Event):
    """The agent's part is over and the workspace frozen as ``snapshot``."""

    type: Literal["agent_ended"] = "agent_ended"
    ended_by: EndedBy
    outcome: Outcome | None = None
    """Set when the end decides the outcome before any evaluation (agent, infra or provider
    error)."""
    reason: str = ""
    snapshot: str = ""
    tampered: list[str] = Field(default_factory=list)
    """Read-only files whose content is no longer the original's."""
    ledger: Ledger


class Evaluation(_Event):
    """One scoring of one snapshot; ``step`` None is the final workspace."""

    type: Literal["evaluation"] = "evaluation"
    step: int | None = None
    snapshot: str = ""
    verdict: Literal["scored", "invalid_submission", "no_submission", "task_error", "infra_error"]
    score: float | None = None
    reason: str = ""
    details: dict[str, Any] = Field(default_factory=dict)
    seconds: float


class TrialFinished(_Event):
    """The last line; result.json says the same."""

    type: Literal["trial_finished"] = "trial_finished"
    outcome: Outcome
    reason: str = ""


Event = Annotated[
    Union[
        TrialStarted,
        ModelCall,
        StepDone,
        WorkspaceRestoring,
        WorkspaceRestored,
        ProgramEnded,
        Note,
        AgentEnded,
        Evaluation,
        TrialFinished,
    ],
    Field(discriminator="type"),
]
