"""The model of a trial: a provider's client, wrapped in what the run asks for, metered."""

from __future__ import annotations

from pytest_mlab.compose.job import Job
from pytest_mlab.core.plan import Models
from pytest_mlab.core.ports import Model, ModelClient
from pytest_mlab.runtime.account import Account
from pytest_mlab.runtime.environ import Redactor
from pytest_mlab.runtime.metering import MeteredModel
from pytest_mlab.store.journal import Journal


def make_model(job: Job, account: Account, journal: Journal, redact: Redactor) -> Model | None:
    """What the trial's agent gets as ``env.model``; None for an agent that needs no model."""
    if not job.planned_agent.needs_model:
        return None
    models = Models(job.trial.model, job.settings.edit_model, job.settings.fast_model)
    return MeteredModel(_client(), models, account, journal, job.run.store, redact)


def _client() -> ModelClient:
    from pytest_mlab.adapters.models.litellm_client import LitellmClient

    return LitellmClient()
