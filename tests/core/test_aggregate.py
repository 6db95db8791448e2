from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlab.core.aggregate import SubjectSummary, complete, summarize, summarize_task
from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
from tests.core.builders import CONDITIONS, a_result, by_id

OUTCOMES = st.sampled_from(list(Outcome))


def one(results: list[TrialResult], trials: list[TrialId] | None = None) -> SubjectSummary:
    (subject,) = summarize(trials or [r.id for r in results], by_id(results), CONDITIONS)
    return subject


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.none(), OUTCOMES), min_size=1, max_size=10))
def test_every_planned_trial_has_exactly_one_outcome(drawn: list[Outcome | None]) -> None:
    trials = [TrialId("toy", "research", "m", k) for k in range(1, len(drawn) + 1)]
    results = [a_result(k, o) for k, o in enumerate(drawn, start=1) if o is not None]
    (subject,) = summarize(trials, by_id(results), CONDITIONS)
    (task,) = subject.tasks
    assert sum(task.outcomes.values()) == len(trials) == task.planned == subject.planned
    assert task.rate.n == len(trials)
    assert task.valid_rate.n + task.excluded == len(trials)
    assert (
        task.outcomes[Outcome.NOT_RUN]
        == sum(o in (None, Outcome.NOT_RUN) for o in drawn)
        == len(task.missing)
    )
    assert (
        task.rate.successes == task.valid_rate.successes == sum(o is Outcome.SUCCESS for o in drawn)
    )


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(1, 9)))
def test_the_order_of_results_changes_nothing(order: list[int]) -> None:
    results = [
        a_result(
            k,
            Outcome.SUCCESS if k % 3 else Outcome.BELOW_THRESHOLD,
            improvement=0.1 * k,
            seconds=0.1 * k,
            cost=0.1,
        )
        for k in range(1, 9)
    ]
    shuffled = [results[k - 1] for k in order]
    assert one(shuffled) == one(results)


def test_errors_stay_in_the_headline_and_leave_the_second_rate() -> None:
    results = [a_result(k) for k in range(1, 5)] + [
        a_result(k, Outcome.BELOW_THRESHOLD) for k in (5, 6)
    ]
    results += [a_result(7, Outcome.INFRA_ERROR), a_result(8, Outcome.PROVIDER_ERROR)]
    (task,) = one(results).tasks
    assert task.rate.value == 0.5
    assert task.rate.interval == pytest.approx((0.157, 0.843), abs=1e-3)
    assert task.valid_rate.value == pytest.approx(4 / 6)
    assert task.excluded == 2


def test_nothing_valid_has_no_valid_rate() -> None:
    (task,) = one([a_result(1, Outcome.INFRA_ERROR), a_result(2, Outcome.TASK_ERROR)]).tasks
    assert task.rate.value == 0.0
    assert (task.valid_rate.value, task.valid_rate.interval, task.excluded) == (None, None, 2)


def test_the_suites_mean_weighs_tasks_and_not_trials() -> None:
    results = [a_result(1, task="a")] + [
        a_result(k, Outcome.BELOW_THRESHOLD, task="b") for k in range(1, 8)
    ]
    subject = one(results)
    assert subject.rate == 0.5
    assert subject.interval == (0.0, 1.0)


def test_tasks_that_all_agree_have_no_interval() -> None:
    subject = one([a_result(k, task=t) for t in "abcd" for k in (1, 2)])
    assert subject.rate == 1.0
    assert subject.interval is None
    assert subject.tasks[0].rate.interval == pytest.approx((0.158, 1.0), abs=1e-3)


def test_pass_at_k_of_half_the_trials() -> None:
    (task,) = one(
        [a_result(k, Outcome.SUCCESS if k <= 4 else Outcome.NO_SUBMISSION) for k in range(1, 9)]
    ).tasks
    assert list(task.pass_at) == [1, 2, 4, 8]
    assert task.pass_at[1] == 0.5
    assert task.pass_at[2] == pytest.approx(1 - 6 / 28)
    assert task.pass_hat[2] == pytest.approx(6 / 28)
    assert (task.pass_at[8], task.pass_hat[8]) == (1.0, 0.0)


def test_improvement_is_over_valid_submissions_only() -> None:
    results = [a_result(k, improvement=0.1 * k) for k in range(1, 6)]
    results += [
        a_result(6, Outcome.INVALID_SUBMISSION, improvement=99.0),
        a_result(7, Outcome.BELOW_THRESHOLD),
    ]
    (task,) = one(results).tasks
    assert task.gain.n == 5
    assert task.gain.mean == pytest.approx(0.3)
    assert task.gain.median == pytest.approx(0.3)
    assert task.gain.interval is not None
    assert task.gain.interval.low < 0.3 < task.gain.interval.high


