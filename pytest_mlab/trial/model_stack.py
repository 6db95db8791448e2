"""The model of a trial: a provider's client, wrapped in what the run asks for, metered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_mlab.core.model_api import Model, ModelClient
from pytest_mlab.core.plan import Models
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.store.events import Note
from pytest_mlab.store.journal import Journal
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.job import Job
from pytest_mlab.trial.metering import MeteredModel

if TYPE_CHECKING:
    from pytest_mlab.models.recording.replay import ReplayClient
    from pytest_mlab.models.recording.writer import RecordingFile


@dataclass(frozen=True)
class TrialModel:
    """The model of a trial until the agent's part is over. ``model`` is what the agent gets as
    ``env.model``, None for one that needs no model."""

    model: Model | None = None
    recording: RecordingFile | None = None
    replay: ReplayClient | None = None

    @property
    def fault(self) -> str:
        """Why a replay does not fit its recording, whatever the agent made of the error; '' when it
        does."""
        return self.replay.fault if self.replay else ""

    def end(self) -> str:
        """Close what was opened; a note on recorded calls that nobody asked for, or ''."""
        if self.recording:
            self.recording.end()
        return self.replay.left_over if self.replay else ""


def make_model(
    job: Job,
    account: Account,
    journal: Journal,
    redact: Redactor,
    *,
    inside: str = "",
    pass_time: Callable[[float], None] = lambda seconds: None,
) -> TrialModel:
    """The model of ``job``. ``inside`` is the workspace's path in the sandbox, which recordings
    leave out; ``pass_time`` moves the trial's clock by what replayed calls took. Raises StoreError,
    ReplayError."""
    if not job.planned_agent.needs_model:
        return TrialModel()
    models = Models(job.trial.model, job.settings.edit_model, job.settings.fast_model)

    def metered(client: ModelClient) -> Model:
        return MeteredModel(client, models, account, journal, job.run.store, redact)

    if job.settings.replay:
        from pytest_mlab.trial.recorded import replay

        replayed = replay(job, redact, inside, pass_time)
        for text in replayed.notes:
            journal.write(Note(t=time.time(), kind="replay", data={"text": text}))
        return TrialModel(metered(replayed), replay=replayed)
    client = _client(job, journal)
    if job.settings.record:
        from pytest_mlab.trial.recorded import record

        recorded = record(job, client, models, redact, inside)
        return TrialModel(metered(recorded), recording=recorded.file)
    return TrialModel(metered(client))


def _client(job: Job, journal: Journal) -> ModelClient:
    from pytest_mlab.models.litellm_client import LitellmClient
    from pytest_mlab.models.text_tools import TextTools
    from pytest_mlab.trial.shared_limits import run_limiter

    limiter = run_limiter(job, journal)
    return TextTools(LitellmClient(limiter=limiter, settings=job.settings.of_model))
