"""Anthropic's messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelReply, ToolCall
from pytest_mlab.models.endpoint.asked import Asked, Body, Json, Refused, objects, text_of, tool
from pytest_mlab.models.endpoint.chat import choose

PASSED_ON = ("top_p", "top_k")
LEFT_OUT = (
    "thinking",
    "metadata",
    "service_tier",
    "cache_control",
    "context_management",
    "inference_geo",
    "speed",
)
"""``thinking`` is one of them: an answer here never holds the model's own thoughts, whose
signatures only the provider could check."""

_THOUGHTS = ("thinking", "redacted_thinking")
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_STOPS = {"length": "max_tokens", "content_filter": "refusal"}


def read(fields: Any) -> Asked:
    """A request, also one that asks for a count of tokens. Raises Refused."""
    body = Body(fields)
    tools = tuple(map(_tool, body.objects("tools")))
    extra = body.passed_on(PASSED_ON)
    choice = body.any("tool_choice")
    must_call, chosen = choose(_choice(choice), tools)
    if isinstance(choice, dict) and choice.get("disable_parallel_tool_use") and tools:
        extra["parallel_tool_calls"] = False
    schema = _schema(body, extra)
    system = text_of(body.any("system"), "system")
    asked = Asked(
        model=body.text("model"),
        messages=(
            *((Message("system", system),) if system else ()),
            *_messages(body.objects("messages")),
        ),
        temperature=body.number("temperature"),
        max_tokens=body.whole("max_tokens"),
        stop=body.texts("stop_sequences"),
        tools=tools,
        must_call=must_call,
        schema=schema,
        extra=extra | chosen,
        stream=body.flag("stream"),
    )
    body.leave_out(LEFT_OUT)
    body.end({"mcp_servers": ([],)})
    return replace(asked, left_out=tuple(body.left_out))


def _schema(body: Body, extra: Json) -> Json | None:
    """The schema of the answer, from either place where it can stand; effort goes to ``extra``."""
    config = body.any("output_config") or {}
    found = body.any("output_format") or config.get("format")
    if config.get("effort"):
        extra["reasoning_effort"] = config["effort"]
    if found is None:
        return None
    if found.get("type") != "json_schema" or not isinstance(found.get("schema"), dict):
        raise Refused(f"the answer's format {found!r:.100} is not available here: json_schema is")
    return dict(found["schema"])


def _choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    return {"name": choice.get("name")} if kind == "tool" else _CHOICES.get(str(kind), kind)


def _tool(found: Json) -> ActionSpec:
    if found.get("type", "custom") != "custom":
        raise Refused(
            f"a tool of the type {found['type']!r:.60}, which a provider runs, is not available"
            " here"
        )
    return tool(found.get("name"), found.get("description"), found.get("input_schema"))


def _messages(found: Sequence[Json]) -> Iterator[Message]:
    if not found:
        raise Refused("'messages' is missing or empty")
    for number, message in enumerate(found):
        where, role, content = f"messages[{number}]", message.get("role"), message.get("content")
        blocks = (
            [{"type": "text", "text": content}]
            if isinstance(content, str)
            else objects(content, where)
        )
        if role == "assistant":
            yield _assistant(blocks, where)
        elif role in ("user", "system"):
            results = [block for block in blocks if block.get("type") == "tool_result"]
            for block in results:
                text = text_of(block.get("content"), f"{where}.tool_result")
                yield Message("tool", text, tool_call_id=str(block.get("tool_use_id")))
            spoken = [block for block in blocks if block.get("type") != "tool_result"]
            if spoken or not results:
                yield Message("system" if role == "system" else "user", text_of(spoken, where))
        else:
            raise Refused(f"{where}.role is {role!r:.60}; available are user, assistant and system")


def _assistant(blocks: Sequence[Json], where: str) -> Message:
    calls = tuple(
        ToolCall(str(block.get("id")), str(block.get("name")), json.dumps(block.get("input") or {}))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    spoken = [block for block in blocks if block.get("type") not in ("tool_use", *_THOUGHTS)]
    return Message("assistant", text_of(spoken, where), calls)


def answer(asked: Asked, reply: ModelReply) -> Json:
    """The response to a request that does not stream."""
    return {**_head(reply), "content": _content(reply), **_end(reply), "usage": _usage(reply)}


def stream(asked: Asked, reply: ModelReply) -> Iterator[bytes]:
    """The response to a request that streams: the whole answer, in the events that a client
    expects."""
    usage = _usage(reply)
    head = {**_head(reply), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event(
        {"type": "message_start", "message": {**head, "usage": {**usage, "output_tokens": 0}}}
    )
    for index, block in enumerate(_content(reply)):
        empty, delta = _in_parts(block)
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    yield _event({"type": "message_delta", "delta": _end(reply), "usage": usage})
    yield _event({"type": "message_stop"})


def fault(status: int, message: str, code: str | None) -> Json:
    """An error in Anthropic's form."""
    kinds = {
        400: "invalid_request_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
    }
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}


def _head(reply: ModelReply) -> Json:
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
    }


def _content(reply: ModelReply) -> list[Json]:
    blocks: list[Json] = (
        [{"type": "text", "text": reply.text}] if reply.text or not reply.tool_calls else []
    )
    return blocks + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}
        for call in reply.tool_calls
    ]


def _input(call: ToolCall) -> Json:
    """A call's arguments as an object, which this API requires; a text that is not an object is put
    into one."""
    try:
        found = json.loads(call.arguments or "{}")
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"unparsed": call.arguments}


def _in_parts(block: Json) -> tuple[Json, Json]:
    """A block as a stream begins it, and the delta that follows."""
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    return {**block, "input": {}}, {
        "type": "input_json_delta",
        "partial_json": json.dumps(block["input"]),
    }


def _end(reply: ModelReply) -> Json:
    reason = "tool_use" if reply.tool_calls else _STOPS.get(reply.finish_reason, "end_turn")
    return {"stop_reason": reason, "stop_sequence": None}


def _usage(reply: ModelReply) -> Json:
    """Tokens as Anthropic names them; cached tokens are counted apart."""
    usage = reply.usage
    return {
        # Elsewhere prompt_tokens include the cached ones. Anthropic's clients add the two numbers
        # up.
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.completion_tokens,
    }


def _event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
