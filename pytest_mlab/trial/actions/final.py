"""Final Answer, which ends the trial, and Request Help, which nobody answers unless the run asks a
person."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from pytest_mlab.core.agent_api import Person
from pytest_mlab.trial.actions.base import ActionError, Answer, Context, Definition, define


def final_answer(context: Context, args: Mapping[str, Any]) -> Answer:
    """End the trial; the workspace is scored as it is."""
    return Answer("The trial is over; the workspace is scored as it is.", done=True)


def request_help(context: Context, args: Mapping[str, Any]) -> str:
    """Ask the person at the terminal; refused where nobody is there to ask, which is the rule."""
    if context.helper is None:
        raise ActionError("nobody is there to help in this run; decide yourself and go on")
    answer = _answer_of(context.helper, args["request"], context.step)
    if not answer:
        raise ActionError("nobody answered; decide yourself and go on")
    return answer


def _answer_of(person: Person, request: str, step: int) -> str:
    """The lines that the person enters up to an empty one."""
    person.tell(f"\n--- The agent asks for help at step {step} (its time goes on):\n{request}\n")
    lines: list[str] = []
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while line := person.ask("your answer, an empty line ends it: " if not lines else "... "):
            lines.append(line)
    return "\n".join(lines)


DEFINITIONS: tuple[Definition, ...] = (
    define(
        "Request Help",
        "Asks a person for help; answered only where a run has one.",
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
