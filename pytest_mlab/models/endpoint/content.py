"""The content of a message in any of the three APIs: its text, and its parts in the form of chat
completions, which litellm takes for every provider.

Which parts the trial's model takes is decided later (:mod:`.suited`); what stands here for a part
that it does not take is :func:`instead`."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_mlab.core.model_api import Message
from pytest_mlab.models.endpoint.body import Json, inner, objects

MARK = "cache_control"
IMAGE, FILE, AUDIO, VIDEO = "image_url", "file", "input_audio", "video_url"
MEDIA = {IMAGE: "images", FILE: "documents", AUDIO: "audio", VIDEO: "video"}
"""The types of parts that only some models take, and the words for them."""

_NEST = 8
_SHOWN = 80


@dataclass(frozen=True)
class Content:
    """``parts`` are texts (``{"type": "text", "text": …}``) and media; ``places`` say where in the
    request each one stood."""

    parts: tuple[Json, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of all parts, with a line for each medium."""
        return "\n".join(text_of(part) for part in self.parts)

    @property
    def blocks(self) -> tuple[Json, ...]:
        """The parts, where the text alone would lose something."""
        plain = all(set(part) == {"type", "text"} for part in self.parts)
        return () if plain else self.parts

    def marked(self, mark: Any) -> Content:
        """With ``mark`` (a ``cache_control``) on the last part, where there is one."""
        if not isinstance(mark, dict) or not self.parts:
            return self
        return Content((*self.parts[:-1], {**self.parts[-1], MARK: mark}), self.places)


def read_content(found: Any, where: str) -> Content:
    """A text, or a list of blocks of any kind. Raises Refused when it is neither."""
    if found is None or found == "":
        return Content()
    if isinstance(found, str):
        return Content(({"type": "text", "text": found},), (where,))
    parts: list[Json] = []
    places: list[str] = []
    for number, block in enumerate(objects(found, where)):
        for part in _parts(block, 0):
            parts.append(part)
            places.append(f"{where}[{number}]")
    return Content(tuple(parts), tuple(places))


def text_of(part: Mapping[str, Any]) -> str:
    """A part as text: what it is, for a medium."""
    text = part.get("text")
    return text if isinstance(text, str) else f"[{_what(part)}]"


def instead(part: Mapping[str, Any]) -> str:
    """What a model reads in place of a part that it does not take."""
    return f"[{_what(part)}: this model takes no {MEDIA[part['type']]}]"


def _parts(block: Json, depth: int) -> list[Json]:
    """A block of one of the APIs as parts: one, or several where it holds others."""
    found = _one(block) if depth < _NEST else [_said(block)]
    if found is None:
        nested = block.get("content") or inner(block, "source").get("content")
        title = [{"type": "text", "text": block["title"]}] if _is_text(block.get("title")) else []
        if _is_text(nested):
            found = [*title, {"type": "text", "text": nested}]
        elif isinstance(nested, list) and all(isinstance(one, dict) for one in nested):
            found = [*title, *(part for one in nested for part in _parts(one, depth + 1))]
    found = found if found is not None else [_said(block)]
    if isinstance(mark := block.get(MARK), dict) and found:
        found[-1] = {**found[-1], MARK: mark}
    return found


def _one(block: Json) -> list[Json] | None:
    """The part of a block that holds text or a medium, None for any other."""
    kind, source = str(block.get("type") or "text"), block.get("source")
    for name in ("text", "refusal", "transcript"):
        if _is_text(block.get(name)):
            return [{"type": "text", "text": block[name]}]
    if isinstance(source, dict) and _is_text(source.get("data")) and source.get("type") == "text":
        return [{"type": "text", "text": source["data"]}]
    if "image" in kind or "screenshot" in kind:
        return [{"type": IMAGE, IMAGE: _image(block)}]
    if "audio" in kind:
        audio = block.get("input_audio") or block.get("audio") or source or {}
        return [{"type": AUDIO, AUDIO: audio if isinstance(audio, dict) else {"data": str(audio)}}]
    if "video" in kind:
        return [{"type": VIDEO, VIDEO: block.get(VIDEO) or source or {}}]
    is_file = "file" in kind or "pdf" in kind or kind == "document"
    if is_file and not (isinstance(source, dict) and "content" in source):
        return [{"type": FILE, FILE: _file(block)}]
    return None


def _image(block: Json) -> Json:
    found = block.get(IMAGE)
    image = dict(found) if isinstance(found, dict) else {"url": found} if found else {}
    if not image:
        image = {"url": _address(block.get("source") or block)}
    if block.get("detail"):
        image.setdefault("detail", block["detail"])
    return image


def _file(block: Json) -> Json:
    found = block.get("file")
    if not isinstance(found, dict):
        source = inner(block, "source") or block
        found = {
            "file_data": source.get("file_data") or _address(source, file_id=False),
            "file_id": source.get("file_id") or source.get("file_url"),
            "filename": block.get("filename") or block.get("title"),
        }
    return {name: value for name, value in found.items() if value}


def _address(source: Any, *, file_id: bool = True) -> str:
    """Where a source leads: a data URL, an address, or a file that the provider keeps."""
    if not isinstance(source, dict):
        return str(source)
    if _is_text(source.get("data")):
        kind = source.get("media_type") or source.get("mime_type") or "application/octet-stream"
        return f"data:{kind};base64,{source['data']}"
    address = source.get("url") or (source.get("file_id") if file_id else "")
    return address if isinstance(address, str) else ""


def _what(part: Mapping[str, Any]) -> str:
    """What a medium is, in a few words: its type and size, or its address."""
    kind = str(part.get("type"))
    found = part.get(kind)
    fields: Json = found if isinstance(found, dict) else {"url": found}
    data = fields.get("url") or fields.get("file_data") or ""
    name = fields.get("filename")
    if _is_text(fields.get("data")):
        data = f"data:audio/{fields.get('format') or 'unknown'};base64,{fields['data']}"
    if isinstance(data, str) and data.startswith("data:"):
        head, _, body = data[5:].partition(",")
        size = f"{head.partition(';')[0] or 'data'}, {_size(body)} bytes"
        return f"{name}, {size}" if name else size
    place = str(data or fields.get("file_id") or "")
    word = {IMAGE: "image", FILE: "document", AUDIO: "audio", VIDEO: "video"}.get(kind, kind)
    return " ".join(filter(None, (word, str(name or ""), f"at {place:.{_SHOWN}}" if place else "")))


def _size(body: str) -> int:
    try:
        return len(base64.b64decode(body))
    except (binascii.Error, ValueError):
        return len(body) * 3 // 4


def _said(block: Json) -> Json:
    """A text that says what a block of an unknown kind is."""
    plain = {
        name: value
        for name, value in block.items()
        if name != "type" and isinstance(value, (str, int, float))
    }
    shown = json.dumps(plain, ensure_ascii=False) if plain else ""
    shown = f"{shown[:_SHOWN]}…" if len(shown) > _SHOWN else shown
    kind = f"{block.get('type') or 'content'}"[:_SHOWN]
    return {"type": "text", "text": f"[{' '.join(filter(None, (kind, shown)))}]"}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


Role = Literal["system", "user", "assistant", "tool"]
Placed = tuple[Message, tuple[str, ...]]
"""A message, and the places of its blocks."""


def placed(role: Role, content: Content, **fields: Any) -> Placed:
    """A message with ``content``; ``fields`` are further fields of it."""
    blocks = content.blocks
    message = Message(role, content.text, blocks=blocks, **fields)
    return message, content.places if blocks else ()
