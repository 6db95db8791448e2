"""OpenAI's chat completions."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelReply, ToolCall
from pytest_mlab.models.endpoint.asked import Asked, Body, Json, Refused, objects, text_of, tool
from pytest_mlab.models.tools import wire_name

PASSED_ON = (
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "logit_bias",
    "reasoning_effort",
    "parallel_tool_calls",
    "verbosity",
)
LEFT_OUT = (
    "user",
    "metadata",
    "store",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
)
_SAME = {"n": (1,), "logprobs": (False,), "modalities": (["text"],), "tool_choice": ("auto",)}
_SYSTEM = ("system", "developer")


def read(fields: Any) -> Asked:
    """A request. Raises Refused."""
    body = Body(fields)
    tools = tuple(map(_tool, body.objects("tools")))
    extra = body.passed_on(PASSED_ON)
    must_call, choice = choose(body.any("tool_choice"), tools)
    schema, response_format = answer_format(body.any("response_format"))
    options = body.any("stream_options") or {}
    limit = body.whole("max_tokens")
    asked = Asked(
        model=body.text("model"),
        messages=tuple(
            _message(item, f"messages[{n}]") for n, item in enumerate(body.objects("messages"))
        ),
        temperature=body.number("temperature"),
        max_tokens=body.whole("max_completion_tokens") or limit,
        stop=body.texts("stop"),
        tools=tools,
        must_call=must_call,
        schema=schema,
        extra=extra | choice | response_format,
        stream=body.flag("stream"),
        usage_in_stream=bool(isinstance(options, dict) and options.get("include_usage")),
    )
    if not asked.messages:
        raise Refused("'messages' is missing or empty")
    body.leave_out(LEFT_OUT)
    body.end(_SAME)
    return replace(asked, left_out=tuple(body.left_out))


def choose(choice: Any, tools: tuple[ActionSpec, ...]) -> tuple[bool, Json]:
    """Whether a tool must be called, and ``tool_choice`` where there is more to it."""
    if isinstance(choice, dict):
        name = (choice.get("function") or choice).get("name")
        if name not in {tool.name for tool in tools}:
            raise Refused(f"'tool_choice' names {name!r:.60}, which is none of the request's tools")
        if len(tools) == 1:
            return True, {}
        return False, {"tool_choice": {"type": "function", "function": {"name": wire_name(name)}}}
    if choice in (None, "auto", "required"):
        return choice == "required", {}
    if choice == "none":
        return False, {"tool_choice": "none"} if tools else {}
    raise Refused(
        f"'tool_choice' is {choice!r:.60}; available are auto, none, required and a function"
    )


def answer_format(found: Any) -> tuple[Json | None, Json]:
    """The schema of the answer, or ``response_format`` as it is where it names none."""
    kind = found.get("type") if isinstance(found, dict) else found
    if kind in (None, "text"):
        return None, {}
    if kind == "json_object":
        return None, {"response_format": {"type": "json_object"}}
    schema = (found.get("json_schema") or found).get("schema") if kind == "json_schema" else None
    if not isinstance(schema, dict):
        raise Refused(
            f"the answer's format {found!r:.100} is not available here: text, json_object,"
            " json_schema are"
        )
    return schema, {}


def _tool(found: Json) -> ActionSpec:
    function = found.get("function")
    if found.get("type") != "function" or not isinstance(function, dict):
        raise Refused(
            f"a tool of the type {found.get('type')!r:.60} is not available here, only functions"
        )
    return tool(function.get("name"), function.get("description"), function.get("parameters"))


def _message(found: Json, where: str) -> Message:
    role = found.get("role")
    text = text_of(found.get("content"), f"{where}.content", ("text", "refusal"))
    if role in _SYSTEM:
        return Message("system", text)
    if role == "user":
        return Message("user", text)
    if role == "tool":
        return Message("tool", text, tool_call_id=str(found.get("tool_call_id") or ""))
    if role != "assistant":
        raise Refused(
            f"{where}.role is {role!r:.60}; available are system, developer, user, assistant and"
            " tool"
        )
    calls = objects(found.get("tool_calls") or [], f"{where}.tool_calls")
    return Message("assistant", text, tuple(map(_call, calls)))


def _call(found: Json) -> ToolCall:
    function = found.get("function")
    if not isinstance(function, dict):
        raise Refused("a tool call without a function is not available here")
    return ToolCall(
        str(found.get("id")), str(function.get("name")), str(function.get("arguments") or "")
    )


def answer(asked: Asked, reply: ModelReply) -> Json:
    """The response to a request that does not stream."""
    message: Json = {
        "role": "assistant",
        "content": reply.text or (None if reply.tool_calls else ""),
    }
    if reply.tool_calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {
        **_head(reply, "chat.completion"),
        "choices": [choice],
        "usage": usage_json(reply.usage),
    }


def stream(asked: Asked, reply: ModelReply) -> Iterator[bytes]:
    """The response to a request that streams: the whole answer, in the events that a client
    expects."""
    head = _head(reply, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    if reply.text:
        yield chunk({"content": reply.text})
    for number, call in enumerate(_calls(reply)):
        yield chunk({"tool_calls": [{"index": number, **call}]})
    yield chunk({}, _finish(reply))
    if asked.usage_in_stream:
        yield event({**head, "choices": [], "usage": usage_json(reply.usage)})
    yield b"data: [DONE]\n\n"


def fault(status: int, message: str, code: str | None) -> Json:
    """An error in OpenAI's form."""
    kind = code
    if status in (400, 404, 413):
        kind = "invalid_request_error"
    elif status >= 500:
        kind = "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def event(data: Json) -> bytes:
    """One event of a stream."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def usage_json(usage: Usage) -> Json:
    """Tokens in OpenAI's words."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _calls(reply: ModelReply) -> list[Json]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in reply.tool_calls
    ]


def _finish(reply: ModelReply) -> str:
    return "tool_calls" if reply.tool_calls else reply.finish_reason or "stop"


def _head(reply: ModelReply, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": reply.model,
    }