def test_no_improvement_known_is_none_and_not_zero() -> None:
    subject = one([a_result(1, Outcome.NO_SUBMISSION)])
    gain = subject.tasks[0].gain
    assert (gain.n, gain.mean, gain.median, gain.interval) == (0, None, None, None)
    assert (subject.gain, subject.gain_tasks) == (None, 0)


def test_failed_trials_are_paid_for_by_the_successful_ones() -> None:
    results = [
        a_result(1, cost=1.0),
        a_result(2, Outcome.BELOW_THRESHOLD, cost=2.0),
        a_result(3, cost=3.0),
    ]
    used = one(results).tasks[0].efficiency
    assert (used.cost, used.cost_per_trial, used.cost_per_success) == (6.0, 2.0, 3.0)
    assert (used.steps, used.seconds, used.tokens, used.median_tokens) == (30, 180.0, 360, 120.0)


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    used = one([a_result(1, cost=1.0), a_result(2, cost=None)]).tasks[0].efficiency
    assert (used.cost, used.cost_per_trial, used.cost_per_success) == (None, None, None)
    assert used.tokens == 240


def test_no_success_has_no_price() -> None:
    used = one([a_result(1, Outcome.AGENT_ERROR, cost=1.0)]).tasks[0].efficiency
    assert (used.cost, used.cost_per_success) == (1.0, None)


def test_what_was_not_run_uses_nothing() -> None:
    trials = [TrialId("toy", "research", "m", k) for k in (1, 2)]
    used = one([a_result(1)], trials).tasks[0].efficiency
    assert (used.n, used.steps, used.median_steps) == (1, 10, 10.0)
    none = one([], trials).efficiency
    assert (none.n, none.cost, none.cost_per_trial, none.median_seconds) == (0, 0.0, None, None)


def test_the_controls_rate_stands_beside_the_agents() -> None:
    results = [a_result(k, task=t) for t in "ab" for k in (1, 2)]
    results += [
        a_result(
            k,
            Outcome.SUCCESS if k == 1 else Outcome.BELOW_THRESHOLD,
            task="a",
            agent="baseline",
            model="",
        )
        for k in (1, 2)
    ]
    control, agent = summarize([r.id for r in results], by_id(results), CONDITIONS)
    assert control.is_control
    assert control.control is None
    assert [t.control and t.control.value for t in agent.tasks] == [0.5, None]
    assert agent.control == 0.5


def test_data_variants_and_sandboxes_are_never_mixed() -> None:
    results = [
        a_result(1),
        a_result(2, Outcome.BELOW_THRESHOLD, data="full"),
        a_result(3, Outcome.BELOW_THRESHOLD, sandbox="docker"),
        a_result(1, agent="baseline", model="", data="full"),
    ]
    subjects = summarize([r.id for r in results], by_id(results), CONDITIONS)
    found = [
        (s.agent, s.conditions.data, s.conditions.sandbox, s.rate, s.control) for s in subjects
    ]
    assert found == [
        ("baseline", "full", "bubblewrap", 1.0, None),
        ("research", "full", "bubblewrap", 0.0, 1.0),
        ("research", "mini", "bubblewrap", 1.0, None),
        ("research", "mini", "docker", 0.0, None),
    ]


def test_successes_that_may_be_noise_are_counted() -> None:
    results = [a_result(1, within_noise=True), a_result(2, within_noise=False)]
    results.append(a_result(3, Outcome.BELOW_THRESHOLD, within_noise=True))
    assert one(results).tasks[0].successes_within_noise == 1


def test_a_trial_planned_twice_is_refused() -> None:
    trial = TrialId("toy", "research", "m", 1)
    with pytest.raises(ValueError, match="toy-research-m-1"):
        complete([trial, trial], {})


def test_results_that_nobody_planned_do_not_count() -> None:
    subject = one([a_result(1), a_result(2)], [TrialId("toy", "research", "m", 1)])
    assert subject.planned == 1


def test_a_task_without_trials_is_summarized() -> None:
    empty = summarize_task("toy", [])
    assert (empty.planned, empty.rate.value, empty.pass_at) == (0, None, {})


def test_every_number_is_a_plain_one() -> None:
    results = [
        a_result(k, task=t, improvement=0.1 * k, cost=0.1) for t in "ab" for k in range(1, 6)
    ]
    results.append(a_result(6, Outcome.BELOW_THRESHOLD, task="a"))
    kinds: set[type] = set()
    _types(one(results), kinds)
    assert not [kind for kind in kinds if kind.__module__.startswith("numpy")]


def _types(value: Any, kinds: set[type]) -> None:
    kinds.add(type(value))
    if is_dataclass(value):
        for field in fields(value):
            _types(getattr(value, field.name), kinds)
    elif isinstance(value, dict):
        for key, item in value.items():
            _types(key, kinds)
            _types(item, kinds)
    elif isinstance(value, tuple):
        for item in value:
            _types(item, kinds)
