"""OpenAI's responses."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Container, Iterator
from dataclasses import replace
from typing import Any

from pytest_mlab.core.model_api import Message, ModelReply, ToolCall
from pytest_mlab.models.endpoint.asked import Asked
from pytest_mlab.models.endpoint.body import Body, Json, Refused, objects
from pytest_mlab.models.endpoint.chat import answer_format, fault
from pytest_mlab.models.endpoint.content import Content, Placed, placed, read_content
from pytest_mlab.models.endpoint.offered import arguments_of, choose, input_of, read_tools
from pytest_mlab.models.endpoint.thoughts import as_items, from_item

__all__ = ["answer", "fault", "read", "stream"]

PASSED_ON = ("top_p", "parallel_tool_calls")
_ONLY = {
    "prompt": ((), "send its text as 'instructions'"),
    "top_logprobs": ((0,), "ask without it"),
}
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_SYSTEM = ("system", "developer")


def read(fields: Any) -> Asked:
    """A request that holds the whole conversation (:mod:`.kept`). Raises Refused."""
    body = Body(fields)
    offered = read_tools([*body.objects("tools"), *_added(fields)], "responses")
    extra = body.passed_on(PASSED_ON)
    must_call, choice, offered = choose(body.any("tool_choice"), offered)
    form, thought = body.object("text"), body.object("reasoning")
    schema, response_format = answer_format(form.get("format"))
    hints = {"verbosity": form.get("verbosity"), "reasoning_effort": thought.get("effort")}
    system = body.text("instructions", "")
    found = [*_messages(body.any("input"))]
    if system:
        found.insert(0, placed("system", read_content(system, "instructions")))
    asked = Asked(
        model=body.text("model"),
        messages=tuple(message for message, _ in found),
        places=tuple(places for _, places in found),
        temperature=body.number("temperature"),
        max_tokens=body.whole("max_output_tokens"),
        tools=offered.tools,
        must_call=must_call,
        schema=schema,
        extra=extra
        | choice
        | response_format
        | {name: value for name, value in hints.items() if value is not None},
        stream=body.flag("stream"),
        kinds=offered.kinds,
    )
    included = body.texts("include")
    if "message.output_text.logprobs" in included:
        raise Refused(
            "'include' asks for log probabilities, which are not available at this endpoint; to"
            " fix: leave message.output_text.logprobs out"
        )
    body.end(_ONLY)
    return replace(asked, left_out=(*offered.left_out, *body.left_out))


def _added(fields: Any) -> list[Json]:
    """Tools that stand among the input's items, or in a field of their own."""
    if not isinstance(fields, dict):
        return []
    items = fields["input"] if isinstance(fields.get("input"), list) else []
    places = [item for item in items if isinstance(item, dict)]
    found = [fields.get("additional_tools")]
    found += [item.get("tools") for item in places if item.get("type") == "additional_tools"]
    return [one for tools in found for one in objects(tools or [], "additional_tools")]


def _messages(found: Any) -> Iterator[Placed]:
    """The items as messages: calls belong to the assistant's message before them, reasoning to the
    one after it."""
    if isinstance(found, str):
        yield placed("user", read_content(found, "input"))
        return
    items = objects(found or [], "input")
    if not items:
        raise Refused("'input' is missing or empty")
    spoken: Placed | None = None
    called: set[str] = set()
    for number, item in enumerate(items):
        kind, where = str(item.get("type") or "message"), f"input[{number}]"
        is_call = kind in _CALLS
        if kind == "reasoning":
            # Reasoning before a call continues a message; before a text it begins one.
            block = from_item(item)
            if spoken is not None and spoken[0].tool_calls:
                yield spoken
                spoken = None
            if block is not None:
                spoken = _joined(spoken, reasoning=(block,))
            continue
        if is_call:
            call = _call(item, kind)
            called.add(call.id)
            spoken = _joined(spoken, calls=(call,))
            continue
        if spoken is not None and _continues(item, kind, spoken[0]):
            content = read_content(item.get("content"), f"{where}.content")
            before = spoken[0]
            spoken = placed("assistant", content, reasoning=before.reasoning)
            continue
        if spoken is not None:
            yield spoken
            spoken = None
        one = _item(item, kind, where, called)
        if one is not None and one[0].role == "assistant":
            spoken = one
        elif one is not None:
            yield one
    if spoken is not None:
        yield spoken


def _joined(
    spoken: Placed | None, *, calls: tuple[ToolCall, ...] = (), reasoning: tuple[Json, ...] = ()
) -> Placed:
    """The assistant's message ``spoken`` with more calls or reasoning."""
    message, places = spoken or placed("assistant", Content())
    message = replace(
        message,
        tool_calls=(*message.tool_calls, *calls),
        reasoning=(*message.reasoning, *reasoning),
    )
    return message, places


def _continues(item: Json, kind: str, before: Message) -> bool:
    """Whether an item is the text of the message that so far holds only reasoning."""
    is_text = kind == "message" and item.get("role") == "assistant"
    return is_text and not before.content and not before.tool_calls


def _call(item: Json, kind: str) -> ToolCall:
    arguments = str(item.get("arguments") or "")
    name = str(item.get("name"))
    if kind == "custom_tool_call":
        arguments = arguments_of(item.get("input"))
    elif kind == "local_shell_call":
        name, arguments = "local_shell", json.dumps(item.get("action") or {})
    return ToolCall(str(item.get("call_id") or item.get("id")), name, arguments)


