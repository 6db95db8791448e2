"""How a trial's model is put together: a provider's client, limited, recorded or replayed, metered;
and the endpoint by which a program reaches it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlab import __version__
from pytest_mlab.core.agent_api import Agent
from pytest_mlab.core.model_api import Model, ModelClient, Role
from pytest_mlab.core.plan import Models
from pytest_mlab.core.routes import RouteLimits, limits_of
from pytest_mlab.errors import StoreError
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.models.recording.format import Header, file_of, read_recording
from pytest_mlab.models.recording.recorder import RecordingClient, cleaner
from pytest_mlab.models.recording.replay import ReplayClient
from pytest_mlab.models.recording.writer import RecordingFile
from pytest_mlab.store.events import Note
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.shared import Shared
from pytest_mlab.trial.account import Account
from pytest_mlab.trial.job import Job
from pytest_mlab.trial.metering import MeteredModel

if TYPE_CHECKING:
    from pytest_mlab.models.endpoint.server import Endpoint


@dataclass(frozen=True)
class TrialModel:
    """The model of a trial. ``model`` is what the agent gets as ``env.model``, None for an agent
    that needs no model."""

    model: Model | None = None
    recording: RecordingFile | None = None
    replay: ReplayClient | None = None

    @property
    def fault(self) -> str:
        """Why a replay does not fit its recording, also when the agent caught the error; '' when it
        fits."""
        return self.replay.fault if self.replay else ""

    def end(self) -> str:
        """Close the recording; a note on recorded calls that were not made, or ''."""
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
        replayed = _replay(job, redact, inside, pass_time)
        for text in replayed.notes:
            journal.write(Note(t=time.time(), kind="replay", data={"text": text}))
        return TrialModel(metered(replayed), replay=replayed)
    client = _provider(job, journal)
    if job.settings.record:
        recorded = _record(job, client, models, redact, inside)
        return TrialModel(metered(recorded), recording=recorded.file)
    return TrialModel(metered(client))


def make_endpoint(job: Job, agent: Agent) -> Endpoint | None:
    """Where the agent's programs reach the trial's models; None for an agent that runs no program,
    or without a model. It listens already: a socket must exist before a sandbox can show it."""
    if not (getattr(agent, "needs_endpoint", False) and job.planned_agent.needs_model):
        return None
    from pytest_mlab.models.endpoint.server import Endpoint

    job.scratch.mkdir(parents=True, exist_ok=True)
    models = Models(job.trial.model, job.settings.edit_model, job.settings.fast_model)
    names: dict[Role, tuple[str, ...]] = {
        role: (name, job.settings.of_model(name).model)
        for role, name in (("main", models.main), ("fast", models.fast), ("edit", models.edit))
        if name
    }
    return Endpoint(job.socket, names)


def _provider(job: Job, journal: Journal) -> ModelClient:
    """A client under the limits that all workers of the run share. Notes on waits go to the trace.
    Raises ConfigError for a window that makes no sense."""
    from pytest_mlab.models.limiter import RunLimiter, window_from
    from pytest_mlab.models.litellm_client import LitellmClient
    from pytest_mlab.models.refused import Refusals
    from pytest_mlab.models.text_tools import TextTools

    shared = Shared(job.run.path)

    def limits(name: str) -> RouteLimits:
        return limits_of(name, job.settings)

    def charge(model: str, dollars: float | None) -> None:
        shared.spend(job.trial.name, model, dollars)

    def note(text: str) -> None:
        journal.write(Note(t=time.time(), kind="limits", data={"text": text}))

    window = window_from(os.environ)
    limiter = RunLimiter(shared, shared.path, limits, charge, window=window, note=note)
    # Below the recorder: a recording holds the tool calls that the agent got, whatever protocol
    # brought them.
    provider = LitellmClient(
        limiter=limiter, settings=job.settings.of_model, refusals=Refusals(shared)
    )
    return TextTools(provider)


# --- recordings ---


def _record(
    job: Job, client: ModelClient, models: Models, redact: Redactor, inside: str
) -> RecordingClient:
    """``client``, recorded into the run's folder. An earlier attempt's recording of this trial is
    replaced. Raises StoreError when the file cannot be written."""
    names = dict.fromkeys(name for name in (models.main, models.edit, models.fast) if name)
    header = Header(
        trial=job.trial,
        task_digest=job.planned_task.digest,
        agent_digest=job.planned_agent.digest,
        settings=_settings(job),
        facts={name: client.facts(name) for name in names},
        by=f"pytest-mlab {__version__}",
    )
    path = file_of(Path(job.settings.record), job.trial)
    try:
        return RecordingClient(client, RecordingFile(path, header, _clean(job, redact, inside)))
    except OSError as error:
        raise StoreError(f"the recording {path} cannot be written: {error.strerror}") from error


def _replay(
    job: Job, redact: Redactor, inside: str, pass_time: Callable[[float], None]
) -> ReplayClient:
    """A client that answers from the trial's recording. Raises ReplayError."""
    folder = Path(job.settings.replay)
    path = file_of(folder, job.trial)
    recording = read_recording(path)
    name = str(path.relative_to(folder.parent))
    changed = list(_changes(job, recording.header))
    since = list(changed)
    if recording.header.agent_digest != job.planned_agent.digest:
        since.insert(0, "the agent has changed")
    return ReplayClient(
        recording,
        name=name,
        mode=job.settings.replay_mode,
        clean=_clean(job, redact, inside),
        workspace=inside,
        pass_time=pass_time,
        since="; ".join(since),
        notes=[f"since {name} was recorded: {'; '.join(changed)}"] if changed else (),
    )


def _changes(job: Job, header: Header) -> Iterable[str]:
    """How the trial differs from the one that was recorded. Its agent may differ: that is what
    replays test."""
    if header.task_digest != job.planned_task.digest:
        yield (
            f"the task has changed (digest {header.task_digest[:12]}, is"
            f" {job.planned_task.digest[:12]})"
        )
    now = _settings(job)
    for name in sorted(now.keys() | header.settings.keys()):
        was, found = header.settings.get(name), now.get(name)
        if was != found:
            yield f"{name.replace('_', '-')} was {was}, is {found}"


def _settings(job: Job) -> dict[str, object]:
    settings = job.settings
    return {
        "data": settings.data,
        "data_digest": job.prepared.digest[:12],
        "sandbox": settings.sandbox,
        "network": settings.network,
        "edit_model": settings.edit_model,
        "fast_model": settings.fast_model,
        **{name: value for name, value in asdict(job.budget).items() if value is not None},
        **{f"agent.{name}": value for name, value in job.planned_agent.settings.items()},
    }


def _clean(job: Job, redact: Redactor, inside: str) -> Callable[[str], str]:
    # Prompts may name the workspace in any of these forms. It differs from run to run, so a
    # recorded prompt would never match.
    return cleaner(redact, (inside, str(job.workspace), os.path.realpath(job.workspace)))
