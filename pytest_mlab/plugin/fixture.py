"""The fixture ``mlab_trial``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_mlab.core.trial import TrialId
from pytest_mlab.plugin.trial import Trial

if TYPE_CHECKING:
    from pytest_mlab.plugin.worker import Worker

# Here and not in worker.py, which a session without trials never imports.
WORKER: pytest.StashKey[Worker] = pytest.StashKey()


@pytest.fixture
def mlab_trial(request: pytest.FixtureRequest) -> Trial:
    """A trial of an agent on a task: it runs before the test does; the test judges it."""
    trial_id: TrialId = request.param
    return request.config.stash[WORKER].trial(request.node, trial_id)
