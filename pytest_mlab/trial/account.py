"""A trial's clock, and what it has used so far: the one place where its ledger changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pytest_mlab.core.budget import Budget, Ledger, Usage
from pytest_mlab.errors import BudgetExhausted


class TrialClock:
    """Monotonic seconds. Replayed model calls move it on by what they took when they were recorded,
    so that the agent's time limit and its ledger are those of the recording."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def move(self, seconds: float) -> None:
        """Let ``seconds`` pass at once."""
        self._ahead += seconds


class Account:
    """A trial's budget and what has been used of it. The agent's wall clock starts when the account
    is made.

    ``ledger`` seeds it with what an earlier part of the trial used; ``clock`` gives seconds that
    only grow. Model calls may be charged from several threads. ``on_move`` is called whenever
    :attr:`hard_seconds` changes by more than the time that passed: when a model call begins or
    ends, as its waits may not count. The agent phase sets its alarm anew then."""

    def __init__(
        self,
        budget: Budget,
        ledger: Ledger | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self._ledger = ledger or Ledger()
        self._clock = clock
        # `seconds` subtracts the free waits, which a stored ledger's seconds do not include.
        # Subtracted here as well, they cancel out, and `seconds` begins at the stored value.
        self._start = clock() - self._ledger.seconds - self._free(self._ledger)
        self._waits: list[tuple[float, float]] = []
        # A number and not a flag, because calls may overlap.
        self._calls = 0
        self._lock = threading.Lock()
        self.on_move: Callable[[], None] = lambda: None
        self.doing: Callable[[str], AbstractContextManager[None]] = lambda what: nullcontext()
        """Entered while a step, a program or a model call is under way, with its name."""

    @property
    def ledger(self) -> Ledger:
        """What has been used, wall time up to now included."""
        return self._ledger.at(self.seconds)

    @property
    def seconds(self) -> float:
        """Wall seconds of the agent's part so far, without waits that the budget does not count."""
        return self._clock() - self._start - self._free(self._ledger)

    def remaining_seconds(self) -> float:
        """Wall seconds left, 0 when none are; infinite when the budget is."""
        return max(0.0, self.budget.max_seconds - self.seconds)

    @property
    def free_wait(self) -> float:
        """Seconds of waiting left that the budget does not count."""
        return self.budget.free_wait - self._free(self._ledger)

    @property
    def hard_seconds(self) -> float:
        """Hard deadline in seconds: the remaining budget, plus the free waiting time during a model
        call. Between calls nothing waits, so an agent that loops gets none of it."""
        return self.remaining_seconds() + (self.free_wait if self._calls else 0.0)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """While a model call is under way."""
        with self._lock:
            self._calls += 1
        self._moved()
        try:
            with self.doing("waiting for the model"):
                yield
        finally:
            with self._lock:
                self._calls -= 1
            self._moved()

    def _moved(self) -> None:
        # Otherwise a call does not change hard_seconds.
        if self.budget.exclude_waits:
            self.on_move()

    def _free(self, ledger: Ledger) -> float:
        return min(ledger.waited, self.budget.free_wait)

    def charge_call(self, usage: Usage, cost: float | None, waited: float = 0.0) -> None:
        """One model call more; ``cost`` in dollars, None when its price is unknown; ``waited`` are
        the seconds that it waited for its provider, up to now."""
        with self._lock:
            # Two calls that wait for the same minute to pass cost the trial one minute: overlapping
            # waits are merged before they are counted.
            now = self._clock()
            before = sum(end - begin for begin, end in self._waits)
            self._waits = _merged([*self._waits, (now - waited, now)])
            waited = sum(end - begin for begin, end in self._waits) - before
            self._ledger = self._ledger.with_call(usage, cost, waited)

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
            raise BudgetExhausted(
                f"the budget is used up: {_used(limit, ledger, self.budget)}", limit=limit
            )


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The union of stretches of time."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _used(limit: str, ledger: Ledger, budget: Budget) -> str:
    return {
        "steps": f"{ledger.steps} of {budget.max_steps} steps",
        "seconds": f"{ledger.seconds:.0f} of {budget.max_seconds:.0f} seconds",
        "tokens": f"{ledger.usage.total} of {budget.max_tokens} tokens",
        "cost": f"${ledger.cost:.4f} of ${budget.max_cost or 0.0:.4f}",
    }[limit]
