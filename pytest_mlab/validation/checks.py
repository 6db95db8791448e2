"""All checks, in the order in which they are made: what others build on comes first."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mlab.core.names import unknown
from pytest_mlab.errors import ConfigError
from pytest_mlab.validation.base import Check
from pytest_mlab.validation.baseline import ReproducedBaseline
from pytest_mlab.validation.cost import Cost
from pytest_mlab.validation.degenerate import Degenerate
from pytest_mlab.validation.files import Files
from pytest_mlab.validation.fuzz import Fuzz
from pytest_mlab.validation.leaks import Leaks
from pytest_mlab.validation.order import Order
from pytest_mlab.validation.reference import Reference
from pytest_mlab.validation.repeatable import Repeatable
from pytest_mlab.validation.schema import Schema
from pytest_mlab.validation.starter import Starter
from pytest_mlab.validation.steal import Thief

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
    """The checks with these names in their own order, all when none is named. Raises ConfigError."""
    known = {check.name: check for check in CHECKS}
    for name in names:
        if name not in known:
            raise ConfigError(unknown("check", name, known))
    return tuple(check for check in CHECKS if not names or check.name in names)
