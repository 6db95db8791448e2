"""The ledger's only place, with a clock of the test's own."""

from __future__ import annotations

import threading

import pytest

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.errors import BudgetExhausted
from pytest_mlab.runtime.account import Account


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
    assert (account.ledger.model_calls, account.ledger.unpriced_calls, account.ledger.known_cost) == (2, 1, None)


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
