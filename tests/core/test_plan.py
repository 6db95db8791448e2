from __future__ import annotations

import pytest

from pytest_mlab.core.budget import Budget
from pytest_mlab.core.plan import PLAN_FORMAT, Plan, RunSettings
from pytest_mlab.core.trial import TrialId
from pytest_mlab.errors import ConfigError


def a_plan(*trials: TrialId) -> Plan:
    return Plan("run", RunSettings(), (), (), trials)


def test_a_run_has_the_published_settings_unless_told_otherwise() -> None:
    settings = RunSettings()
    assert (settings.repeats, settings.budget, settings.data, settings.network) == (
        8,
        Budget(),
        "mini",
        False,
    )
    assert settings.threshold is None


def test_a_plan_keeps_the_order_of_its_trials() -> None:
    trials = tuple(TrialId(t, "research", "m", k) for k in (1, 2) for t in ("b", "a"))
    plan = a_plan(*trials)
    assert plan.trials == trials
    assert plan.format == PLAN_FORMAT


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (TrialId("t", "a", "m", 1), TrialId("t", "a", "m", 1), "name t-a-m-1"),
        (TrialId("t", "a", "o/m", 1), TrialId("t", "a", "o-m", 1), "name t-a-o-m-1"),
        (TrialId("t", "a-m", "", 1), TrialId("t", "a", "m", 1), "name t-a-m-1"),
        (TrialId("t", "a--m", "", 1), TrialId("t", "a", "m", 1), "folder trials/t/a--m/1"),
    ],
)
def test_trials_that_would_overwrite_each_other_are_refused(
    one: TrialId, other: TrialId, shared: str
) -> None:
    with pytest.raises(ConfigError, match=f"two trials have the {shared}.*leave one out"):
        a_plan(one, other)


def test_the_same_trial_twice_is_refused() -> None:
    trial = TrialId("t", "a", "m", 1)
    with pytest.raises(ConfigError, match="name t-a-m-1"):
        a_plan(trial, trial)
