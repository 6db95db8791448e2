"""Waits for a provider in a whole trial: off the agent's clock by option, and never for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.trial import EndedBy, Outcome
from pytest_mlab.store.events import ModelCall
from pytest_mlab.trial.runner import TrialRunner
from tests.support import scripted_server as script
from tests.support.scripted_server import ScriptedServer, say
from tests.support.toy_agents import write_toy_agents
from tests.support.toy_run import make_run
from tests.support.toy_suite import write_toy_suite

TIME = 10.0
GRACE = 0.5
WAIT = 11.0
"""Longer than the agent's time and its grace together."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_toy_suite(tmp_path)
    write_toy_agents(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    return tmp_path


def test_a_wait_that_does_not_count_moves_deadline_and_alarm(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget(max_steps=20, max_seconds=TIME, exclude_waits=True)
    run = make_run(project, ["talking"], model="openai/m", budget=budget)
    with ScriptedServer([script.rate_limited(WAIT), say("hello")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with TrialRunner(run.path, grace=GRACE) as trials:
            result = trials.run(run.plan.trials[0])
    assert (result.outcome, result.ended_by) == (Outcome.NO_SUBMISSION, EndedBy.SUBMITTED), (
        result.reason
    )
    assert result.ledger.waited >= WAIT
    assert result.ledger.seconds < TIME
    [call] = (event for event in run.trial(result.id).events() if isinstance(event, ModelCall))
    assert (call.retries, call.waited) == (1, result.ledger.waited)


def test_a_wait_that_counts_is_not_begun_when_it_would_pass_the_end(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(
        project, ["talking"], model="openai/m", budget=Budget(max_steps=20, max_seconds=TIME)
    )
    with ScriptedServer([script.rate_limited(WAIT), say("hello")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with TrialRunner(run.path, grace=GRACE) as trials:
            result = trials.run(run.plan.trials[0])
        assert len(server.requests) == 1
    assert result.outcome is Outcome.PROVIDER_ERROR
    assert result.ledger.waited == 0.0
