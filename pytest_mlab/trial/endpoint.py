"""The endpoint of a trial whose agent is a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_mlab.core.agent_api import Agent
from pytest_mlab.trial.job import Job

if TYPE_CHECKING:
    from pytest_mlab.models.endpoint.server import Endpoint


def make_endpoint(job: Job, agent: Agent) -> Endpoint | None:
    """Where the agent's programs reach the trial's models; None for an agent that runs none, or
    without a model. It listens already: a socket must exist to be shown in a sandbox."""
    if not (getattr(agent, "needs_endpoint", False) and job.planned_agent.needs_model):
        return None
    from pytest_mlab.models.endpoint.server import Endpoint

    job.scratch.mkdir(parents=True, exist_ok=True)
    return Endpoint(job.socket, (job.trial.model, job.settings.fast_model))
