"""Attempts that were put aside: they count nowhere but in the dollars of the run."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mlab.reporting import text
from pytest_mlab.store.rundir import RunDir


@dataclass(frozen=True)
class Earlier:
    """Earlier attempts of a run's trials: how many, of how many trials, and the dollars of those
    that ended (what an interrupted one has cost is known to the run's total only)."""

    attempts: int = 0
    trials: int = 0
    cost_usd: float = 0.0

    @classmethod
    def of(cls, run: RunDir) -> Earlier:
        """Those in the folders of ``run``. Raises StoreError when a result cannot be read."""
        attempts = trials = 0
        dollars = 0.0
        for trial in run.plan.trials:
            folders = run.trial(trial).attempts()
            attempts += len(folders)
            trials += bool(folders)
            results = [folder.result() for folder in folders]
            dollars += sum(r.ledger.cost for r in results if r is not None)
        return cls(attempts, trials, dollars)

    def text(self) -> str:
        """A line for the table; '' without any."""
        if not self.attempts:
            return ""
        return (
            f"{text.plural(self.attempts, 'earlier attempt')} of"
            f" {text.plural(self.trials, 'trial')} put aside, counted in no figure:"
            f" ${self.cost_usd:.2f} of the run's dollars"
        )
