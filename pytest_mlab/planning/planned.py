"""A plan with all that the controller of its run needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_mlab.core.plan import Plan
from pytest_mlab.core.task import Task

REPORTS = "reports"


@dataclass(frozen=True)
class Planned:
    """A plan with all that its controller needs.

    ``tasks`` by name; ``blocked`` says by trial name what is missing and the command that mends it;
    ``path`` is the run directory, which exists only for a ``resumed`` run; ``passed_over`` says why
    ``auto`` did not take a sandbox that it would have preferred; ``left_out`` are folders of the
    suite that look like tasks and are none, with the reason."""

    plan: Plan
    tasks: Mapping[str, Task]
    blocked: Mapping[str, str]
    path: Path
    resumed: bool = False
    passed_over: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
