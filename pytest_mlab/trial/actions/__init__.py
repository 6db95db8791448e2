"""The actions of the benchmark: a small module for each group.

Every module of this package is read, and every function in it that
:func:`pytest_mlab.trial.actions.base.action` decorates is an action. Other packages add theirs by
the entry-point group ``pytest_mlab.actions``."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from pytest_mlab.errors import ConfigError
from pytest_mlab.trial.actions.base import ActionDefinition

GROUP = "pytest_mlab.actions"


def _built_in() -> Iterable[ActionDefinition]:
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, ActionDefinition):
                yield value


# Read while the fork server imports this module: a scan of the installed packages takes 20 ms or
# more, which each trial would pay again. What they name is loaded by the trial itself.
_BUILT_IN = tuple(_built_in())
_POINTS = tuple(entry_points(group=GROUP))


@cache
def definitions() -> Mapping[str, ActionDefinition]:
    """All actions by name, in the order in which agents see them. Raises ConfigError."""
    return with_outside(_POINTS)


def with_outside(points: Iterable[EntryPoint]) -> Mapping[str, ActionDefinition]:
    """The built-in actions and those of ``points``, in their order. Raises ConfigError for an entry
    point that is not an action, or takes the name of another action."""
    found: dict[str, ActionDefinition] = {}
    outside = [_loaded(point) for point in points]
    for definition in sorted([*_BUILT_IN, *outside], key=lambda d: (d.order, d.spec.name)):
        name = definition.spec.name
        if name in found:
            raise ConfigError(f"two actions are called {name!r}; rename one of them")
        found[name] = definition
    return MappingProxyType(found)


def _loaded(point: EntryPoint) -> ActionDefinition:
    where = f"the entry point {point.name} = {point.value} of the group {GROUP}"
    try:
        value = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{where} cannot be loaded: {error}") from error
    if not isinstance(value, ActionDefinition):
        raise ConfigError(
            f"{where} is a {type(value).__name__}; decorate a function with @pytest_mlab.action"
        )
    return value
