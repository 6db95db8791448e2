"""Why a run starts no further trials: its dollars are spent, or a model was given up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.routes import GivenUp, routes_of
from pytest_mlab.core.trial import TrialId
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.shared import Shared, Spending

# Reports recognise trials that a stopped run did not start by this beginning.
NOT_STARTED = "not started: "


@dataclass(frozen=True)
class Stops:
    """Snapshot of everything that stops a run: dollars spent, models given up."""

    settings: RunSettings
    spending: Spending
    given_up: Mapping[str, GivenUp]

    @classmethod
    def of(cls, run: RunDir) -> Stops:
        """The snapshot of now. Raises StoreError."""
        shared = Shared(run.path)
        return cls(run.plan.settings, shared.spending(), shared.given_up())

    def why(self, trial: TrialId) -> str:
        """Why ``trial`` must not start: a text that begins with :data:`NOT_STARTED`, or ''.
        Trials without a model always may: they cost nothing."""
        if not trial.model:
            return ""
        for name in routes_of(trial, self.settings):
            if name in self.given_up:
                return NOT_STARTED + self.given_up[name].reason
        limit = self.settings.run_max_cost
        if limit is None or self.spending.dollars < limit:
            return ""
        return (
            f"{NOT_STARTED}the ${limit:g} of the whole run are spent; a higher --mlab-run-max-cost"
            " lets it go on"
        )
