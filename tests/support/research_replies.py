"""What a model answers to the research agent, for scripts of the scripted server and of the fake
model."""

from __future__ import annotations

import json
from typing import Any


def research_reply(
    action: str, args: dict[str, Any] | str, plan: str = "1. look  2. act", thought: str = "go"
) -> str:
    """A well-formed answer; ``args`` as a text are taken as they are."""
    arguments = args if isinstance(args, str) else json.dumps(args)
    return (
        "Reflection: nothing yet\n"
        f"Research Plan and Status: {plan}\n"
        "Fact Check: nothing to check\n"
        f"Thought: {thought}\n"
        f"Action: {action}\n"
        f"Action Input: {arguments}\n"
    )


def research_script(*steps: tuple[str, dict[str, Any] | str]) -> list[str]:
    """Answers for the given actions, one a step."""
    return [research_reply(action, args) for action, args in steps]


def submit() -> str:
    """The answer that ends a trial."""
    return research_reply("Final Answer", {"final_answer": "done"})


def act_reply(action: str, args: dict[str, Any] | str) -> str:
    """A well-formed answer to the act agent."""
    arguments = args if isinstance(args, str) else json.dumps(args)
    return f"Action: {action}\nAction Input: {arguments}\n"


def react_reply(action: str, args: dict[str, Any] | str, thought: str = "go") -> str:
    """A well-formed answer to the react agent."""
    return f"Thought: {thought}\n{act_reply(action, args)}"


def autogpt_reply(action: str, args: Any, thought: str = "go") -> str:
    """A well-formed answer to the autogpt agent."""
    thoughts = {
        "text": thought,
        "reasoning": "why not",
        "plan": "- look\n- act",
        "criticism": "hasty",
        "speak": "hm",
    }
    return json.dumps({"thoughts": thoughts, "command": {"name": action, "args": args}})