def _item(item: Json, kind: str, where: str, called: Container[str]) -> Placed | None:
    """The message of an item that is neither a call nor reasoning; None for one that says nothing
    to the model. ``called`` are the ids of the calls before it."""
    if kind.endswith("_call_output"):
        output = item.get("output")
        output = [output] if isinstance(output, dict) else output
        content = read_content(output, f"{where}.output")
        call = str(item.get("call_id") or item.get("id"))
        if call in called:
            return placed("tool", content, tool_call_id=call)
        # Its call has become text, or is not there. Providers refuse a result without a call.
        told = read_content(f"[{kind}]", where)
        return placed("user", Content(told.parts + content.parts, told.places + content.places))
    if kind == "message":
        return _message(item, where)
    if kind == "additional_tools":
        return None
    # A provider's own tool at work, and kinds that are yet to come.
    return placed("assistant", read_content([item], where))


def _message(item: Json, where: str) -> Placed:
    role, content = item.get("role"), read_content(item.get("content"), f"{where}.content")
    if role in _SYSTEM:
        return placed("system", content)
    if role == "user":
        return placed("user", content)
    if role == "assistant":
        return placed("assistant", content)
    raise Refused(
        f"{where}.role is {role!r:.60}; available are system, developer, user and assistant"
    )


def answer(asked: Asked, reply: ModelReply) -> Json:
    """The response to a request that does not stream."""
    response = _response(_head(asked, reply), reply, _items(asked, reply))
    asked.on_response(response)
    return response


def stream(asked: Asked, reply: ModelReply) -> Iterator[bytes]:
    """The response to a request that streams: the whole answer, in the events that a client
    expects."""
    for number, data in enumerate(_events(answer(asked, reply))):
        line = json.dumps({**data, "sequence_number": number})
        yield f"event: {data['type']}\ndata: {line}\n\n".encode()


def _events(response: Json) -> Iterator[Json]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    begun["incomplete_details"] = None
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        empty = {**item, **_EMPTY.get(item["type"], {})}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        yield from _inside(item, {"item_id": item["id"], "output_index": index})
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


_BEGUN = {"status": "in_progress"}
_EMPTY: dict[str, Json] = {
    "message": {**_BEGUN, "content": []},
    "function_call": {**_BEGUN, "arguments": ""},
    "custom_tool_call": {**_BEGUN, "input": ""},
    "local_shell_call": _BEGUN,
    "reasoning": {"summary": []},
}
"""What an item lacks when a stream begins it."""


def _inside(item: Json, place: Json) -> Iterator[Json]:
    """The events between an item's begin and its end."""
    kind = item["type"]
    if kind == "message":
        yield from _spoken({**place, "content_index": 0}, item["content"][0])
    elif kind == "reasoning":
        for number, part in enumerate(item["summary"]):
            yield from _thought({**place, "summary_index": number}, part)
    elif kind == "function_call":
        yield _delta("response.function_call_arguments", place, item["arguments"])
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **place, **done}
    elif kind == "custom_tool_call":
        yield _delta("response.custom_tool_call_input", place, item["input"])
        yield {"type": "response.custom_tool_call_input.done", **place, "input": item["input"]}


def _spoken(place: Json, part: Json) -> Iterator[Json]:
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    yield {**_delta("response.output_text", place, part["text"]), "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _thought(place: Json, part: Json) -> Iterator[Json]:
    stem = "response.reasoning_summary"
    yield {"type": f"{stem}_part.added", **place, "part": {**part, "text": ""}}
    yield _delta(f"{stem}_text", place, part["text"])
    yield {"type": f"{stem}_text.done", **place, "text": part["text"]}
    yield {"type": f"{stem}_part.done", **place, "part": part}


def _delta(stem: str, place: Json, text: str) -> Json:
    return {"type": f"{stem}.delta", **place, "delta": text}


def _items(asked: Asked, reply: ModelReply) -> list[Json]:
    """What the answer consists of."""
    items = as_items(reply.reasoning) if asked.shows_reasoning else []
    if reply.text or not reply.tool_calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant"}
        items.append({**message, "status": "completed", "content": [part]})
    return items + [_called(asked, call) for call in reply.tool_calls]


def _called(asked: Asked, call: ToolCall) -> Json:
    kind = asked.kinds.get(call.name, "function")
    done: Json = {"call_id": call.id, "status": "completed"}
    if kind == "custom":
        done |= {"name": call.name, "input": input_of(call.arguments)}
        return {"type": "custom_tool_call", "id": f"ctc_{uuid.uuid4().hex}", **done}
    if kind == "local_shell":
        done["action"] = _shell_action(call.arguments)
        return {"type": "local_shell_call", "id": f"lsh_{uuid.uuid4().hex}", **done}
    done |= {"name": call.name, "arguments": call.arguments}
    return {"type": "function_call", "id": f"fc_{uuid.uuid4().hex}", **done}


def _shell_action(arguments: str) -> Json:
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        found = arguments
    action = found if isinstance(found, dict) else {"command": found}
    command = action.get("command")
    if not isinstance(command, list):
        command = ["bash", "-lc", str(command or "")]
    return {"type": "exec", "env": {}, **action, "command": [str(word) for word in command]}


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
