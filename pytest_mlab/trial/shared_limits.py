"""The gate between a trial and its model providers, which all workers of the run share."""

from __future__ import annotations

import os
import time

from pytest_mlab.core.routes import endpoint, limits_of
from pytest_mlab.models.limiter import Line, RunGate, window_from
from pytest_mlab.store.events import Note
from pytest_mlab.store.journal import Journal
from pytest_mlab.store.shared import Shared
from pytest_mlab.trial.job import Job

RATES = "rates"
"""The folder in a run directory that holds the counts of requests and tokens a minute."""


def run_gate(job: Job, journal: Journal) -> RunGate:
    """The gate of ``job``; its notes go to the trial's trace. Raises ConfigError for a window that
    makes no sense."""
    shared = Shared(job.run.path)

    def line(name: str) -> Line:
        rpm, tpm = limits_of(name, job.settings)
        settings = job.settings.of_model(name)
        return Line(endpoint(settings), rpm, tpm, settings.params.get("max_tokens"))

    def charge(model: str, dollars: float | None) -> None:
        shared.spend(job.trial.name, model, dollars)

    def note(text: str) -> None:
        journal.write(Note(t=time.time(), kind="limits", data={"text": text}))

    return RunGate(
        shared, job.run.path / RATES, line, charge, window=window_from(os.environ), note=note
    )
