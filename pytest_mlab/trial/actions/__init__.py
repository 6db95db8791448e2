"""The actions of the benchmark: a small module for each group, and the registry of all."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.trial.actions import edit, execute, files, final, log, understand
from pytest_mlab.trial.actions.base import Definition

_ORDER = (
    "List Files",
    "Copy File",
    "Undo Edit Script",
    "Execute Script",
    "Request Help",
    "Final Answer",
    "Understand File",
    "Inspect Script Lines",
    "Edit Script (AI)",
    "Reflection",
    "Read File",
    "Write File",
    "Append File",
    "Python REPL",
    "Edit Script Segment (AI)",
    "Append Summary to Research Log",
    "Retrieval from Research Log",
)


def _registry() -> Mapping[str, Definition]:
    groups = (files, edit, execute, understand, log, final)
    found = {d.spec.name: d for group in groups for d in group.DEFINITIONS}
    return MappingProxyType({name: found[name] for name in _ORDER})


DEFINITIONS: Mapping[str, Definition] = _registry()
"""All actions by name."""

SPECS: Mapping[str, ActionSpec] = MappingProxyType(
    {name: d.spec for name, d in DEFINITIONS.items()}
)
"""What agents are told about them."""
