"""Tools and tool calls as OpenAI's API writes them, which is what litellm takes for every
provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.calls import action_name, argument_object
from pytest_mlab.core.model_api import Message, ToolCall
from pytest_mlab.models.prices import list_entry
from pytest_mlab.models.reasoning import put_back


def knows_tools(model: str) -> bool:
    """Whether the provider takes tools for ``model``, by litellm's list; True for a model that is
    not in it."""
    entry = list_entry(model)
    return not entry or bool(entry.get("supports_function_calling"))


def wire_name(name: str) -> str:
    """An action's name in the alphabet that all providers take: ``Edit Script (AI)`` is
    ``Edit_Script_AI``."""
    return re.sub(r"[^A-Za-z0-9-]+", "_", name).strip("_")[:64]


def as_openai_tools(tools: Iterable[ActionSpec]) -> list[dict[str, Any]]:
    """``tools`` as functions."""
    return [
        {
            "type": "function",
            **tool.marks,
            "function": {
                "name": wire_name(tool.name),
                "description": tool.summary + (f" Gives: {tool.returns}" if tool.returns else ""),
                "parameters": json.loads(json.dumps(tool.schema, default=dict)),
            },
        }
        for tool in tools
    ]


def as_openai_messages(
    messages: Iterable[Message], reasoning_name: str = ""
) -> list[dict[str, Any]]:
    """``messages`` with their tool calls and their reasoning, whose text the provider calls
    ``reasoning_name`` ('' when it is unknown)."""
    found = []
    for message in messages:
        plain = _message(message)
        if message.role == "assistant":
            put_back(plain, message.reasoning, reasoning_name)
        found.append(plain)
    return found


def called(choice: Any, tools: Sequence[ActionSpec]) -> tuple[ToolCall, ...]:
    """The calls in a choice of litellm's answer, by the names of the actions."""
    calls = getattr(getattr(choice, "message", None), "tool_calls", None) or ()
    return tuple(_call(number, call, tools) for number, call in enumerate(calls))


def tool_name(written: str, tools: Sequence[ActionSpec]) -> str | None:
    """The name of the one of ``tools`` that a model means by ``written``; None for none of them."""
    names = {wire_name(tool.name): tool.name for tool in tools}
    # Names that providers do not take reach them in another form, cut to a length perhaps.
    return names.get(written) or action_name(written, [tool.name for tool in tools])


def argument_text(written: Any) -> str:
    """The JSON text of a call's arguments, which a server may give as an object or encoded
    twice; what is no object stays as the model wrote it."""
    found = argument_object(written)
    if isinstance(found, str):
        return written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
    if isinstance(written, str) and written.lstrip()[:1] in ("", "{"):
        return written
    return json.dumps(found, ensure_ascii=False)


def _call(number: int, call: Any, tools: Sequence[ActionSpec]) -> ToolCall:
    name = str(call.function.name or "")
    return ToolCall(
        str(call.id or f"call_{number}"),
        tool_name(name, tools) or name,
        argument_text(call.function.arguments or ""),
    )


def _message(message: Message) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.blocks:
        plain["content"] = [dict(block) for block in message.blocks]
    if message.tool_calls:
        plain["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": wire_name(call.name), "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        plain["tool_call_id"] = message.tool_call_id
    return plain
