from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlab.core.statistics import (
    bootstrap_mean_interval,
    clustered_mean_interval,
    mean,
    median,
    pass_at_k,
    pass_hat_k,
    proportion_interval,
)


def test_the_exact_interval_of_known_rates() -> None:
    assert proportion_interval(8, 8) == pytest.approx((0.6306, 1.0), abs=1e-4)
    assert proportion_interval(0, 8) == pytest.approx((0.0, 0.3694), abs=1e-4)
    assert proportion_interval(3, 8) == pytest.approx((0.0852, 0.7551), abs=1e-4)
    assert proportion_interval(0, 0) is None


@settings(max_examples=30)
@given(st.integers(1, 40), st.data())
def test_an_interval_holds_its_rate_and_is_never_a_point(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    interval = proportion_interval(successes, n)
    assert interval is not None
    assert 0 <= interval.low <= successes / n <= interval.high <= 1
    assert interval.low < interval.high
    assert all(type(end) is float for end in interval)


def test_the_exact_interval_is_that_of_scipys_test() -> None:
    from scipy.stats import binomtest

    for n in range(1, 17):
        for successes in range(n + 1):
            found = binomtest(successes, n).proportion_ci(0.95, method="exact")
            assert proportion_interval(successes, n) == pytest.approx((found.low, found.high))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=13))
def test_the_clustered_interval_is_that_of_scipys_t_test(means: list[float]) -> None:
    from scipy.stats import ttest_1samp

    interval = clustered_mean_interval(means, -99, 99)
    if interval is not None:
        found = ttest_1samp(means, 0.0).confidence_interval(0.95)
        assert interval == pytest.approx((found.low, found.high), abs=1e-9)


def test_the_clustered_interval_takes_a_task_for_one_observation() -> None:
    # mean 0.5, sd 0.5, t(0.975; 2) = 4.302653: half = 4.302653 * 0.5 / sqrt(3)
    assert clustered_mean_interval([0.0, 0.5, 1.0], -9, 9) == pytest.approx(
        (0.5 - 1.2421, 0.5 + 1.2421), abs=1e-4
    )
    assert clustered_mean_interval([0.0, 0.5, 1.0], 0, 1) == (0.0, 1.0)


@pytest.mark.parametrize("values", [[], [0.5], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0]])
def test_no_clustered_interval_of_too_little(values: list[float]) -> None:
    assert clustered_mean_interval(values, 0, 1) is None


@pytest.mark.parametrize(
    "values", [[], [0.1], [0.1, 0.2], [0.3, 0.3, 0.3, 0.3], [0.1 + 0.2, 0.3, 0.3]]
)
def test_no_bootstrap_interval_of_too_little(values: list[float]) -> None:
    assert bootstrap_mean_interval(values) is None


@settings(max_examples=15, deadline=None)
@given(st.permutations([0.3, -1.5, 2.25, 0.3, 0.1, 7.0]))
def test_a_bootstrap_interval_does_not_depend_on_order(values: list[float]) -> None:
    assert bootstrap_mean_interval(values) == bootstrap_mean_interval(sorted(values))


def test_a_bootstrap_interval_holds_the_mean_in_plain_floats() -> None:
    interval = bootstrap_mean_interval([0.1, 0.4, 0.2, 0.9, 0.3, 0.2, 0.5, 0.1])
    assert interval is not None
    assert interval.low < 0.3375 < interval.high
    assert all(type(end) is float for end in interval)


@given(st.integers(1, 9), st.data())
def test_pass_at_k_counts_draws(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(d) for d in draws) / len(draws))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(all(d) for d in draws) / len(draws))


def test_pass_at_k_needs_k_trials() -> None:
    with pytest.raises(ValueError, match="k=3"):
        pass_at_k(2, 1, 3)
    with pytest.raises(ValueError, match="successes=3"):
        pass_hat_k(2, 3, 1)


def test_of_nothing_there_is_no_mean() -> None:
    assert mean([]) is None
    assert median([]) is None
    assert median([1, 2]) == 1.5
    assert type(median([3])) is float


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20))
def test_a_mean_does_not_depend_on_order(values: list[float]) -> None:
    assert mean(values) == mean(values[::-1]) == mean(sorted(values))
