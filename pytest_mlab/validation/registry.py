"""All checks: those of pytest-mlab in the order in which they are made, then those of other
packages."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Protocol

from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.checks.baseline import ReproducedBaseline
from pytest_mlab.validation.checks.cost import Cost
from pytest_mlab.validation.checks.data import SameData
from pytest_mlab.validation.checks.degenerate import Degenerate
from pytest_mlab.validation.checks.description import Description
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
    """One property that a sound task has.

    A check is registered by an entry in ``BUILT_IN``, or by an entry point of the group
    ``pytest_mlab.checks``."""

    @property
    def name(self) -> str:
        """What ``--only`` takes."""
        ...

    @property
    def about(self) -> str:
        """What holds when it passes, in one line."""
        ...

    def run(self, bench: Bench) -> Finding:
        """Look at the task. Raises Unavailable when there is nothing to look at, another MlabError
        for a fault of the task."""
        ...


GROUP = "pytest_mlab.checks"
"""Entry points of this group name classes that are called without arguments and are a Check."""

# What others build on comes first: the first check that needs a run of the baseline makes it.
BUILT_IN: tuple[Check, ...] = (
    Schema(),
    Files(),
    Description(),
    SameData(),
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


def all_checks() -> tuple[Check, ...]:
    """The built-in checks, then those that installed packages offer, by name. Raises ConfigError
    for two checks of one name."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    found: dict[str, Check] = {check.name: check for check in BUILT_IN}
    for point in points:
        check: Check = point.load()()
        if check.name in found:
            raise ConfigError(
                f"entry point {point.name!r} of group {GROUP} names {point.value!r}, whose name"
                f" {check.name!r} is that of another check"
            )
        found[check.name] = check
    return tuple(found.values())


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks with these names in their own order, all when none is named. Raises
    ConfigError."""
    known = {check.name: check for check in all_checks()}
    for name in names:
        if name not in known:
            raise ConfigError(unknown("check", name, known))
    return tuple(check for check in known.values() if not names or check.name in names)
