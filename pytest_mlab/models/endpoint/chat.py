"""OpenAI's chat completions."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import ModelReply, ToolCall
from pytest_mlab.models.endpoint.asked import Asked
from pytest_mlab.models.endpoint.body import Body, Json, Refused, inner, objects
from pytest_mlab.models.endpoint.content import MARK, Placed, placed, read_content
from pytest_mlab.models.endpoint.offered import arguments_of, choose, input_of, read_tools
from pytest_mlab.models.endpoint.thoughts import as_chat, call_extras, from_chat

PASSED_ON = (
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "logit_bias",
    "reasoning_effort",
    "thinking",
    "parallel_tool_calls",
    "verbosity",
)
_ONLY = {
    "n": ((1,), "ask once for each answer"),
    "logprobs": ((False,), "ask without it"),
    "top_logprobs": ((0,), "ask without it"),
    "modalities": ((["text"],), "ask for text"),
    "audio": ((), "ask for text"),
    "functions": (([],), "send them as 'tools'"),
    "function_call": (("auto", "none"), "send 'tool_choice'"),
}
_SYSTEM = ("system", "developer")


def read(fields: Any) -> Asked:
    """A request. Raises Refused."""
    body = Body(fields)
    offered = read_tools(body.objects("tools"), "chat")
    extra = body.passed_on(PASSED_ON)
    if not isinstance(extra.get("thinking", {}), dict):
        raise Refused(f"'thinking' must be an object, not {extra['thinking']!r:.80}")
    if effort := body.object("reasoning").get("effort"):  # as OpenRouter has it
        extra.setdefault("reasoning_effort", effort)
    must_call, choice, offered = choose(body.any("tool_choice"), offered)
    schema, response_format = answer_format(body.any("response_format"))
    options = body.object("stream_options")
    limit = body.whole("max_tokens")
    found = [_message(item, f"messages[{n}]") for n, item in enumerate(body.objects("messages"))]
    asked = Asked(
        model=body.text("model"),
        messages=tuple(message for message, _ in found),
        places=tuple(places for _, places in found),
        temperature=body.number("temperature"),
        max_tokens=body.whole("max_completion_tokens") or limit,
        stop=body.texts("stop"),
        tools=offered.tools,
        must_call=must_call,
        schema=schema,
        extra=extra | choice | response_format,
        stream=body.flag("stream"),
        usage_in_stream=bool(options.get("include_usage")),
        kinds=offered.kinds,
    )
    if not asked.messages:
        raise Refused("'messages' is missing or empty")
    body.end(_ONLY)
    return replace(asked, left_out=(*offered.left_out, *body.left_out))


def answer_format(found: Any) -> tuple[Json | None, Json]:
    """The schema of the answer, or ``response_format`` as it is where it names none."""
    kind = found.get("type") if isinstance(found, dict) else found
    if kind in (None, "text"):
        return None, {}
    if kind == "json_object":
        return None, {"response_format": {"type": "json_object"}}
    schema = None
    if kind == "json_schema":
        schema = (inner(found, "json_schema") or found).get("schema")
    if not isinstance(schema, dict):
        raise Refused(
            f"the answer's format {found!r:.100} is not available here: text, json_object,"
            " json_schema are"
        )
    return schema, {}


def _message(found: Json, where: str) -> Placed:
    role = found.get("role")
    content = read_content(found.get("content"), f"{where}.content").marked(found.get(MARK))
    if role in _SYSTEM:
        return placed("system", content)
    if role == "user":
        return placed("user", content)
    if role in ("tool", "function"):
        return placed("tool", content, tool_call_id=str(found.get("tool_call_id") or ""))
    if role != "assistant":
        raise Refused(
            f"{where}.role is {role!r:.60}; available are system, developer, user, assistant and"
            " tool"
        )
    if not content.parts:
        content = read_content(found.get("refusal"), f"{where}.refusal")
    calls = tuple(map(_call, objects(found.get("tool_calls") or [], f"{where}.tool_calls")))
    return placed("assistant", content, tool_calls=calls, reasoning=from_chat(found))


def _call(found: Json) -> ToolCall:
    function, custom = found.get("function"), found.get("custom")
    if isinstance(custom, dict):
        arguments = arguments_of(custom.get("input"))
        return ToolCall(str(found.get("id")), str(custom.get("name")), arguments)
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
    if asked.shows_reasoning:
        message |= as_chat(reply.reasoning)
    if reply.tool_calls:
        message["tool_calls"] = _calls(asked, reply)
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
    if asked.shows_reasoning and reply.reasoning:
        yield chunk(as_chat(reply.reasoning))
    if reply.text:
        yield chunk({"content": reply.text})
    for number, call in enumerate(_calls(asked, reply)):
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


def _calls(asked: Asked, reply: ModelReply) -> list[Json]:
    extras = call_extras(reply.reasoning)
    return [
        {
            "id": call.id,
            **_called(asked, call),
            **({"extra_content": extras[call.id]} if call.id in extras else {}),
        }
        for call in reply.tool_calls
    ]


def _called(asked: Asked, call: ToolCall) -> Json:
    if asked.kinds.get(call.name) == "custom":
        inner = {"name": call.name, "input": input_of(call.arguments)}
        return {"type": "custom", "custom": inner}
    inner = {"name": call.name, "arguments": call.arguments}
    return {"type": "function", "function": inner}


def _finish(reply: ModelReply) -> str:
    return "tool_calls" if reply.tool_calls else reply.finish_reason or "stop"


def _head(reply: ModelReply, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": reply.model,
    }
