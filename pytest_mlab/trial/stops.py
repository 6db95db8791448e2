"""Why trials of a run are not started any more: its dollars are spent, or what they would ask was
given up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.routes import GivenUp, routes_of
from pytest_mlab.core.trial import TrialId
from pytest_mlab.store.rundir import RunDir
from pytest_mlab.store.shared import Shared, Spending

NOT_STARTED = "not started: "


@dataclass(frozen=True)
class Stops:
    """What is known of it at one moment."""

    settings: RunSettings
    spending: Spending
    given_up: Mapping[str, GivenUp]

    @classmethod
    def of(cls, run: RunDir) -> Stops:
        """Now. Raises StoreError."""
        shared = Shared(run.path)
        return cls(run.plan.settings, shared.spending(), shared.given_up())

    def why(self, trial: TrialId) -> str:
        """Why ``trial`` is not to be started, a text that begins with :data:`NOT_STARTED`; '' when
        it may be. Trials without a model cost nothing and ask nobody."""
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
