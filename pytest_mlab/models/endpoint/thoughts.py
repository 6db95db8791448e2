"""A model's reasoning in the forms of the three APIs, both ways.

Programs hand it back as they got it, so that it reaches the provider unchanged. What an API has no
form of its own for is sealed: the whole block as base64 in the field that clients treat as opaque
(a signature, encrypted content)."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Blocks = Iterable[Mapping[str, Any]]

_SEAL = "mlab1:"
_THINKING, _REDACTED, _ITEM, _CALL = "thinking", "redacted_thinking", "reasoning", "tool_call"
_EXTRA = "extra_content"


def words(block: Mapping[str, Any]) -> str:
    """The readable text of a block of reasoning, '' for one that has none."""
    text = block.get("thinking") or block.get("text") or block.get("summary") or ""
    if isinstance(text, (list, tuple)):
        return "\n\n".join(filter(None, (words(part) for part in text if isinstance(part, dict))))
    return text if isinstance(text, str) else ""


# --- Anthropic's messages ---


def as_anthropic(reasoning: Blocks) -> list[Json]:
    """The blocks that come before an answer's text."""
    return [_anthropic(block) for block in reasoning]


def _anthropic(block: Mapping[str, Any]) -> Json:
    kind, text = block.get("type"), words(block)
    if kind == _REDACTED:
        return {"type": _REDACTED, "data": str(block.get("data") or "")}
    if kind == _THINKING:
        return {"type": _THINKING, "thinking": text, "signature": block.get("signature") or ""}
    if text:
        return {"type": _THINKING, "thinking": text, "signature": _sealed(block)}
    return {"type": _REDACTED, "data": _sealed(block)}


def from_anthropic(block: Json) -> Json:
    """A block of reasoning in an assistant's message of a program."""
    kind = block.get("type")
    seal = block.get("signature" if kind == _THINKING else "data")
    if (found := _unsealed(seal)) is not None:
        return found
    plain = {name: value for name, value in block.items() if name != "cache_control"}
    if kind == _THINKING and not seal:
        plain.pop("signature", None)
    return plain


def is_anthropic(block: Json) -> bool:
    """Whether ``block`` is reasoning, also of a kind that may come yet."""
    return str(block.get("type", "")).endswith(_THINKING)


# --- chat completions ---


def as_chat(reasoning: Sequence[Mapping[str, Any]]) -> Json:
    """The fields of an assistant's message that hold it, by the names that servers use."""
    fields: Json = {}
    if thoughts := [block for block in reasoning if words(block)]:
        fields["reasoning_content"] = "\n".join(map(words, thoughts))
    groups = {
        "thinking_blocks": [b for b in reasoning if b.get("signature") or _is(b, _REDACTED)],
        "reasoning_items": [b for b in reasoning if _is(b, _ITEM)],
        "reasoning_details": [b for b in reasoning if _is_detail(b)],
    }
    return fields | {name: [dict(b) for b in blocks] for name, blocks in groups.items() if blocks}


def call_extras(reasoning: Blocks) -> Mapping[str, Any]:
    """What a provider adds to tool calls, by the call's id."""
    return {str(b.get("id")): b[_EXTRA] for b in reasoning if _is(b, _CALL) and _EXTRA in b}


def from_chat(message: Json) -> tuple[Json, ...]:
    """The reasoning in an assistant's message of a program. Its text counts where the signed form
    is missing, since that form holds the text too."""
    found = [
        dict(block)
        for name in ("thinking_blocks", "reasoning_items", "reasoning_details")
        for block in _list(message.get(name))
        if isinstance(block, dict)
    ]
    text = message.get("reasoning_content", message.get("reasoning"))
    if isinstance(text, str) and not any(map(words, found)):
        found.insert(0, {"type": _THINKING, "thinking": text})
    found += [
        {"type": _CALL, "id": str(call.get("id")), _EXTRA: call[_EXTRA]}
        for call in _list(message.get("tool_calls"))
        if isinstance(call, dict) and call.get(_EXTRA)
    ]
    return tuple(found)


# --- responses ---


def as_items(reasoning: Blocks) -> list[Json]:
    """The items that come before an answer's message."""
    return [_item(block) for block in reasoning]


def _item(block: Mapping[str, Any]) -> Json:
    if _is(block, _ITEM):
        return {"summary": [], "id": f"rs_{uuid.uuid4().hex}", **block}
    text = words(block)
    return {
        "type": _ITEM,
        "id": f"rs_{uuid.uuid4().hex}",
        "summary": [{"type": "summary_text", "text": text}] if text else [],
        "encrypted_content": _sealed(block),
    }


def from_item(item: Json) -> Json | None:
    """The block in a reasoning item of a program, None for one that holds nothing."""
    encrypted = item.get("encrypted_content")
    if (found := _unsealed(encrypted)) is not None:
        return found
    if encrypted:
        return {name: value for name, value in item.items() if value is not None}
    text = words({"summary": item.get("content")}) or words(item)
    return {"type": _THINKING, "thinking": text} if text else None


# --- sealed ---


def _sealed(block: Mapping[str, Any]) -> str:
    return _SEAL + base64.b64encode(json.dumps(dict(block)).encode()).decode()


def _unsealed(text: Any) -> Json | None:
    if not isinstance(text, str) or not text.startswith(_SEAL):
        return None
    try:
        found = json.loads(base64.b64decode(text[len(_SEAL) :]))
    except (binascii.Error, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _is(block: Mapping[str, Any], kind: str) -> bool:
    return block.get("type") == kind


def _is_detail(block: Mapping[str, Any]) -> bool:
    return str(block.get("type", "")).startswith("reasoning.")
