"""Estimates of tokens, for when a provider has not said, or does not say, how many there were."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message
from pytest_mlab.models.library import litellm


def count_tokens(text: str) -> int:
    """Counted with the encoding that litellm ships (no network): exact for OpenAI's models of the
    gpt-4 generation, usually within a fifth for others."""
    return int(litellm().token_counter(model="gpt-4", text=text)) if text else 0


def prompt_tokens(messages: Iterable[Message], tools: Iterable[ActionSpec]) -> int:
    """Tokens of a prompt: its messages with their tool calls, and the tools that it offers."""
    # A provider counts the tools' schemas as part of the prompt.
    texts = [
        f"{tool.name} {tool.summary} {json.dumps(tool.schema, default=dict)}" for tool in tools
    ]
    for message in messages:
        texts.append(message.content)
        texts += [call.name + call.arguments for call in message.tool_calls]
    return sum(map(count_tokens, texts))
