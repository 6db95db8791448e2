"""How long each part of a trial may take: one table for the runner, the evaluation and the
backstop behind both."""

from __future__ import annotations

from pytest_mlab.core.budget import Budget

GRACE = (5.0, 60.0)
"""Least and most seconds that an agent may go on past its budget before its process is killed."""

_GRACE_SHARE = 0.1

AROUND_AGENT = 300.0
"""Seconds of the agent phase besides the agent's own: making the workspace, opening the sandbox,
freezing the workspace."""

EVALUATOR = 1800.0
"""Seconds that an evaluator may take."""

TASK_SCRIPT = 3600.0
"""Seconds that one script of a task may take when it is run outside a trial."""

_AROUND_EVALUATOR = 600.0
_TIMED_QUEUE = 32
"""How many timed evaluations may queue for the machine, which runs one at a time."""

_PREPARING = 3600.0
"""Seconds for what the worker does itself: preparing the data and starting the fork server."""


def grace_of(budget: Budget) -> float:
    """Seconds that an agent may go on past ``budget``: a tenth of its time, bounded by GRACE."""
    least, most = GRACE
    return min(most, max(least, _GRACE_SHARE * budget.max_seconds))


def agent_phase_seconds(budget: Budget, grace: float, around: float = AROUND_AGENT) -> float:
    """Seconds after which the worker kills the agent phase."""
    return budget.max_seconds + budget.free_wait + grace + around


def finish_phase_seconds(*, timed: bool) -> float:
    """Seconds after which the worker kills the finish phase."""
    return (EVALUATOR + _AROUND_EVALUATOR) * (_TIMED_QUEUE if timed else 1)


def trial_seconds(budget: Budget, *, timed: bool) -> float:
    """Seconds after which a trial under ``budget`` must have ended, whatever its phases did: later
    than the ends of both."""
    return (
        # pytest-timeout uses the sum as the last backstop. It must come after the limits of the
        # phases, because those leave a result.
        agent_phase_seconds(budget, grace_of(budget))
        + finish_phase_seconds(timed=timed)
        + _PREPARING
    )
