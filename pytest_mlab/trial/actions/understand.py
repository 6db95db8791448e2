"""Understand File: the fast model reads a file that the agent has no room for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mlab.trial.actions import prompts
from pytest_mlab.trial.actions.answers import fence_around
from pytest_mlab.trial.actions.base import ActionContext, action, ask, ask_over, shortened
from pytest_mlab.trial.actions.files import read_text

# MLAgentBench's value.
BLOCK = 10_000
"""Characters that the fast model reads at once."""

MAX_READ = 500_000
"""Characters of a file that are read at most."""


@action(
    "Understand File",
    "Lets an AI read a whole file and report on what you look for.",
    returns="A report.",
    order=70,
    file_name=(str, "a file of the workspace"),
    things_to_look_for=(str, "what you want to know, in detail"),
)
def understand_file(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Answer a question about a file: block by block, then combined."""
    name, question = args["file_name"], args["things_to_look_for"]
    text = read_text(context, name)
    left_out = len(text) - MAX_READ

    def prompt(part: str, number: int, of: int) -> str:
        return prompts.UNDERSTAND.substitute(
            name=name,
            question=question,
            content=part,
            number=number,
            of=of,
            fence=fence_around(part),
        )

    found = ask_over(context, text[:MAX_READ], prompt, BLOCK)
    answer = found[0]
    if len(found) > 1:
        parts = "\n\n".join(f"[part {number}]\n{part}" for number, part in enumerate(found, 1))
        answer = ask(
            context, prompts.COMBINE.substitute(question=question, parts=parts), role="fast"
        )[0].strip()
    note = f"\n(The last {left_out} characters of {name} were not read.)" if left_out > 0 else ""
    return shortened(f"{answer}{note}")
