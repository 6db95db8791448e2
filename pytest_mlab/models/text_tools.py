"""Tools for models that have none: described in the system message, called by a block of JSON in
the answer's text.

    <tool_call>
    {"name": "List Files", "arguments": {"dir_path": "."}}
    </tool_call>

:func:`as_text` and :func:`from_text` are the protocol, without I/O; :class:`TextTools` is the
client that uses it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import (
    Message,
    ModelClient,
    ModelFacts,
    ModelReply,
    ModelRequest,
    ToolCall,
)
from pytest_mlab.errors import BadRequestError, ProviderError
from pytest_mlab.models.tool_refusals import refuses_tools
from pytest_mlab.models.tools import argument_text, tool_name

OPEN, CLOSE = "<tool_call>", "</tool_call>"
RESULT, RESULT_END = "<tool_result", "</tool_result>"
MOST_STOPS = 4
"""What providers take; ours is added where there is room."""

_NAMES = ("name", "tool", "tool_name", "action", "function")
_ARGUMENTS = ("arguments", "args", "parameters", "input", "action_input", "tool_input")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?")
_JSON = json.JSONDecoder(strict=False)  # weak models write line breaks into strings as they are


@dataclass
class TextTools:
    """Implements :class:`pytest_mlab.core.model_api.ModelClient` over another one, for one trial.

    A model that is known to have no tools gets them by text. One whose provider refuses them is
    asked again by text, and from then on; the reply's ``remark`` says so."""

    client: ModelClient
    _refused: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, request: ModelRequest) -> ModelReply:
        """One completion, two when the provider refuses tools. Raises the leaves of ModelError."""
        if not (request.tools or any(m.tool_calls or m.role == "tool" for m in request.messages)):
            return self.client.complete(request)
        if not self.facts(request.model).native_tools:
            return self._by_text(request)
        try:
            return self.client.complete(request)
        except (BadRequestError, ProviderError) as error:
            if not request.may_fall_back or not refuses_tools(error):
                raise
            with self._lock:
                self._refused[request.model] = str(error)
            reply = self._by_text(request)
            remark = f"asked by text from now on, since tools were refused: {error}"
            return replace(reply, remark="; ".join(filter(None, (remark, reply.remark))))

    def facts(self, model: str) -> ModelFacts:
        """What is known of ``model``, a refusal included."""
        facts = self.client.facts(model)
        return replace(facts, native_tools=False) if model in self._refused else facts

    def _by_text(self, request: ModelRequest) -> ModelReply:
        reply = self.client.complete(as_text(request))
        before = sum(len(message.tool_calls) for message in request.messages)
        text, calls = from_text(reply.text, request.tools, before)
        fell_back = request.model in self._refused
        return replace(reply, text=text, tool_calls=calls, fell_back=fell_back)


# --- to text ---


def as_text(request: ModelRequest) -> ModelRequest:
    """``request`` in plain messages: tools are described in the system message, calls and their
    results are texts."""
    messages = list(_plain(request.messages))
    if request.tools:
        described = instructions(request.tools, must_call=request.must_call)
        if messages and messages[0].role == "system":
            messages[0] = _with_text(messages[0], after=described)
        else:
            messages.insert(0, Message("system", described))
    stop = request.stop
    if request.tools and len(stop) < MOST_STOPS:
        stop = (*stop, RESULT)  # a model that goes on to imagine the result
    return replace(request, messages=tuple(messages), tools=(), must_call=False, stop=stop)


def instructions(tools: Sequence[ActionSpec], *, must_call: bool) -> str:
    """The description of ``tools`` for a model, and how to call them."""
    how = (
        "Every answer must call at least one tool."
        if must_call
        else "An answer without such a block calls no tool."
    )
    return "\n\n".join(
        [
            "# Tools",
            (
                "You can call the tools below. To call one, write this block, with the arguments as"
                " one JSON object:"
            ),
            f'{OPEN}\n{{"name": "<tool name>", "arguments": {{…}}}}\n{CLOSE}',
            (
                "Write a block for each call, and nothing after the last one: the results come in"
                f" the next message. {how}"
            ),
            *map(_described, tools),
        ]
    )


def _described(tool: ActionSpec) -> str:
    gives = f" Gives: {tool.returns}" if tool.returns else ""
    schema = json.dumps(tool.schema, default=dict, ensure_ascii=False)
    return f"## {tool.name}\n{tool.summary}{gives}\nArguments (JSON schema): {schema}"


