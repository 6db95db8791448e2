"""How long an answer may be: what the model's context leaves, and what a provider says about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_mlab.core.model_api import ModelFacts, ModelRequest
from pytest_mlab.models.tokens import IMAGE, MESSAGE, TOOL_CALL, image_count, prompt_tokens

MARGIN = 1.25
"""The estimate of a prompt may be too low by as much."""

LEAST = 256
"""Tokens that are asked for in any case: whether a prompt fits at all is the provider's to say."""

_ABOUT_ANSWER = re.compile(
    r"max(?:imum)?[_ ]?(?:completion|output|new)?[_ ]?tokens|maxOutputTokens|in the completion"
    r"|output tokens",
    re.IGNORECASE,
)
_CONTEXT = (
    r"context (?:limit|window|length)\D{0,20}\d+ \+ \d+ > (\d+)",
    r"(?:maximum )?context (?:length|window|size|limit)\D{0,25}?(\d+)",
    r"max_model_len\D{0,6}(\d+)",
    r"`?inputs`? tokens \+ \D{0,40}(?:<=|less than)\s*(\d+)",
    r"input \+ max_\w+ must be \D{0,20}(\d+)",
)
_OUTPUT = (
    r"> (\d+), which is the maximum",
    r"at most (\d+)",
    r"(?:less than or equal to|<=)\s*[`'\"]?(\d+)",
    r"range of max_tokens is \[\d+, (\d+)\]",
    r"to (\d+) \((?:exclusive|inclusive)\)",
    r"(?:model|output|token) limit of (\d+)",
    r"maximum (?:value|allowed)\D{0,40}?(\d+)",
)


def limited(
    asked: int, request: ModelRequest, facts: ModelFacts, *, own: bool = False
) -> tuple[int, str]:
    """``asked`` tokens of answer, cut to what the model can give, and the remark about a cut ('').

    The longest answer by litellm's list does not bind a user's ``own`` limit, since the list may be
    old; the context binds all."""
    most, why = asked, ""
    if not own and facts.max_output and facts.max_output < asked:
        most, why = facts.max_output, "the model's longest answer"
    # Counting takes time. A token has at least one byte, so most requests need none.
    if facts.context and most + _bytes(request) > facts.context:
        prompt = prompt_tokens(request.messages, request.tools)
        left = max(LEAST, facts.context - round(prompt * MARGIN))
        if left < most:
            most = left
            why = f"the context of {facts.context} less about {prompt} of prompt"
    return most, f"max_tokens was lowered from {asked} to {most}: {why}" if most < asked else ""


def advice(words: str, request: ModelRequest, params: Mapping[str, Any], facts: ModelFacts) -> str:
    """What to give when a provider's ``words`` refuse the length that was asked for; '' when they
    are about something else, such as a prompt that does not fit."""
    asked = params.get("max_tokens") or params.get("max_completion_tokens")
    if not asked or not _ABOUT_ANSWER.search(words):
        return ""
    where = f'under [models."{request.model}"] in mlab-models.toml'
    context = _first(_CONTEXT, words)
    if context is not None:
        if prompt_tokens(request.messages, request.tools) >= context:
            return ""
        if facts.context != context:
            return (
                f"; to fix: write context = {context} {where} (or give"
                f" --mlab-model-arg=context={context}), so that no longer answer is asked for"
            )
    most = _first(_OUTPUT, words) or (context and context // 2)
    if not most or most >= asked:
        return ""
    return (
        f"; to fix: write max_tokens = {most} {where} (or give --mlab-model-arg=max_tokens={most})"
    )


def _first(patterns: tuple[str, ...], words: str) -> int | None:
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", words)
    for pattern in patterns:
        found = re.search(pattern, plain, re.IGNORECASE)
        if found:
            return int(found[1]) - plain.startswith(" (exclusive)", found.end(1))
    return None


def _bytes(request: ModelRequest) -> int:
    """An upper bound of the prompt's tokens."""
    written = [
        json.dumps([tool.name, tool.summary, tool.schema], default=dict) for tool in request.tools
    ]
    for message in request.messages:
        written.append(json.dumps([dict(block) for block in message.reasoning]))
        written += [call.name + call.arguments for call in message.tool_calls]
        written.append(message.content)
    marks = sum(MESSAGE + TOOL_CALL * len(message.tool_calls) for message in request.messages)
    images = sum(IMAGE * image_count(message) for message in request.messages)
    texts = sum(MESSAGE + len(text.encode("utf-8", "replace")) for text in written)
    return marks + images + texts
