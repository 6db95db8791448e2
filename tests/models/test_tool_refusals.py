"""What providers say when they take no tools, and when something else is wrong."""

from __future__ import annotations

import pytest

from pytest_mlab.errors import BadRequestError, ProviderDownError, ProviderError, RateLimitError
from pytest_mlab.models.tool_refusals import refuses_tools

REFUSALS = [
    "registry.ollama.ai/library/high-reasoning:latest does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "tools param requires --jinja flag",
    "No endpoints found that support tool use.",
    "No endpoints found that support the provided 'tool_choice' value.",
    "Function calling is not enabled for this model",
    "model features function calling not support",
    "Tools is not supported in this model.",
    "This model doesn't support tool use.",
    "Unrecognized request argument supplied: tools",
    "property 'tools' is unsupported",
    "{'loc': ('body', 'tools'), 'msg': 'Extra inputs are not permitted'}",
    "openai does not support parameters: ['tools'], for model=m",
    "Failed to call a function. Please adjust your prompt. (tool_use_failed)",
    "openai/kimi-thinking: the provider refused the request (400): tools are not supported",
]
OTHERS = [
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    " When `thinking` is enabled, a final `assistant` message must start with a thinking block"
    " (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
    "Missing `reasoning_content` field in the assistant message at message index 2. See tool calls",
    "Function tools with reasoning_effort are not supported in /v1/chat/completions.",
    "The reasoning_content in the thinking mode must be passed back to the API with tool calls.",
    "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    "messages.5.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "Function call is missing a thought_signature in functionCall parts. This is required for tools"
    " to work correctly, and unsupported without",
    "Thinking may not be enabled when tool_choice forces tool use.",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
    " 'tool_call_id'.",
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    "Not the same number of function calls and responses",
    "Please ensure that function call turn comes immediately after a user turn",
    "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item",
    "tools.0.custom.input_schema: JSON schema is invalid",
    "Invalid schema for function 'List_Files': None is not of type 'array'",
    "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
    "Unsupported parameter: 'temperature' is not supported with this model.",
    "Invalid value: 'oracle'.",
]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_refusal_of_tools(words: str) -> None:
    assert refuses_tools(BadRequestError(f"m: the provider refused the request (400): {words}"))


@pytest.mark.parametrize("words", OTHERS)
def test_another_failure(words: str) -> None:
    assert not refuses_tools(BadRequestError(f"m: the provider refused the request (400): {words}"))


def test_only_an_answer_of_the_provider_refuses() -> None:
    words = "m does not support tools"
    assert refuses_tools(ProviderError(words))
    assert not refuses_tools(RateLimitError(words))
    assert not refuses_tools(ProviderDownError(words))
