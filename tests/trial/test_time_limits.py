"""The time limits of a trial's parts fit together."""

from __future__ import annotations

import inspect

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.trial.evaluate import evaluate
from pytest_mlab.trial.runner import TrialRunner
from pytest_mlab.trial.time_limits import (
    AROUND_AGENT,
    EVALUATOR,
    agent_phase_seconds,
    finish_phase_seconds,
    grace_of,
    trial_seconds,
)


@pytest.mark.parametrize(("seconds", "grace"), [(1.0, 5.0), (300.0, 30.0), (5 * 3600.0, 60.0)])
def test_a_small_budget_has_a_small_grace(seconds: float, grace: float) -> None:
    assert grace_of(Budget(max_seconds=seconds)) == grace


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("exclude_waits", [False, True])
@pytest.mark.parametrize("seconds", [1.0, 60.0, 5 * 3600.0])
def test_a_trial_has_more_time_than_its_phases(
    seconds: float, exclude_waits: bool, timed: bool
) -> None:
    budget = Budget(max_seconds=seconds, exclude_waits=exclude_waits)
    phases = agent_phase_seconds(budget, grace_of(budget)) + finish_phase_seconds(timed=timed)
    assert phases + 600 <= trial_seconds(budget, timed=timed)


def test_the_agent_phase_covers_budget_waits_and_grace() -> None:
    budget = Budget(max_seconds=60.0, exclude_waits=True)
    assert agent_phase_seconds(budget, grace=7.0, around=1.0) == 60.0 + 600.0 + 7.0 + 1.0


def test_a_timed_evaluation_may_wait_for_31_others() -> None:
    assert finish_phase_seconds(timed=False) > EVALUATOR
    assert finish_phase_seconds(timed=True) == 32 * finish_phase_seconds(timed=False)


def test_runner_and_evaluation_take_their_limits_from_here() -> None:
    assert inspect.signature(TrialRunner).parameters["around"].default == AROUND_AGENT
    assert inspect.signature(evaluate).parameters["timeout"].default == EVALUATOR