def _plain(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages without tool roles. Results and the user's message after them become one,
    because many models want the roles to alternate."""
    names: dict[str, str] = {}
    results: list[str] = []
    for message in messages:
        names.update((call.id, call.name) for call in message.tool_calls)
        if message.role == "tool":
            name = json.dumps(names.get(message.tool_call_id, ""), ensure_ascii=False)
            results.append(f"{RESULT} name={name}>\n{message.content}\n{RESULT_END}")
            continue
        if message.role == "user" and results:
            yield _with_text(message, before="\n\n".join(results))
        else:
            if results:
                yield Message("user", "\n\n".join(results))
            if message.tool_calls:
                message = Message(message.role, written(message.content, message.tool_calls))
            # Reasoning belongs to calls in the provider's own protocol.
            yield replace(message, reasoning=())
        results = []
    if results:
        yield Message("user", "\n\n".join(results))


def _with_text(message: Message, *, before: str = "", after: str = "") -> Message:
    """``message`` with more text, also among the parts of its content."""
    content = "\n\n".join(filter(None, (before, message.content, after)))
    blocks = message.blocks and (*_part(before), *message.blocks, *_part(after))
    return replace(message, content=content, blocks=blocks)


def _part(text: str) -> tuple[Mapping[str, Any], ...]:
    return ({"type": "text", "text": text},) if text else ()


def written(text: str, calls: Sequence[ToolCall]) -> str:
    """An answer as the model would have written it by this protocol."""
    return "\n".join(
        [*([text] if text else []), *(f"{OPEN}\n{_as_json(call)}\n{CLOSE}" for call in calls)]
    )


def _as_json(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        arguments = call.arguments  # as the model wrote them, though not an object
    return _whole(json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False))


# --- from text ---


def from_text(
    text: str, tools: Sequence[ActionSpec], before: int = 0
) -> tuple[str, tuple[ToolCall, ...]]:
    """``text`` without its calls, and the calls; ids count on from the ``before`` earlier calls.

    Calls are blocks; without blocks, code fences and bare objects that name one of ``tools``. What
    does not parse stays in the text."""
    own = text.partition(RESULT)[0]  # without results that the model imagined after its calls
    found = list(_blocks(own, tools)) or list(_objects(own, tools))
    if not found:
        return text, ()
    calls = tuple(
        ToolCall(f"call_{before + n}", name, args) for n, (_, _, (name, args)) in enumerate(found)
    )
    rest, end = [], 0
    for start, stop, _ in found:
        rest.append(own[end:start])
        end = stop
    return "".join([*rest, own[end:]]).strip(), calls


_Found = tuple[int, int, tuple[str, str]]


def _blocks(text: str, tools: Sequence[ActionSpec]) -> Iterator[_Found]:
    """Begin, end and call of every marked block. A block may lack its end and may hold a fence."""
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        inside = _skip(text, start + len(OPEN))
        value, end = _decode(text, inside)
        call = _call(value, tools, known=False)
        if call is None:
            at = start + len(OPEN)
            continue
        end = _skip(text, end)
        at = end + len(CLOSE) if text.startswith(CLOSE, end) else end
        yield start, at, call


def _objects(text: str, tools: Sequence[ActionSpec]) -> Iterator[_Found]:
    """Begin, end and call of every object that names a known tool, with the fence around it."""
    at = 0
    while (start := text.find("{", at)) >= 0:
        value, end = _decode(text, start)
        call = _call(value, tools, known=True)
        if call is None:
            at = start + 1
            continue
        opened = re.search(r"```[\w-]*\s*$", text[:start])
        closed = re.match(r"\s*```", text[end:])
        if opened and closed:
            start, end = opened.start(), end + closed.end()
        at = end
        yield start, end, call


def _skip(text: str, at: int) -> int:
    """Past blanks and code fences."""
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        fence = _FENCE.match(text, at)
        if fence is None:
            return at
        at = fence.end()


def _decode(text: str, at: int) -> tuple[Any, int]:
    try:
        return _JSON.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at


def _call(value: Any, tools: Sequence[ActionSpec], *, known: bool) -> tuple[str, str] | None:
    """Name and arguments of the call in ``value``; None when it is not a call, or has to name a
    ``known`` tool and does not."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    arguments: Any = next((value[key] for key in _ARGUMENTS if key in value), {})
    action = tool_name(name, tools)
    if not name or (known and action is None) or not isinstance(arguments, (dict, str)):
        return None
    return action or _whole(name), _whole(argument_text(arguments))


def _whole(text: str) -> str:
    """``text`` without halves of surrogate pairs, which JSON can escape and UTF-8 cannot write."""
    return text.encode("utf-8", "replace").decode("utf-8")
