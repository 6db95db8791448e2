"""The ledger's only place, with a clock of the test's own."""

from __future__ import annotations

import threading

import pytest

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.errors import BudgetExhausted
from pytest_mlab.trial.account import Account


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_clock_starts_with_the_account() -> None:
    clock = Clock()
    account = Account(Budget(max_seconds=60), clock=clock)
    assert account.remaining_seconds() == 60
    clock.now += 20
    assert account.ledger.seconds == 20
    assert account.remaining_seconds() == 40
    clock.now += 100
    assert account.remaining_seconds() == 0


def test_a_stored_ledger_is_continued() -> None:
    clock = Clock()
    account = Account(Budget(max_seconds=60), Ledger(steps=3, seconds=50, cost=0.5), clock)
    clock.now += 4
    account.charge_call(Usage(10, 5), 0.25)
    assert account.charge_step() == 4
    assert account.ledger == Ledger(4, 54, Usage(10, 5), 0.75, 1, 0)


def test_an_unknown_price_is_counted_and_not_free() -> None:
    account = Account(Budget())
    account.charge_call(Usage(1, 1), None)
    account.charge_call(Usage(1, 1), 0.5)
    assert (
        account.ledger.model_calls,
        account.ledger.unpriced_calls,
        account.ledger.known_cost,
    ) == (2, 1, None)


@pytest.mark.parametrize(
    ("budget", "limit", "said"),
    [
        (Budget(max_steps=2), "steps", "2 of 2 steps"),
        (Budget(max_seconds=7), "seconds", "7 of 7 seconds"),
        (Budget(max_tokens=15), "tokens", "15 of 15 tokens"),
        (Budget(max_cost=0.5), "cost", r"\$0\.5000 of \$0\.5000"),
    ],
)
def test_the_limit_that_is_reached_is_named(budget: Budget, limit: str, said: str) -> None:
    clock = Clock()
    account = Account(budget, clock=clock)
    account.check()
    account.charge_step()
    account.charge_step()
    account.charge_call(Usage(10, 5), 0.5)
    clock.now += 7
    with pytest.raises(BudgetExhausted, match=said) as caught:
        account.check()
    assert caught.value.limit == limit


def test_a_call_that_is_charged_meanwhile_is_not_lost() -> None:
    account = Account(Budget())
    charging, charged = threading.Event(), threading.Event()

    class Slow(float):
        """A price whose addition gives the other thread every chance to come in between."""

        def __radd__(self, other: float) -> float:
            charging.set()
            charged.wait(0.05)
            return other + float(self)

    def other() -> None:
        charging.wait()
        account.charge_call(Usage(1), 1.0)
        charged.set()

    thread = threading.Thread(target=other)
    thread.start()
    account.charge_call(Usage(1), Slow(1.0))
    thread.join()
    assert (account.ledger.model_calls, account.ledger.cost) == (2, 2.0)


class TestWaits:
    def test_count_as_time_unless_the_budget_says_otherwise(self) -> None:
        clock = Clock()
        account = Account(Budget(max_seconds=60), clock=clock)
        clock.now += 30
        account.charge_call(Usage(), 0.0, 20.0)
        assert (account.ledger.seconds, account.ledger.waited, account.free_wait) == (30, 20, 0)
        assert account.remaining_seconds() == 30

    def test_are_left_out_and_recorded(self) -> None:
        clock = Clock()
        account = Account(Budget(max_seconds=60, exclude_waits=True), clock=clock)
        clock.now += 30
        account.charge_call(Usage(), 0.0, 20.0)
        assert (account.ledger.seconds, account.ledger.waited, account.free_wait) == (10, 20, 580)
        assert account.remaining_seconds() == 50

    @pytest.mark.parametrize(("seconds", "free"), [(60, 600), (1800, 1800)])
    def test_are_left_out_up_to_as_long_again_as_the_trials_time(
        self, seconds: float, free: float
    ) -> None:
        clock = Clock()
        account = Account(Budget(max_seconds=seconds, exclude_waits=True), clock=clock)
        clock.now += free + 25
        account.charge_call(Usage(), 0.0, free + 20)
        assert (account.ledger.seconds, account.ledger.waited, account.free_wait) == (
            25,
            free + 20,
            0,
        )

    def test_at_the_same_time_in_two_threads_are_counted_once(self) -> None:
        clock = Clock()
        account = Account(Budget(max_seconds=60, exclude_waits=True), clock=clock)
        clock.now += 30
        account.charge_call(Usage(), 0.0, 20.0)  # from 10 to 30
        clock.now += 5
        account.charge_call(Usage(), 0.0, 0.0)
        account.charge_call(Usage(), 0.0, 15.0)  # from 20 to 35
        clock.now += 5
        account.charge_call(Usage(), 0.0, 2.0)  # from 38 to 40
        assert (account.ledger.waited, account.ledger.seconds) == (27, 13)

    def test_move_the_hard_end_while_a_call_is_under_way_and_by_what_they_lasted(self) -> None:
        clock = Clock()
        account = Account(Budget(max_seconds=60, exclude_waits=True), clock=clock)
        seen: list[float] = []
        account.on_move = lambda: seen.append(account.hard_seconds)
        with account.calling():
            clock.now += 30
        account.charge_call(Usage(), 0.0, 20.0)
        with account.calling(), account.calling():
            pass
        assert seen[0] == 660
        assert seen[2:] == [630, 630, 630, 50]

    def test_do_not_move_it_when_they_count(self) -> None:
        account = Account(Budget(max_seconds=60), clock=Clock())
        account.on_move = lambda: pytest.fail("nothing moves")
        with account.calling():
            assert account.hard_seconds == 60
