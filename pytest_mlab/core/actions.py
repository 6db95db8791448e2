"""Actions, observations and steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ActionSpec:
    """An action that an environment offers. ``schema`` is the JSON schema (an object) of its
    arguments; ``marks`` go to the provider beside the function (``cache_control``)."""

    name: str
    summary: str
    schema: Mapping[str, Any]
    returns: str = ""
    marks: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Its fields, as recordings have them; older ones know no ``marks``."""
        found: dict[str, Any] = {
            "name": self.name,
            "summary": self.summary,
            "schema": dict(self.schema),
        }
        return (
            found | {"returns": self.returns} | ({"marks": dict(self.marks)} if self.marks else {})
        )


@dataclass(frozen=True)
class Action:
    """An action's name and its arguments (JSON values by argument name)."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Observation:
    """The environment's answer to an action.

    ``text`` is for the agent (long outputs are cut in the middle); ``ok`` is False for
    errors; ``exit_status`` is that of an executed script; ``output_file`` names the bytes of the
    output, relative to the trial's folder, when ``text`` was cut or had progress bars; ``done`` is
    True after the action that ended the trial."""

    text: str
    ok: bool = True
    exit_status: int | None = None
    output_file: str = ""
    done: bool = False


@dataclass(frozen=True)
class Step:
    """One action and its observation; ``index`` counts from 1; ``seconds`` is the action's wall
    time."""

    index: int
    action: Action
    observation: Observation
    seconds: float
