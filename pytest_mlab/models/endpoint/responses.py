"""OpenAI's responses, as programs use them that keep the conversation themselves."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelReply, ToolCall
from pytest_mlab.models.endpoint.asked import Asked, Body, Json, Refused, objects, text_of, tool
from pytest_mlab.models.endpoint.chat import answer_format, choose, fault

__all__ = ["answer", "fault", "read", "stream"]

PASSED_ON = ("top_p", "parallel_tool_calls")
LEFT_OUT = (
    "user",
    "metadata",
    "store",
    "service_tier",
    "include",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "client_metadata",
    "stream_options",
)
_SAME = {"truncation": ("disabled",), "background": (False,), "top_logprobs": (0,)}
_TEXTS = ("input_text", "output_text", "text", "refusal")
_SYSTEM = ("system", "developer")


def read(fields: Any) -> Asked:
    """A request. Raises Refused."""
    body = Body(fields)
    tools = tuple(map(_tool, body.objects("tools")))
    extra = body.passed_on(PASSED_ON)
    must_call, choice = choose(body.any("tool_choice"), tools)
    form, thought = body.any("text") or {}, body.any("reasoning") or {}
    schema, response_format = answer_format(form.get("format"))
    hints = {"verbosity": form.get("verbosity"), "reasoning_effort": thought.get("effort")}
    system = body.text("instructions", "")
    asked = Asked(
        model=body.text("model"),
        messages=(*((Message("system", system),) if system else ()), *_messages(body.any("input"))),
        temperature=body.number("temperature"),
        max_tokens=body.whole("max_output_tokens"),
        tools=tools,
        must_call=must_call,
        schema=schema,
        extra=extra
        | choice
        | response_format
        | {name: value for name, value in hints.items() if value is not None},
        stream=body.flag("stream"),
    )
    body.leave_out(LEFT_OUT)
    body.end(_SAME)
    return replace(asked, left_out=tuple(body.left_out))


def _tool(found: Json) -> ActionSpec:
    if found.get("type") != "function":
        raise Refused(
            f"a tool of the type {found.get('type')!r:.60} is not available here, only functions"
        )
    return tool(found.get("name"), found.get("description"), found.get("parameters"))


def _messages(found: Any) -> Iterator[Message]:
    """The items as messages: calls belong to the assistant's message before them."""
    if isinstance(found, str):
        yield Message("user", found)
        return
    items = objects(found or [], "input")
    if not items:
        raise Refused("'input' is missing or empty")
    spoken: Message | None = None
    for number, item in enumerate(items):
        kind, where = item.get("type", "message"), f"input[{number}]"
        if kind == "reasoning":
            continue
        if kind == "function_call":
            call = ToolCall(
                str(item.get("call_id")), str(item.get("name")), str(item.get("arguments") or "")
            )
            spoken = spoken or Message("assistant", "")
            spoken = replace(spoken, tool_calls=(*spoken.tool_calls, call))
            continue
        if spoken is not None:
            yield spoken
            spoken = None
        if kind == "function_call_output":
            text = text_of(item.get("output"), f"{where}.output", _TEXTS)
            yield Message("tool", text, tool_call_id=str(item.get("call_id")))
        elif kind == "message":
            message = _message(item, where)
            spoken = message if message.role == "assistant" else None
            if spoken is None:
                yield message
        else:
            raise Refused(f"{where}: an item of the type {kind!r:.60} is not available here")
    if spoken is not None:
        yield spoken


def _message(item: Json, where: str) -> Message:
    role, text = item.get("role"), text_of(item.get("content"), f"{where}.content", _TEXTS)
    if role in _SYSTEM:
        return Message("system", text)
    if role == "user":
        return Message("user", text)
    if role == "assistant":
        return Message("assistant", text)
    raise Refused(
        f"{where}.role is {role!r:.60}; available are system, developer, user and assistant"
    )


def answer(asked: Asked, reply: ModelReply) -> Json:
    """The response to a request that does not stream."""
    return _response(_head(asked, reply), reply, [done for _, done in _items(reply)])


def stream(asked: Asked, reply: ModelReply) -> Iterator[bytes]:
    """The response to a request that streams: the whole answer, in the events that a client
    expects."""
    for number, data in enumerate(_events(asked, reply)):
        line = json.dumps({**data, "sequence_number": number})
        yield f"event: {data['type']}\ndata: {line}\n\n".encode()


def _events(asked: Asked, reply: ModelReply) -> Iterator[Json]:
    head = _head(asked, reply)
    begun = {**head, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    items = _items(reply)
    for index, (empty, done) in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        place = {"item_id": done["id"], "output_index": index}
        if done["type"] == "message":
            yield from _spoken({**place, "content_index": 0}, done["content"][0])
        else:
            arguments = {"arguments": done["arguments"], "name": done["name"]}
            yield {
                "type": "response.function_call_arguments.delta",
                **place,
                "delta": done["arguments"],
            }
            yield {"type": "response.function_call_arguments.done", **place, **arguments}
        yield {"type": "response.output_item.done", "output_index": index, "item": done}
    response = _response(head, reply, [done for _, done in items])
    yield {"type": f"response.{response['status']}", "response": response}


def _spoken(place: Json, part: Json) -> Iterator[Json]:
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    yield {"type": "response.output_text.delta", **place, "delta": part["text"], "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _items(reply: ModelReply) -> list[tuple[Json, Json]]:
    """What the answer consists of, each as a stream begins it and as it ends."""
    items: list[tuple[Json, Json]] = []
    if reply.text or not reply.tool_calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant"}
        begun = {**message, "status": "in_progress", "content": []}
        items.append((begun, {**message, "status": "completed", "content": [part]}))
    for call in reply.tool_calls:
        item = {
            "type": "function_call",
            "id": f"fc_{uuid.uuid4().hex}",
            "call_id": call.id,
            "name": call.name,
        }
        begun = {**item, "status": "in_progress", "arguments": ""}
        items.append((begun, {**item, "status": "completed", "arguments": call.arguments}))
    return items


def _head(asked: Asked, reply: ModelReply) -> Json:
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "model": reply.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": asked.temperature,
        "tool_choice": "required" if asked.must_call else "auto",
        "tools": [],
        "top_p": asked.extra.get("top_p"),
    }


def _response(head: Json, reply: ModelReply, items: list[Json]) -> Json:
    usage = reply.usage
    cut = reply.finish_reason == "length"
    return {
        **head,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": items,
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.total,
        },
    }
