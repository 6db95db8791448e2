"""Actions on the research log, the agent's long-term memory, a file outside the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from pytest_mlab.trial.actions import prompts
from pytest_mlab.trial.actions.base import ActionContext, ActionError, action, ask, shortened

LOG = "research_log.log"
MAX_READ = 100_000
"""Characters of the log, from its end, that the fast model gets to read."""


def log_file(context: ActionContext) -> Path:
    """Where the log is."""
    return context.trial.logs / LOG


@action(
    "Append Summary to Research Log",
    "Adds a summary of the last step to the research log.",
    returns="A confirmation.",
    order=160,
    content=(str, "what was done and what came out of it"),
)
def append_summary(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Add an entry."""
    with open(log_file(context), "a", encoding="utf-8") as file:
        file.write(f"{args['content'].strip()}\n\n")
    return "The entry has been added to the research log."


@action(
    "Retrieval from Research Log",
    "Finds what the research log holds that matters for the plan at hand.",
    returns="The relevant facts.",
    order=170,
    current_plan=(str, "the plan and its status"),
)
def retrieve(context: ActionContext, args: Mapping[str, Any]) -> str:
    """The entries of the log that matter for a plan."""
    return _asked(context, prompts.RETRIEVE, args["current_plan"])


@action(
    "Reflection",
    "Thinks about the research log.",
    returns="The reflection.",
    order=100,
    things_to_reflect_on=(str, "the question to think about"),
)
def reflect(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Thoughts over the log."""
    return _asked(context, prompts.REFLECT, args["things_to_reflect_on"])


def _asked(context: ActionContext, prompt: Template, about: str) -> str:
    try:
        text = log_file(context).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    if not text.strip():
        raise ActionError("the research log is empty; Append Summary to Research Log adds to it")
    answer, _ = ask(context, prompt.substitute(log=text[-MAX_READ:], about=about), role="fast")
    return shortened(answer.strip())
