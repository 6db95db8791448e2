from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlab.core.budget import Budget, BudgetOverride, Ledger, Usage

COUNT = st.integers(0, 10**9)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT)


def test_the_published_limits_are_the_default() -> None:
    assert Budget() == Budget(max_steps=50, max_seconds=18000.0, max_tokens=None, max_cost=None)


@given(st.integers(1, 100), st.floats(1, 1e6), st.integers(1, 100), st.floats(1, 1e6))
def test_the_stricter_limit_holds(
    steps: int, seconds: float, own_steps: int, own_seconds: float
) -> None:
    both = Budget(steps, seconds, 7, 2.0).with_override(BudgetOverride(own_steps, own_seconds))
    assert both == Budget(min(steps, own_steps), min(seconds, own_seconds), 7, 2.0)
    assert Budget(steps, seconds).with_override(BudgetOverride()) == Budget(steps, seconds)


def test_cached_and_reasoning_tokens_are_not_counted_twice() -> None:
    assert Usage(100, 20, cached_tokens=80, reasoning_tokens=15).total == 120


@given(USAGE, USAGE, USAGE)
def test_usage_adds_up_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c) == c + b + a
    assert (a + b).total == a.total + b.total


@given(st.lists(st.tuples(USAGE, st.one_of(st.none(), st.floats(0, 100))), max_size=10))
def test_a_ledger_counts_every_call(calls: list[tuple[Usage, float | None]]) -> None:
    ledger = Ledger()
    for usage, cost in calls:
        ledger = ledger.with_call(usage, cost)
    assert ledger.model_calls == len(calls)
    assert ledger.usage == sum((u for u, _ in calls), Usage())
    assert ledger.cost == pytest.approx(sum(c for _, c in calls if c is not None))
    assert ledger.unpriced_calls == sum(c is None for _, c in calls)
    assert (ledger.known_cost is None) == any(c is None for _, c in calls)


def test_a_trial_without_calls_cost_nothing_and_a_free_call_is_priced() -> None:
    assert Ledger().known_cost == 0.0
    assert Ledger().with_call(Usage(1, 1), 0.0).known_cost == 0.0


ANY_COUNT = st.integers(-(10**30), 10**30)


@given(
    st.builds(Usage, ANY_COUNT, ANY_COUNT, ANY_COUNT, ANY_COUNT), st.one_of(st.none(), st.floats())
)
def test_nothing_in_a_ledger_ever_falls(usage: Usage, cost: float | None) -> None:
    before = Ledger(usage=Usage(7, 5, 3, 1), cost=0.5)
    after = before.with_call(usage, cost)
    assert after.cost >= before.cost
    assert after.usage.prompt_tokens >= 7
    assert after.usage.completion_tokens >= 5
    assert after.usage.cached_tokens >= 3
    assert after.usage.reasoning_tokens >= 1


def test_a_ledger_moves_only_by_its_own_steps() -> None:
    ledger = Ledger().with_step().with_step().at(12.5)
    assert (ledger.steps, ledger.seconds, ledger.model_calls) == (2, 12.5, 0)


@pytest.mark.parametrize(
    ("ledger", "limit"),
    [
        (Ledger(steps=2, seconds=9.9, usage=Usage(4, 5), cost=0.9), None),
        (Ledger(steps=3), "steps"),
        (Ledger(seconds=10.0), "seconds"),
        (Ledger(usage=Usage(5, 5)), "tokens"),
        (Ledger(cost=1.0), "cost"),
        (Ledger(steps=3, seconds=10.0, usage=Usage(9, 9), cost=2.0), "steps"),
        (Ledger(seconds=10.0, usage=Usage(9, 9), cost=2.0), "seconds"),
    ],
)
def test_the_first_limit_that_is_used_up_is_named(ledger: Ledger, limit: str | None) -> None:
    assert ledger.exhausted(Budget(3, 10.0, 10, 1.0)) == limit


def test_no_limit_is_never_used_up() -> None:
    ledger = Ledger(usage=Usage(10**12, 10**12), cost=1e9)
    assert ledger.exhausted(Budget(max_tokens=None, max_cost=None)) is None
