"""The result of a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_mlab.errors import MlabError

Status = Literal["ok", "fail", "not_applicable", "not_run"]


class Unavailable(MlabError):
    """A check cannot be made, because of a fault that another check reports."""


@dataclass(frozen=True)
class Finding:
    """What a check found: ``reason`` is one sentence, ``facts`` are JSON values for ``--json`` and
    the table."""

    status: Status
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def ok(reason: str, **facts: Any) -> Finding:
    """The property holds."""
    return Finding("ok", reason, facts)


def fail(reason: str, **facts: Any) -> Finding:
    """The property does not hold."""
    return Finding("fail", reason, facts)


def not_applicable(reason: str, **facts: Any) -> Finding:
    """The property has no meaning for a task of this kind, or in this sandbox."""
    return Finding("not_applicable", reason, facts)
