"""The reasoning that comes with an answer and has to go back with it, as litellm gives and takes
it.

Providers refuse a conversation (400) whose tool calls have lost it. It goes back in the form in
which it came: signed blocks, the responses API's items and OpenRouter's details unchanged, plain
text under the name that the provider itself gives it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_mlab.models.reasoning_text import is_open, split_reasoning

TEXT = "reasoning_content"
"""DeepSeek's name for the text, which litellm uses for most providers; others say ``reasoning``."""

NOWHERE = "-"
"""In place of a name: the provider refuses messages with the text."""

_FAULT = (
    r"(?:unsupported|extra (?:inputs|fields)|extra_forbidden|unrecogni[sz]ed|unexpected|unknown)"
)
_REFUSED = re.compile(
    rf"\b{TEXT}\b.{{0,80}}{_FAULT}|{_FAULT}.{{0,80}}\b{TEXT}\b"
    r"|\bproperty 'reasoning' is unsupported",
    re.IGNORECASE,
)

_CALL = "tool_call"
_EXTRA = "extra_content"  # in which Gemini's OpenAI-compatible API signs a call

Json = dict[str, Any]


class TextNames:
    """The name that the provider of each model gives to the text of its reasoning, as far as its
    answers have told."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, model: str) -> str:
        """The name; '' while it is unknown, :data:`NOWHERE` where the provider refuses the text."""
        return self._names.get(model, "")

    def refused(self, model: str, words: str) -> bool:
        """Note that the provider takes no text of reasoning, when ``words``, its error, say so.

        Such servers give none either: litellm has found it in the answer's text."""
        if self.of(model) == NOWHERE or not _REFUSED.search(words):
            return False
        self._names[model] = NOWHERE
        return True

    def learn(self, model: str, message: Any) -> None:
        """Note the name in an answer of litellm's."""
        if self.of(model) == NOWHERE:
            return
        if "reasoning" in _specific(message):
            self._names[model] = "reasoning"
        elif getattr(message, TEXT, None) is not None and not _blocks(message):
            self._names[model] = TEXT


def answered(message: Any, *, cut: bool) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """The text of litellm's ``message`` without reasoning, and the reasoning as
    :attr:`pytest_mlab.core.model_api.ModelReply.reasoning` has it. ``cut``: the answer was too long
    and ended early."""
    text = str(getattr(message, "content", None) or getattr(message, "refusal", None) or "")
    plain = getattr(message, TEXT, None)
    if cut and isinstance(plain, str) and is_open(plain):
        # litellm took the text up to the first closing tag, which was an inner one.
        text, plain = f"<think>{plain}</think>{text}", None
    thoughts, text = split_reasoning(text, cut=cut)
    found: list[Json] = [*_blocks(message)]
    # An empty text counts: DeepSeek wants the field back although it was empty.
    if isinstance(plain, str) and not found:
        found.append({"type": "thinking", "thinking": plain})
    found += [{"type": "thinking", "thinking": thought} for thought in thoughts]
    found += _plain(_specific(message).get("reasoning_details"))
    for call in getattr(message, "tool_calls", None) or ():
        if extra := getattr(call, _EXTRA, None):
            found.append({"type": _CALL, "id": str(call.id), _EXTRA: extra})
    return text, tuple(found)


def put_back(plain: Json, reasoning: Iterable[Mapping[str, Any]], name: str) -> None:
    """Write ``reasoning`` into the assistant's message ``plain``, its text under ``name`` ('' when
    the provider has not said one, :data:`NOWHERE` for none)."""
    blocks = [dict(block) for block in reasoning]
    kinds = [str(block.get("type", "")) for block in blocks]
    thoughts = [b for b, kind in zip(blocks, kinds, strict=True) if kind == "thinking"]
    signed = [
        b
        for b, kind in zip(blocks, kinds, strict=True)
        if kind == "redacted_thinking" or (kind == "thinking" and b.get("signature"))
    ]
    items = [b for b, kind in zip(blocks, kinds, strict=True) if kind == "reasoning"]
    details = [b for b, kind in zip(blocks, kinds, strict=True) if kind.startswith("reasoning.")]
    if thoughts and name != NOWHERE:
        plain[name or TEXT] = "\n".join(str(b.get("thinking") or "") for b in thoughts)
    elif name == TEXT and plain.get("tool_calls"):
        # The provider thinks, and this call has lost its thoughts: the agent did not keep them, or
        # there were none. The field may be empty and may not be missing.
        plain[TEXT] = ""
    if signed:
        plain["thinking_blocks"] = signed
    if items:
        plain["reasoning_items"] = items
    if details:
        plain["reasoning_details"] = details
    extras = {b.get("id"): b.get(_EXTRA) for b in blocks if b.get("type") == _CALL}
    for call in plain.get("tool_calls", ()):
        if call["id"] in extras:
            call[_EXTRA] = extras[call["id"]]


def _blocks(message: Any) -> list[Json]:
    """Signed blocks, or the responses API's items. litellm makes both out of one reasoning, so the
    items, which the blocks are made of, go first."""
    items = _plain(getattr(message, "reasoning_items", None))
    return items or _plain(getattr(message, "thinking_blocks", None))


def _plain(found: Any) -> list[Json]:
    """The mappings in ``found``, without the fields that are null."""
    return [
        {name: value for name, value in dict(block).items() if value is not None}
        for block in (found if isinstance(found, (list, tuple)) else ())
        if isinstance(block, Mapping)
    ]


def _specific(message: Any) -> Mapping[str, Any]:
    """The fields of the provider's message that litellm does not know."""
    found = getattr(message, "provider_specific_fields", None)
    return found if isinstance(found, Mapping) else {}
