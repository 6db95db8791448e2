"""A trial's recording: what its calls are written to, or answered from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from pytest_mlab import __version__
from pytest_mlab.core.model_api import ModelClient
from pytest_mlab.core.plan import Models
from pytest_mlab.errors import StoreError
from pytest_mlab.lib.secrets import Redactor
from pytest_mlab.models.recording.format import Header, file_of, read_recording
from pytest_mlab.models.recording.recorder import RecordingClient, cleaner
from pytest_mlab.models.recording.replay import ReplayClient
from pytest_mlab.models.recording.writer import RecordingFile
from pytest_mlab.trial.job import Job


def record(
    job: Job, client: ModelClient, models: Models, redact: Redactor, inside: str
) -> RecordingClient:
    """``client``, recorded into the run's folder; an earlier attempt's recording of this trial is
    replaced. ``inside`` is the workspace's path in the sandbox. Raises StoreError when the file
    cannot be written."""
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


def replay(
    job: Job, redact: Redactor, inside: str, pass_time: Callable[[float], None]
) -> ReplayClient:
    """A client that answers from the trial's recording. Raises ReplayError."""
    folder = Path(job.settings.replay)
    path = file_of(folder, job.trial)
    recording = read_recording(path)
    agent = recording.header.agent_digest != job.planned_agent.digest
    changed = list(changes(job, recording.header))
    return ReplayClient(
        recording,
        name=str(path.relative_to(folder.parent)),
        mode=job.settings.replay_mode,
        clean=_clean(job, redact, inside),
        workspace=inside,
        pass_time=pass_time,
        since="; ".join([*(["the agent has changed"] if agent else []), *changed]),
        notes=(
            [f"since {path.relative_to(folder.parent)} was recorded: {'; '.join(changed)}"]
            if changed
            else ()
        ),
    )


def changes(job: Job, header: Header) -> Iterable[str]:
    """In what a trial is not the one that ``header`` is of, its agent apart: that may change, it is
    what replays test."""
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
    return cleaner(redact, (inside, str(job.workspace), os.path.realpath(job.workspace)))
