"""A trial's clock."""

from __future__ import annotations

import time


class TrialClock:
    """Monotonic seconds, moved on by what replayed model calls took when they were recorded: the
    agent's time limit and its ledger are then those of the recording, though nobody waits."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def move(self, seconds: float) -> None:
        """Let ``seconds`` pass at once."""
        self._ahead += seconds
