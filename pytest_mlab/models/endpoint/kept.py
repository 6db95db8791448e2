"""What the endpoint remembers of a trial's answers.

The responses API lets a program continue an answer by its id, and a conversation by the
conversation's. And many programs drop the reasoning that came with a tool call, without which some
providers refuse the next request."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_mlab.core.model_api import Message, ModelReply
from pytest_mlab.models.endpoint.body import Json, Refused, objects

MOST = 10_000
"""Entries of a kind that are kept; the oldest go first. A program is untrusted."""

_PREVIOUS, _CONVERSATION = "previous_response_id", "conversation"


@dataclass(frozen=True)
class KeptAs:
    """How an answer is kept: ``items`` are what the model has read, ``conversation`` is the id of
    the one that it continues ('')."""

    items: tuple[Json, ...]
    conversation: str = ""


@dataclass
class Kept:
    """The memory of one trial, safe for threads."""

    _items: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _reasoning: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def continued(self, fields: Any) -> tuple[Any, KeptAs]:
        """A request of the responses API with the whole conversation as its input. Raises Refused
        for an id that this trial has not given."""
        if not isinstance(fields, dict):
            return fields, KeptAs(())
        rest = {
            name: value for name, value in fields.items() if name not in (_PREVIOUS, _CONVERSATION)
        }
        own = fields.get("input") or []
        if isinstance(own, str):
            own = [{"type": "message", "role": "user", "content": own}]
        own = [self._resolved(item) for item in objects(own, "input")]
        before: Sequence[Json] = ()
        if previous := fields.get(_PREVIOUS):
            found = self._get(self._items, str(previous))
            if found is None:
                raise Refused(
                    f"{_PREVIOUS}: this trial has given no response with the id {previous!r:.80};"
                    " to fix: send the whole conversation as 'input'"
                )
            before = found
        conversation = _id_of(fields.get(_CONVERSATION))
        if conversation:
            before = self._get(self._items, conversation) or ()
        items = (*before, *own)
        if items:
            rest["input"] = list(items)
        return rest, KeptAs(items, conversation)

    def _resolved(self, item: Json) -> Json:
        if item.get("type") != "item_reference":
            return item
        found: Json | None = self._get(self._items, ("item", str(item.get("id"))))
        if found is None:
            raise Refused(
                f"item_reference: this trial has given no item with the id {item.get('id')!r:.80};"
                " to fix: send the item itself (store=False)"
            )
        return found

    def keep(self, response: Mapping[str, Any], kept_as: KeptAs) -> None:
        """Keep an answer of the responses API, for what continues it."""
        for item in response["output"]:
            self._put(self._items, ("item", item["id"]), item)
        items = (*kept_as.items, *response["output"])
        for name in filter(None, (str(response["id"]), kept_as.conversation)):
            self._put(self._items, name, items)

    def learn(self, reply: ModelReply) -> None:
        """Keep the reasoning of an answer with tool calls."""
        if reply.reasoning:
            for call in reply.tool_calls:
                self._put(self._reasoning, (call.id, call.name), reply.reasoning)

    def with_reasoning(self, messages: Iterable[Message], *, signed: bool) -> tuple[Message, ...]:
        """``messages`` with the reasoning that belongs to their tool calls, where the program has
        dropped it; the ``signed`` kind only for a request that thinks, which needs it."""
        return tuple(self._with(message, signed=signed) for message in messages)

    def _with(self, message: Message, *, signed: bool) -> Message:
        if message.reasoning:
            return message
        for call in message.tool_calls:
            found = self._get(self._reasoning, (call.id, call.name)) or ()
            if found and (signed or not any(_is_signed(block) for block in found)):
                return replace(message, reasoning=found)
        return message

    def _get(self, where: OrderedDict[Hashable, Any], key: Hashable) -> Any:
        with self._lock:
            return where.get(key)

    def _put(self, where: OrderedDict[Hashable, Any], key: Hashable, value: Any) -> None:
        with self._lock:
            where[key] = value
            while len(where) > MOST:
                where.popitem(last=False)


def _id_of(found: Any) -> str:
    return str(found.get("id") or "") if isinstance(found, dict) else str(found or "")


def _is_signed(block: Mapping[str, Any]) -> bool:
    return bool(block.get("signature")) or block.get("type") == "redacted_thinking"
