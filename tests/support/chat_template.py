"""Prompts as a chat template writes them: that of Hermes and Qwen, whose marks (``<|im_start|>``)
the tokenizer of SmolLM2 knows as well."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelReply, ModelRequest
from pytest_mlab.models.tools import as_openai_tools

_TOOLS = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


def prompt_text(request: ModelRequest) -> str:
    """What a server makes of ``request``."""
    messages = list(request.messages)
    if request.tools and messages[0].role != "system":
        messages.insert(0, Message("system", ""))
    texts = [_written(messages[0], request.tools), *map(_written, messages[1:])]
    return "".join(texts) + "<|im_start|>assistant\n"


def answer_text(reply: ModelReply) -> str:
    """What the model wrote."""
    message = Message("assistant", reply.text, reply.tool_calls, reasoning=reply.reasoning)
    return _content(message) + "<|im_end|>"


def _written(message: Message, tools: Sequence[ActionSpec] = ()) -> str:
    text = _content(message)
    if tools:
        text += _TOOLS.format(tools="\n".join(json.dumps(tool) for tool in as_openai_tools(tools)))
    role = "user" if message.role == "tool" else message.role
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _content(message: Message) -> str:
    text = message.content
    if message.role == "tool":
        text = f"<tool_response>\n{text}\n</tool_response>"
    if message.reasoning:
        thoughts = "\n".join(str(block.get("thinking", "")) for block in message.reasoning)
        text = f"<think>\n{thoughts}\n</think>\n\n{text}"
    for call in message.tool_calls:
        called = f'{{"name": "{call.name}", "arguments": {call.arguments}}}'
        text += f"\n<tool_call>\n{called}\n</tool_call>"
    return text
