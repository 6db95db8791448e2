"""All checks, in the order in which they are made: what others build on comes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.checks.baseline import ReproducedBaseline
from pytest_mlab.validation.checks.cost import Cost
from pytest_mlab.validation.checks.degenerate import Degenerate
from pytest_mlab.validation.checks.files import Files
from pytest_mlab.validation.checks.fuzz import Fuzz
from pytest_mlab.validation.checks.leaks import Leaks
from pytest_mlab.validation.checks.order import Order
from pytest_mlab.validation.checks.reference import Reference
from pytest_mlab.validation.checks.repeatable import Repeatable
from pytest_mlab.validation.checks.schema import Schema
from pytest_mlab.validation.checks.starter import Starter
from pytest_mlab.validation.checks.steal import Thief
from pytest_mlab.validation.finding import Finding


class Check(Protocol):
    """One property that a sound task has. ``name`` is what ``--only`` takes, ``about`` one line of
    what must hold."""

    @property
    def name(self) -> str:
        """The check's name."""
        ...

    @property
    def about(self) -> str:
        """What holds when it is ok."""
        ...

    def run(self, bench: Bench) -> Finding:
        """Look. Raises Unavailable when there is nothing to look at, another MlabError for a fault
        of the task."""
        ...


CHECKS: tuple[Check, ...] = (
    Schema(),
    Files(),
    Starter(),
    ReproducedBaseline(),
    Reference(),
    Degenerate(),
    Repeatable(),
    Order(),
    Leaks(),
    Thief(),
    Fuzz(),
    Cost(),
)


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks with these names in their own order, all when none is named. Raises
    ConfigError."""
    known = {check.name: check for check in CHECKS}
    for name in names:
        if name not in known:
            raise ConfigError(unknown("check", name, known))
    return tuple(check for check in CHECKS if not names or check.name in names)
