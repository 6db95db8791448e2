"""Tokens counted here, before a provider says how many there were."""

from __future__ import annotations

import json

from pytest_mlab.core.model_api import ModelRequest
from pytest_mlab.models.library import litellm


def count_tokens(text: str) -> int:
    """By the encoding that litellm carries with it (no network): exact for OpenAI's models of the
    gpt-4 generation, usually within a fifth for others."""
    return int(litellm().token_counter(model="gpt-4", text=text)) if text else 0


def prompt_tokens(request: ModelRequest) -> int:
    """What a request sends, its tools and tool calls included."""
    called = [
        call.name + call.arguments for message in request.messages for call in message.tool_calls
    ]
    tools = [
        f"{tool.name} {tool.summary} {json.dumps(tool.schema, default=dict)}"
        for tool in request.tools
    ]
    return sum(
        map(count_tokens, [*(message.content for message in request.messages), *called, *tools])
    )
