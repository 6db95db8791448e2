"""Phase 1 of a trial in the worker's own process, where a debugger and coverage see the agent."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from pytest_mlab.trial.process.watch import Ending


def run_here(payload: Mapping[str, Any], quits: tuple[type[BaseException], ...]) -> Ending:
    """Run the agent of the trial that ``payload`` names, with all of this process's environment
    and without an alarm: a debugger may hold it for hours.

    An exception of ``quits`` in the agent, such as Ctrl-C, passes when the trial's sandbox is
    closed; the trial then has no result and can be resumed."""
    # litellm downloads its price list at import unless it is told to use the packaged one.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Here, because it imports all that an agent may need, which other trials' workers never do.
    from pytest_mlab.trial.agent_phase import run_agent_phase

    begin = time.monotonic()
    error = run_agent_phase({**payload, "grace": None})
    if isinstance(error, quits):
        raise error
    return Ending("exited", seconds=time.monotonic() - begin)
