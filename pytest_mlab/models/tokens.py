"""Estimates of tokens, for when a provider has not said, or does not say, how many there were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ToolCall
from pytest_mlab.models.library import litellm
from pytest_mlab.models.tools import as_openai_tools

MESSAGE = 5
"""Tokens by which chat templates mark a message: its role, its begin and its end."""

ANSWER = 3
"""Tokens at the end of a prompt that mark the begin of the answer."""

TOOL_CALL = 24
"""The same for a tool call: its name and its arguments become JSON, or something as long."""

DIGITS = 6
"""One token more for so many digits."""

IMAGE = 1500
"""Tokens of an image: providers count up to about 1,600."""

_IMAGES = ("image", "image_url")
_ENCRYPTED = ("data", "encrypted_content")
_MARKS = ("type", "id", "status", "format", "signature", "thought_signature")
"""Fields of reasoning that hold it encrypted in base64, and those that are not part of it."""


def count_tokens(text: str) -> int:
    """Counted with the encoding that litellm ships (no network), which has three digits a token.
    Many other models have one digit a token; the count lies between the two."""
    if not text:
        return 0
    digits = sum(map(text.count, "0123456789"))
    return int(litellm().token_counter(model="gpt-4", text=text)) + digits // DIGITS


def prompt_tokens(messages: Iterable[Message], tools: Iterable[ActionSpec]) -> int:
    """Tokens of a prompt: its messages with their tool calls and their reasoning, and the tools
    that it offers."""
    # A provider counts the tools as part of the prompt, much as they are written in the request.
    count = sum(MESSAGE + count_tokens(json.dumps(tool)) for tool in as_openai_tools(tools))
    count += ANSWER
    for message in messages:
        count += MESSAGE + _text_tokens(message.content, message.tool_calls)
        count += reasoning_tokens(message.reasoning) + IMAGE * image_count(message)
    return count


def image_count(message: Message) -> int:
    """How many images are among the parts of a message."""
    return sum(str(part.get("type", "")).endswith(_IMAGES) for part in message.blocks)


def reply_tokens(
    text: str, calls: Sequence[ToolCall], reasoning: Sequence[Mapping[str, Any]] = ()
) -> int:
    """Tokens of an answer: its text, its tool calls and its reasoning."""
    return _text_tokens(text, calls) + reasoning_tokens(reasoning)


def reasoning_tokens(blocks: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of the blocks of a model's thinking. Encrypted ones are estimated by their length."""
    return sum(_value_tokens(value, name) for block in blocks for name, value in block.items())


def _text_tokens(text: str, calls: Sequence[ToolCall]) -> int:
    return count_tokens(text) + sum(
        TOOL_CALL + count_tokens(call.name) + count_tokens(call.arguments) for call in calls
    )


def _value_tokens(value: Any, name: str) -> int:
    if isinstance(value, str):
        if name in _MARKS:
            return 0
        # Base64 of text with 4 characters a token has 5 to 6 characters a token.
        return len(value) // 5 if name in _ENCRYPTED else count_tokens(value)
    if isinstance(value, Mapping):
        return sum(_value_tokens(one, key) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return sum(_value_tokens(one, name) for one in value)
    return 0
