"""The limiter between a trial and its model providers, which all workers of the run share."""

from __future__ import annotations

import os
import time

from pytest_mlab.core.routes import RouteLimits, limits_of
from pytest_mlab.models.limiter import RunLimiter, window_from
from pytest_mlab.store.events import Note
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.shared import Shared
from pytest_mlab.trial.job import Job


def run_limiter(job: Job, journal: Journal) -> RunLimiter:
    """The limiter of ``job``; its notes go to the trial's trace. Raises ConfigError for a window
    that makes no sense."""
    shared = Shared(job.run.path)

    def limits(name: str) -> RouteLimits:
        return limits_of(name, job.settings)

    def charge(model: str, dollars: float | None) -> None:
        shared.spend(job.trial.name, model, dollars)

    def note(text: str) -> None:
        journal.write(Note(t=time.time(), kind="limits", data={"text": text}))

    window = window_from(os.environ)
    return RunLimiter(shared, shared.path, limits, charge, window=window, note=note)
