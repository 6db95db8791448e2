from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from pytest_mlab.core.scoring import (
    T_975,
    beats,
    check_score,
    improvement,
    is_sentinel,
    judge,
    needed_score,
    prediction_interval,
    within_noise,
)
from pytest_mlab.core.task import Baseline, Direction, Metric, Threshold
from pytest_mlab.core.trial import Outcome
from pytest_mlab.errors import EvaluatorError, ScoringError
from tests.core.builders import a_baseline, a_task

UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE
MEASURED = st.floats(1e-3, 1e5).filter(lambda x: not is_sentinel(x))
SCORE = st.floats(-1e6, 1e6)


def test_improvement_has_the_sign_of_the_direction() -> None:
    assert improvement(0.6, 0.5, UP) == pytest.approx(0.2)
    assert improvement(0.6, 0.5, DOWN) == pytest.approx(-0.2)
    assert improvement(-1.0, -2.0, UP) == pytest.approx(0.5)


def test_improvement_over_zero_says_the_way_out() -> None:
    with pytest.raises(ScoringError, match=r"threshold\.absolute"):
        improvement(1.0, 0.0, UP)


@given(SCORE, MEASURED)
def test_improvement_changes_sign_with_the_direction(score: float, baseline: float) -> None:
    assert improvement(score, baseline, UP) == -improvement(score, baseline, DOWN)


@given(MEASURED, st.floats(0.0, 2.0), st.sampled_from([UP, DOWN]))
def test_a_score_exactly_at_the_threshold_is_no_success(
    mean: float, threshold: float, direction: Direction
) -> None:
    task = a_task(a_baseline(mean), direction=direction, threshold=Threshold(threshold))
    needed = needed_score(task, "mini")
    for tie in (needed, math.nextafter(needed, math.inf), math.nextafter(needed, -math.inf)):
        assert judge(task, "mini", tie).outcome is Outcome.BELOW_THRESHOLD


@given(MEASURED, st.floats(0.0, 0.9), st.floats(1e-6, 10.0), st.sampled_from([UP, DOWN]))
def test_a_score_better_than_needed_succeeds_and_a_worse_one_does_not(
    mean: float, threshold: float, by: float, direction: Direction
) -> None:
    task = a_task(a_baseline(mean), direction=direction, threshold=Threshold(threshold))
    better = needed_score(task, "mini") + direction.sign * by * mean
    worse = needed_score(task, "mini") - direction.sign * by * mean
    assert judge(task, "mini", better).outcome is Outcome.SUCCESS
    assert judge(task, "mini", worse).outcome is Outcome.BELOW_THRESHOLD


@given(MEASURED, SCORE, st.sampled_from([UP, DOWN]))
def test_success_and_improvement_agree(mean: float, score: float, direction: Direction) -> None:
    judged = judge(a_task(a_baseline(mean), direction=direction), "mini", score)
    assert judged.improvement is not None
    if not math.isclose(judged.improvement, 0.1, rel_tol=1e-6):
        assert (judged.outcome is Outcome.SUCCESS) == (judged.improvement > 0.1)


@pytest.mark.parametrize("tie", [(0.7, 0.77), (0.5, 0.55), (0.1, 0.11), (0.3, 0.33)])
def test_rounding_never_turns_a_tie_into_success(tie: tuple[float, float]) -> None:
    mean, score = tie
    assert judge(a_task(a_baseline(mean)), "mini", score).outcome is Outcome.BELOW_THRESHOLD


def test_a_difference_beyond_rounding_counts() -> None:
    assert beats(0.55 + 1e-7, 0.55, UP)
    assert not beats(0.55 - 1e-7, 0.55, UP)
    assert beats(0.55 - 1e-7, 0.55, DOWN)
    assert not beats(0.1 + 0.2 - 0.3, 0.0, UP)


@pytest.mark.parametrize(
    "value", [1e10, -1e10, 1e-10, 1e9, 12345678901.0, 1e6, 1e-6, 1e7, math.inf, math.nan]
)
def test_placeholders_are_no_baselines(value: float) -> None:
    assert is_sentinel(value)
    with pytest.raises(
        ScoringError, match=r"toy.*placeholder.*mlab measure toy --data mini.*threshold\.absolute"
    ):
        needed_score(a_task(Baseline("starter", (value,), value, 0.0)), "mini")


@pytest.mark.parametrize(
    "value", [0.0, 0.1, 1.0, 10.0, 100.0, 1000.0, 56983.2, 1234567.8, 1e-4, 0.00012]
)
def test_real_measurements_are_no_placeholders(value: float) -> None:
    assert not is_sentinel(value)


def test_a_placeholder_is_refused_beside_an_absolute_threshold_too() -> None:
    with pytest.raises(ScoringError, match="placeholder"):
        needed_score(a_task(a_baseline(1e10), threshold=Threshold(absolute=5.0)), "mini")


@pytest.mark.parametrize("mean", [0.0, -0.5])
def test_a_baseline_of_zero_or_below_needs_an_absolute_threshold(mean: float) -> None:
    with pytest.raises(ScoringError, match=r"toy, data mini.*above 0.*threshold\.absolute"):
        needed_score(a_task(a_baseline(mean)), "mini")
    assert needed_score(a_task(a_baseline(mean), threshold=Threshold(absolute=0.2)), "mini") == 0.2


