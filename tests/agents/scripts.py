"""How a scripted server makes each built-in agent do given actions: one :class:`Case` an agent.

An agent that asks for one action a reply needs ``speak`` only. One with a dialogue of its own gives
``script``."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_mlab.models.tools import wire_name
from tests.support.research_replies import act_reply, autogpt_reply, react_reply, research_reply
from tests.support.scripted_server import Entry, Request, Script, call
from tests.support.toy_suite import TRAIN

MAIN = "gpt-4-turbo"
FAST = "gpt-4o-mini"
EDIT = "gpt-4o"
"""The models of every trial, so that a script can tell who asks."""

Act = tuple[str, Mapping[str, Any]]

LIST: Act = ("List Files", {"dir_path": "."})
RUN: Act = ("Execute Script", {"script_name": "train.py"})
SUBMIT: Act = ("Final Answer", {"final_answer": "done"})


@dataclass(frozen=True)
class Case:
    """One agent. ``speak`` words an action as the agent's model would, None when it calls no model;
    ``script`` makes the whole script from the actions instead (the last one is repeated for ever);
    ``garbage`` is a reply that the agent cannot use; ``settings`` are as in --mlab-agent-arg;
    ``needs`` names a module of an optional extra; ``ref`` is what --mlab-agent takes where that is
    not the name; ``submits``: with its last step, come what may; ``refused`` is which call of the
    main model must be survived when the prompt does not fit."""

    name: str
    speak: Callable[[str, Any], Entry] | None = None
    script: Callable[[Sequence[Act]], Script] | None = None
    garbage: Entry = "It is a fine day, and I would rather talk about the weather."
    settings: tuple[str, ...] = ()
    needs: str = ""
    ref: str = ""
    submits: bool = False
    refused: int = 3

    @property
    def calls_model(self) -> bool:
        """True when the agent talks to a model."""
        return self.speak is not None or self.script is not None

    @property
    def missing(self) -> bool:
        """True when the agent's extra is not installed."""
        return bool(self.needs) and importlib.util.find_spec(self.needs) is None

    def doing(self, *acts: Act) -> Script:
        """A script that makes the agent do ``acts``, the last one again and again."""
        if self.script is not None:
            return self.script(acts)
        assert self.speak is not None
        return in_turn(*(self.speak(*act) for act in acts))


def in_turn(*main: Entry, fast: Entry = "in short") -> Script:
    """The main model's replies one after the other, the last one for ever; the other models always
    say ``fast``."""
    left = list(main)

    def answer(request: Request) -> Entry:
        if request.model != MAIN:
            return fast
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def tool_call(action: str, args: Any) -> Entry:
    """A native call of one tool, by the name that providers take."""
    return call((wire_name(action), args))


def tree_script(acts: Sequence[Act]) -> Script:
    """The tree agent's model proposes what is there; the agent itself knows when to submit."""
    review = {"is_bug": False, "summary": "ran", "metric": 0.5, "lower_is_better": False}
    return in_turn(
        f"Plan: as it is\nFile: train.py\n```python\n{TRAIN}```\n", fast=json.dumps(review)
    )


CASES: tuple[Case, ...] = (
    Case("baseline"),
    Case("reference"),
    Case("act", act_reply),
    Case("autogpt", autogpt_reply),
    Case("react", react_reply),
    Case("research", research_reply),
    Case("research-retrieval", research_reply),
    Case("tree", script=tree_script, submits=True, refused=1),
    Case("tools", tool_call),
    Case("langchain", tool_call, needs="langchain"),
)

ELSEWHERE: Mapping[str, str] = {
    "aide": "tests/agents/test_aide.py",
    "command": "tests/agents/test_command_trial.py",
    "human": "tests/sessions/test_person.py",
}
"""Agents that no script can drive, or that are programs and do other steps, and the test that has
them."""
