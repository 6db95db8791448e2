"""Anthropic's messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_mlab.core.model_api import ModelReply, ToolCall
from pytest_mlab.models.endpoint.asked import Asked
from pytest_mlab.models.endpoint.body import Body, Json, Refused, inner, objects
from pytest_mlab.models.endpoint.content import MARK, Content, Placed, placed, read_content
from pytest_mlab.models.endpoint.offered import choose, read_tools
from pytest_mlab.models.endpoint.thoughts import as_anthropic, from_anthropic, is_anthropic

PASSED_ON = ("top_p", "top_k", "thinking", MARK)

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_STOPS = {"length": "max_tokens", "content_filter": "refusal"}


def read(fields: Any) -> Asked:
    """A request, also one that asks for a count of tokens. Raises Refused."""
    body = Body(fields)
    offered = read_tools(body.objects("tools"), "messages")
    extra = body.passed_on(PASSED_ON)
    choice = body.any("tool_choice")
    must_call, chosen, offered = choose(_choice(choice), offered)
    if isinstance(choice, dict) and choice.get("disable_parallel_tool_use") and offered.tools:
        extra["parallel_tool_calls"] = False
    schema = _schema(body, extra)
    system = read_content(body.any("system"), "system")
    found = [*([placed("system", system)] if system.parts else ())]
    spoken = body.objects("messages")
    found += _messages(spoken)
    asked = Asked(
        model=body.text("model"),
        messages=tuple(message for message, _ in found),
        places=tuple(places for _, places in found),
        temperature=body.number("temperature"),
        max_tokens=body.whole("max_tokens"),
        stop=body.texts("stop_sequences"),
        tools=offered.tools,
        must_call=must_call,
        schema=schema,
        extra=extra | chosen,
        stream=body.flag("stream"),
        shows_reasoning=inner(fields, "thinking").get("type") != "disabled",
    )
    body.end({})
    return replace(asked, left_out=(*offered.left_out, *body.left_out, *_lost_marks(spoken)))


def _schema(body: Body, extra: Json) -> Json | None:
    """The schema of the answer, from either place where it can stand; effort goes to ``extra``."""
    config = body.object("output_config")
    found = body.any("output_format") or config.get("format")
    thinking = extra.get("thinking")
    if thinking is not None and not isinstance(thinking, dict):
        raise Refused(f"'thinking' must be an object, not {thinking!r:.80}")
    if config.get("effort"):
        extra["reasoning_effort"] = config["effort"]
        # What it means here to say nothing; litellm would make thinking of the effort.
        extra.setdefault("thinking", {"type": "disabled"})
    if found is None:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("schema"), dict):
        raise Refused(
            f"the answer's format {found!r:.100} is not available here; to fix: send json_schema"
            " with a schema"
        )
    return dict(found["schema"])


def _choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    return {"name": choice.get("name")} if kind == "tool" else _CHOICES.get(str(kind), kind)


def _messages(found: Sequence[Json]) -> Iterator[Placed]:
    if not found:
        raise Refused("'messages' is missing or empty")
    for number, message in enumerate(found):
        where, role, content = f"messages[{number}]", message.get("role"), message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = objects(content or [], where)
        if role == "assistant":
            yield _assistant(blocks, where)
        elif role in ("user", "system"):
            yield from _user(role, blocks, where)
        else:
            raise Refused(f"{where}.role is {role!r:.60}; available are user, assistant and system")


def _user(role: Literal["user", "system"], blocks: Sequence[Json], where: str) -> Iterator[Placed]:
    """The results of tools, each a message, and what else there is."""
    for number, block in enumerate(blocks):
        if _is_result(block):
            place = f"{where}.content[{number}]"
            content = read_content(block.get("content"), place).marked(block.get(MARK))
            yield placed("tool", content, tool_call_id=str(block.get("tool_use_id")))
    if not blocks or not all(map(_is_result, blocks)):
        yield placed(role, _without(blocks, where, _is_result))


def _assistant(blocks: Sequence[Json], where: str) -> Placed:
    calls = tuple(
        ToolCall(str(block.get("id")), str(block.get("name")), json.dumps(block.get("input") or {}))
        for block in blocks
        if _is_call(block)
    )
    thoughts = tuple(from_anthropic(block) for block in blocks if is_anthropic(block))
    content = _without(blocks, where, lambda block: _is_call(block) or is_anthropic(block))
    return placed("assistant", content, tool_calls=calls, reasoning=thoughts)


def _without(blocks: Sequence[Json], where: str, apart: Callable[[Json], bool]) -> Content:
    """The content of the blocks that are not set ``apart``, which keep their numbers."""
    kept = [(number, block) for number, block in enumerate(blocks) if not apart(block)]
    found = [read_content([block], "") for _, block in kept]
    return Content(
        tuple(part for one in found for part in one.parts),
        tuple(
            f"{where}.content[{number}]"
            for (number, _), one in zip(kept, found, strict=True)
            for _ in one.parts
        ),
    )


def _lost_marks(messages: Sequence[Json]) -> Iterator[str]:
    """The marks of blocks that become no part of a content: calls, and results that are empty."""
    for number, message in enumerate(messages):
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            lost = _is_call(block) or (_is_result(block) and not block.get("content"))
            if lost and block.get(MARK):
                yield f"{MARK} of messages[{number}].content[{index}]"


def _is_result(block: Json) -> bool:
    return block.get("type") == "tool_result"


def _is_call(block: Json) -> bool:
    return block.get("type") == "tool_use"


def answer(asked: Asked, reply: ModelReply) -> Json:
    """The response to a request that does not stream."""
    return {
        **_head(reply),
        "content": _content(asked, reply),
        **_end(reply),
        "usage": _usage(reply),
    }


def stream(asked: Asked, reply: ModelReply) -> Iterator[bytes]:
    """The response to a request that streams: the whole answer, in the events that a client
    expects."""
    usage = _usage(reply)
    head = {**_head(reply), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event(
        {"type": "message_start", "message": {**head, "usage": {**usage, "output_tokens": 0}}}
    )
    for index, block in enumerate(_content(asked, reply)):
        empty, deltas = _in_parts(block)
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
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


def _content(asked: Asked, reply: ModelReply) -> list[Json]:
    blocks = as_anthropic(reply.reasoning) if asked.shows_reasoning else []
    if reply.text or not reply.tool_calls:
        blocks.append({"type": "text", "text": reply.text})
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


def _in_parts(block: Json) -> tuple[Json, list[Json]]:
    """A block as a stream begins it, and the deltas that follow."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        if block["signature"]:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if block["type"] != "tool_use":
        return block, []
    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return {**block, "input": {}}, [delta]


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