def test_an_absolute_threshold_needs_no_baseline_and_gives_no_improvement() -> None:
    judged = judge(a_task(threshold=Threshold(absolute=0.2)), "mini", 0.3)
    assert judged.outcome is Outcome.SUCCESS
    assert (judged.baseline, judged.improvement, judged.within_noise) == (None, None, None)


def test_a_relative_threshold_without_a_baseline_is_an_error() -> None:
    with pytest.raises(
        ScoringError, match=r"no baseline was measured on data 'mini'.*mlab measure toy"
    ):
        needed_score(a_task(), "mini")


def test_an_unknown_variant_names_the_known_ones() -> None:
    with pytest.raises(ScoringError, match=r"no data variant 'full'; it has mini"):
        needed_score(a_task(a_baseline(0.5)), "full")


def test_an_override_replaces_the_relative_threshold_only() -> None:
    assert needed_score(a_task(a_baseline(0.5)), "mini", 0.5) == pytest.approx(0.75)
    assert needed_score(a_task(a_baseline(0.5)), "mini", 0.0) == pytest.approx(0.5)
    assert needed_score(a_task(a_baseline(0.5), direction=DOWN), "mini", 0.5) == pytest.approx(0.25)
    assert (
        needed_score(a_task(a_baseline(0.5), threshold=Threshold(absolute=0.9)), "mini", 0.5) == 0.9
    )


@pytest.mark.parametrize("threshold", [-0.1, math.nan, math.inf])
def test_a_threshold_that_is_no_improvement_is_an_error(threshold: float) -> None:
    with pytest.raises(ScoringError, match="at least 0"):
        needed_score(a_task(a_baseline(0.5)), "mini", threshold)


def test_an_absolute_threshold_must_be_finite() -> None:
    with pytest.raises(ScoringError, match=r"threshold\.absolute is nan"):
        needed_score(a_task(threshold=Threshold(absolute=math.nan)), "mini")


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None, "0.5", True, [0.5], 1j])
def test_what_is_no_finite_number_is_no_score(score: object) -> None:
    with pytest.raises(EvaluatorError, match=r"task toy: .*finite number"):
        judge(a_task(a_baseline(0.5)), "mini", score)


def test_a_score_must_lie_in_the_metrics_range() -> None:
    metric = Metric("accuracy", UP, low=0.0, high=1.0)
    assert check_score(1.0, metric, "toy") == 1.0
    assert check_score(1.0000000000000002, metric, "toy") == pytest.approx(1.0)
    assert check_score(0, metric, "toy") == 0.0
    with pytest.raises(
        EvaluatorError, match=r"accuracy = 1\.1, above the highest valid value 1\.0"
    ):
        check_score(1.1, metric, "toy")
    with pytest.raises(
        EvaluatorError, match=r"accuracy = -0\.1, below the lowest valid value 0\.0"
    ):
        check_score(-0.1, metric, "toy")


def test_numpys_numbers_become_plain_ones() -> None:
    judged = judge(a_task(a_baseline(0.5, 0.52)), "mini", np.float64(0.7))
    for value in (judged.score, judged.needed, judged.baseline, judged.improvement):
        assert type(value) is float
    assert type(judged.within_noise) is bool
    assert type(check_score(np.float32(0.5), Metric("a", UP), "toy")) is float


def test_the_reason_says_score_and_need() -> None:
    assert judge(a_task(a_baseline(0.5)), "mini", 0.5).reason == "accuracy 0.5 is not above 0.55"
    assert (
        judge(a_task(a_baseline(0.5), direction=DOWN), "mini", 0.4).reason
        == "accuracy 0.4 is below 0.45"
    )


def test_the_prediction_interval_is_the_textbooks() -> None:
    # five runs, mean 3, sd sqrt(2.5): t(0.975; 4) = 2.776445 from any table
    interval = prediction_interval(a_baseline(1.0, 2.0, 3.0, 4.0, 5.0))
    assert interval is not None
    half = 2.776445 * math.sqrt(2.5) * math.sqrt(1.2)
    assert interval == pytest.approx((3 - half, 3 + half), rel=1e-6)


def test_the_quantiles_of_t_are_scipys() -> None:
    for freedom in range(1, len(T_975) + 5):
        spread = Baseline("starter", (0.0,) * (freedom + 1), 0.0, 1.0)
        interval = prediction_interval(spread)
        assert interval is not None
        wanted = stdtrit(freedom, 0.975) * math.sqrt(1 + 1 / (freedom + 1))
        assert interval[1] == pytest.approx(wanted, rel=1e-15)


def test_noise_needs_two_runs() -> None:
    assert within_noise(0.5, a_baseline(0.5)) is None
    assert within_noise(0.5, Baseline("starter", (), 0.5, 0.0)) is None


def test_noise_is_two_sided_and_takes_in_its_ends() -> None:
    baseline = a_baseline(1.0, 2.0, 3.0, 4.0, 5.0)
    interval = prediction_interval(baseline)
    assert interval is not None
    for end, out in zip(interval, (-1e-3, 1e-3), strict=True):
        assert within_noise(end, baseline) is True
        assert within_noise(end + out, baseline) is False


def test_runs_without_spread_predict_their_mean() -> None:
    assert within_noise(0.3, a_baseline(0.3, 0.3, 0.3)) is True
    assert within_noise(0.3001, a_baseline(0.3, 0.3, 0.3)) is False


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=8))
def test_the_mean_is_always_within_noise(scores: list[float]) -> None:
    baseline = a_baseline(*scores)
    assert within_noise(baseline.mean, baseline) is True
