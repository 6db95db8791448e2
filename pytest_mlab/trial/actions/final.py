"""Final Answer, which ends the trial, and Request Help, which a person answers where the run has
one."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from pytest_mlab.core.agent_api import Person
from pytest_mlab.trial.actions.base import ActionAnswer, ActionContext, ActionError, action


@action(
    "Final Answer",
    "Submits the workspace as it is and ends the trial.",
    returns="Nothing more.",
    order=60,
    final_answer=(str, "a short account of the solution"),
)
def final_answer(context: ActionContext, args: Mapping[str, Any]) -> ActionAnswer:
    """End the trial; the workspace is scored as it is."""
    return ActionAnswer("The trial is over; the workspace is scored as it is.", done=True)


@action(
    "Request Help",
    "Asks a person for help; answered only where a run has one.",
    returns="The answer.",
    order=50,
    request=(str, "the question"),
)
def request_help(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Ask the person at the terminal; refused in a run without one, which is the default."""
    if context.helper is None:
        raise ActionError("no person can be asked in this run; decide yourself and go on")
    answer = _answer_of(context.helper, args["request"], context.step)
    if not answer:
        raise ActionError("no answer came; decide yourself and go on")
    return answer


def _answer_of(person: Person, request: str, step: int) -> str:
    """The lines that the person enters up to an empty one."""
    person.tell(f"\n--- The agent asks for help at step {step} (its time goes on):\n{request}\n")
    lines: list[str] = []
    # Ctrl-D and Ctrl-C end the answer and not the trial. The lines so far count.
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while line := person.ask("your answer, an empty line ends it: " if not lines else "... "):
            lines.append(line)
    return "\n".join(lines)
