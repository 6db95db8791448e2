"""Final Answer, which ends the trial, and Request Help, which nobody answers in a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mlab.runtime.actions.base import ActionError, Answer, Context, Definition, define


def final_answer(context: Context, args: Mapping[str, Any]) -> Answer:
    """End the trial; the workspace is scored as it is."""
    return Answer("The trial is over; the workspace is scored as it is.", done=True)


def request_help(context: Context, args: Mapping[str, Any]) -> str:
    """Refused: there is no one to ask."""
    raise ActionError("nobody is there to help in this run; decide yourself and go on")


DEFINITIONS: tuple[Definition, ...] = (
    define(
        "Request Help",
        "Asks a person for help; answered only in interactive use.",
        request_help,
        "The answer.",
        request=(str, "the question"),
    ),
    define(
        "Final Answer",
        "Submits the workspace as it is and ends the trial.",
        final_answer,
        "Nothing more.",
        final_answer=(str, "a short account of the solution"),
    ),
)
