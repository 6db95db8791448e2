"""The two ways in which an evaluator refuses a submission, and the details it may add to a
score."""

from __future__ import annotations

from typing import Any


class InvalidSubmission(Exception):
    """The submission cannot be scored; the message is a reason that a person can act on."""


class NoSubmission(Exception):
    """Nothing was handed in; the message names what was expected."""


_details: dict[str, Any] = {}


def record(**details: str | int | float | bool | list[float] | None) -> None:
    """Add plain values to the verdict's ``details``: they go to the trace and change no score."""
    _details.update(details)


def take_details() -> dict[str, Any]:
    """The recorded details; the next evaluation starts with none."""
    details = dict(_details)
    _details.clear()
    return details
