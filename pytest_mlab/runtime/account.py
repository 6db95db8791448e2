"""What a trial has used so far: the one place where its ledger changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.errors import BudgetExhausted


class Account:
    """A trial's budget and what has been used of it. The agent's wall clock starts when the account is made.

    ``ledger`` seeds it with what an earlier part of the trial used; ``clock`` gives seconds that only grow. Model
    calls may be charged from several threads.
    """

    def __init__(
        self, budget: Budget, ledger: Ledger | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.budget = budget
        self._ledger = ledger or Ledger()
        self._clock = clock
        self._start = clock() - self._ledger.seconds
        self._lock = threading.Lock()

    @property
    def ledger(self) -> Ledger:
        """What has been used, wall time up to now included."""
        return self._ledger.at(self.seconds)

    @property
    def seconds(self) -> float:
        """Wall seconds of the agent's part so far."""
        return self._clock() - self._start

    def remaining_seconds(self) -> float:
        """Wall seconds left, 0 when none are; infinite when the budget is."""
        return max(0.0, self.budget.max_seconds - self.seconds)

    def charge_call(self, usage: Usage, cost: float | None) -> None:
        """One model call more; ``cost`` in dollars, None when its price is unknown."""
        with self._lock:
            self._ledger = self._ledger.with_call(usage, cost)

    def charge_step(self) -> int:
        """One step more; its number, from 1."""
        with self._lock:
            self._ledger = self._ledger.with_step()
            return self._ledger.steps

    def check(self) -> None:
        """Raise BudgetExhausted, naming the limit, when nothing may be begun any more."""
        ledger = self.ledger
        limit = ledger.exhausted(self.budget)
        if limit is not None:
            raise BudgetExhausted(f"the budget is used up: {_used(limit, ledger, self.budget)}", limit=limit)


def _used(limit: str, ledger: Ledger, budget: Budget) -> str:
    return {
        "steps": f"{ledger.steps} of {budget.max_steps} steps",
        "seconds": f"{ledger.seconds:.0f} of {budget.max_seconds:.0f} seconds",
        "tokens": f"{ledger.usage.total} of {budget.max_tokens} tokens",
        "cost": f"${ledger.cost:.4f} of ${budget.max_cost or 0.0:.4f}",
    }[limit]
