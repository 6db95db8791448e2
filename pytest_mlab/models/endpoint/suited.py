"""A program's request as the trial's model takes it: media that it does not take become text,
marks and parameters that it does not take are left out, and both are said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message
from pytest_mlab.models.endpoint.content import MARK, MEDIA, instead, text_of
from pytest_mlab.models.takes import Takes

Part = Mapping[str, Any]


@dataclass(frozen=True)
class Suited:
    """What goes to the model. ``left_out`` says what does not, each with its place."""

    messages: tuple[Message, ...]
    tools: tuple[ActionSpec, ...]
    extra: Mapping[str, Any]
    left_out: tuple[str, ...] = ()


def needs_facts(
    messages: Sequence[Message], tools: Sequence[ActionSpec], extra: Mapping[str, Any]
) -> bool:
    """Whether the request holds anything that some models do not take."""
    return (
        any(message.blocks for message in messages)
        or any(tool.marks for tool in tools)
        or not {MARK, "thinking", "reasoning_effort"}.isdisjoint(extra)
    )


def suited(
    messages: Sequence[Message],
    tools: Sequence[ActionSpec],
    extra: Mapping[str, Any],
    places: Sequence[Sequence[str]],
    facts: Takes,
) -> Suited:
    """The request for a model with these ``facts``; ``places`` are those of each message's
    blocks."""
    left_out: list[str] = []
    found = [
        _message(message, where, facts, left_out)
        for message, where in zip(messages, places, strict=True)
    ]
    if not facts.media_in_results:
        found = list(_media_after_results(found))
    kept = tuple(tools)
    if not facts.marks:
        left_out += [f"{MARK} of tools[{n}]" for n, tool in enumerate(tools) if tool.marks]
        kept = tuple(replace(tool, marks={}) if tool.marks else tool for tool in tools)
    return Suited(tuple(found), kept, _params(extra, facts, left_out), tuple(left_out))


def _message(message: Message, places: Sequence[str], facts: Takes, left_out: list[str]) -> Message:
    if not message.blocks:
        return message
    parts = []
    for part, place in zip(message.blocks, places, strict=True):
        if MARK in part and not facts.marks:
            part = {name: value for name, value in part.items() if name != MARK}
            left_out.append(f"{MARK} of {place}")
        if part["type"] in MEDIA and not _is_taken(part, facts):
            left_out.append(f"{MEDIA[part['type']]} of {place}")
            mark = {MARK: part[MARK]} if MARK in part else {}
            part = {"type": "text", "text": instead(part), **mark}
        parts.append(part)
    plain = all(set(part) == {"type", "text"} for part in parts)
    text = "\n".join(map(text_of, parts))
    return replace(message, content=text, blocks=() if plain else tuple(parts))


def _is_taken(part: Part, facts: Takes) -> bool:
    kind = part["type"]
    inner = part.get(kind)
    # A file that only the program's own provider keeps cannot be sent.
    address = inner.get("url", inner.get("file_data", inner.get("data"))) if inner else ""
    return kind in facts.media and bool(address)


def _media_after_results(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages with the media of tools' results in a user's message after them, because most
    providers take only text in a result."""
    held: list[Part] = []
    for message in messages:
        if message.role != "tool" and held:
            if message.role == "user":
                own = message.blocks or ({"type": "text", "text": message.content},)
                text = "\n".join([*map(text_of, held), message.content])
                message = replace(message, content=text, blocks=(*held, *own))
            else:
                yield _of_results(held)
            held = []
        if message.role == "tool" and any(part["type"] in MEDIA for part in message.blocks):
            held += [part for part in message.blocks if part["type"] in MEDIA]
            texts = [{"type": "text", "text": text_of(part)} for part in message.blocks]
            message = replace(message, content="\n".join(map(text_of, texts)), blocks=())
        yield message
    if held:
        yield _of_results(held)


def _of_results(parts: Sequence[Part]) -> Message:
    told = {"type": "text", "text": "The media of the results above:"}
    return Message("user", "\n".join(map(text_of, (told, *parts))), blocks=(told, *parts))


def _params(extra: Mapping[str, Any], facts: Takes, left_out: list[str]) -> dict[str, Any]:
    """The parameters. litellm drops some silently where they are not taken, and makes thinking of
    an effort for Claude, so that only one of the two can go out."""
    kept = dict(extra)
    thinking = kept.get("thinking")
    if thinking and not facts.thinking:
        del kept["thinking"]
        if thinking.get("type") != "disabled":
            left_out.append("thinking")
    elif thinking and "reasoning_effort" in kept:
        name, why = _given_up(str(thinking.get("type")), of_claude=facts.marks)
        del kept[name]
        left_out += [why] if why else []
    if "reasoning_effort" in kept and not facts.effort:
        left_out.append("reasoning_effort")
        del kept["reasoning_effort"]
    if MARK in kept and not facts.mark_of_all:
        left_out.append(f"{MARK} of the request")
        del kept[MARK]
    return kept


def _given_up(thinking: str, *, of_claude: bool) -> tuple[str, str]:
    """Which of ``thinking`` and an effort does not go out, and what is lost by it ('')."""
    if thinking == "disabled":
        if of_claude:
            return "reasoning_effort", "effort (no thinking is asked for)"
        return "thinking", ""
    if thinking == "adaptive":
        return "thinking", ""  # its measure is the effort
    return "reasoning_effort", "effort (thinking has a budget)"
