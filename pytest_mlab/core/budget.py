"""The limits of a trial, and its use of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

LEAST_FREE_WAIT = 600.0
"""Seconds; the longest wait that a provider may ask for at once."""


@dataclass(frozen=True)
class Budget:
    """Limits of one trial. None means no limit; ``max_seconds`` is wall time of the agent's part,
    without the waits for model providers when ``exclude_waits``."""

    max_steps: int = 50
    max_seconds: float = 5 * 3600.0
    max_tokens: int | None = None
    max_cost: float | None = None
    exclude_waits: bool = False

    @property
    def free_wait(self) -> float:
        """Seconds of waiting for providers that do not count: as many as the trial's own time, at
        least :data:`LEAST_FREE_WAIT`; 0 when waits count. Bounded, so that no trial hangs for
        ever."""
        return max(LEAST_FREE_WAIT, self.max_seconds) if self.exclude_waits else 0.0

    def with_override(self, override: BudgetOverride) -> Budget:
        """The stricter of this budget and a task's own limits, limit by limit."""
        return replace(
            self,
            max_steps=min(self.max_steps, override.max_steps or self.max_steps),
            max_seconds=min(self.max_seconds, override.max_seconds or self.max_seconds),
        )


@dataclass(frozen=True)
class BudgetOverride:
    """Limits that a task sets for itself; None leaves the run's limit."""

    max_steps: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of one model call, or of many, as the provider reported them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total(self) -> int:
        """Prompt plus completion tokens (cached and reasoning tokens are parts of those two)."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def floored(self) -> Usage:
        """The same without negative figures."""
        return Usage(
            max(0, self.prompt_tokens),
            max(0, self.completion_tokens),
            max(0, self.cached_tokens),
            max(0, self.reasoning_tokens),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True)
class Ledger:
    """The use of a trial so far. ``cost`` (dollars) covers priced calls; ``unpriced_calls`` counts
    the others. ``waited`` are the seconds of waiting for model providers: a part of ``seconds``,
    unless the budget excludes waits."""

    steps: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    cost: float = 0.0
    model_calls: int = 0
    unpriced_calls: int = 0
    waited: float = 0.0

    def with_step(self) -> Ledger:
        """One step more."""
        return replace(self, steps=self.steps + 1)

    def with_call(self, usage: Usage, cost: float | None, waited: float = 0.0) -> Ledger:
        """One model call more; ``cost`` None means its price is unknown. Whatever a client
        reports, nothing in a ledger falls: limits must hold."""
        return replace(
            self,
            usage=self.usage + usage.floored,
            # in this order max() drops a NaN, which no limit would ever stop
            cost=self.cost + max(0.0, cost or 0.0),
            model_calls=self.model_calls + 1,
            unpriced_calls=self.unpriced_calls + (cost is None),
            waited=self.waited + waited,
        )

    def at(self, seconds: float) -> Ledger:
        """The same at ``seconds`` of wall time."""
        return replace(self, seconds=seconds)

    @property
    def known_cost(self) -> float | None:
        """Dollars, or None when the price of any call is unknown."""
        return None if self.unpriced_calls else self.cost

    def exhausted(self, budget: Budget) -> str | None:
        """The name of the first limit that is used up: steps, seconds, tokens, cost; None while all
        hold."""
        if self.steps >= budget.max_steps:
            return "steps"
        if self.seconds >= budget.max_seconds:
            return "seconds"
        if budget.max_tokens is not None and self.usage.total >= budget.max_tokens:
            return "tokens"
        if budget.max_cost is not None and self.cost >= budget.max_cost:
            return "cost"
        return None
