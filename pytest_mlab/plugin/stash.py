"""What the hooks of one session share: the checked options, and the run as this process sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pytest_mlab.core.plan import Plan
from pytest_mlab.planning.options import MlabOptions
from pytest_mlab.plugin.brief import Brief


@dataclass(frozen=True)
class Run:
    """A run as the process that collects sees it.

    ``suite`` is the suite's name; ``passed_over`` says why a better sandbox was not taken;
    ``left_out`` maps folders of the suite to the reason why they are not tasks."""

    plan: Plan
    brief: Brief
    suite: str
    passed_over: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)


OPTIONS = pytest.StashKey[MlabOptions]()
RUN = pytest.StashKey[Run]()
