"""A program's request, whichever API it speaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, Model, ModelReply, Role

Json = dict[str, Any]

_FAST = re.compile(
    r"(?:^|[-_/.:])(?:haiku|mini|nano|small|lite|flash|fast|instant)(?:$|[-_/.:\d])", re.IGNORECASE
)


class Refused(Exception):
    """The request is malformed, or asks for something that this endpoint does not offer."""


@dataclass(frozen=True)
class Asked:
    """One completion. ``model`` is the name that the program used; ``left_out`` are parameters that
    are not passed on, since they do not change the content of an answer."""

    model: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[ActionSpec, ...] = ()
    must_call: bool = False
    schema: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    usage_in_stream: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def role(self) -> Role:
        """``fast`` for a name that providers give their small models, ``main`` for any other."""
        return "fast" if _FAST.search(self.model) else "main"

    def complete(self, model: Model) -> ModelReply:
        """The answer of the trial's model. Raises what
        :meth:`pytest_mlab.core.model_api.Model.complete` does.

        A program bounds answers by the longest one of the model that it asks for. Where the trial's
        model can give less, its provider would refuse that bound, so it is lowered."""
        max_tokens = self.max_tokens
        if max_tokens:
            max_tokens = min(max_tokens, model.facts(self.role).max_output or max_tokens)
        return model.complete(
            self.messages,
            role=self.role,
            temperature=self.temperature,
            max_tokens=max_tokens,
            stop=self.stop,
            tools=self.tools,
            must_call=self.must_call,
            schema=self.schema,
            extra=self.extra,
        )


class Body:
    """The fields of a request's JSON object: each is taken once; fields left over are refused."""

    def __init__(self, fields: Any) -> None:
        if not isinstance(fields, dict):
            raise Refused("the request's body must be a JSON object")
        self._fields = {name: value for name, value in fields.items() if value is not None}
        self.left_out: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        """A text. Raises Refused when it is missing and has no default."""
        found = self._fields.pop(name, default)
        if found is None:
            raise Refused(f"{name!r} is missing")
        if not isinstance(found, str):
            raise Refused(f"{name!r} must be a string")
        return found

    def number(self, name: str) -> float | None:
        """A number, or None."""
        found = self._fields.pop(name, None)
        if found is not None and (isinstance(found, bool) or not isinstance(found, (int, float))):
            raise Refused(f"{name!r} must be a number, not {found!r:.80}")
        return found

    def whole(self, name: str) -> int | None:
        """A whole number of at least 1, or None."""
        found = self.number(name)
        if found is not None and (not isinstance(found, int) or found < 1):
            raise Refused(f"{name!r} must be a whole number of at least 1, not {found!r:.80}")
        return None if found is None else int(found)

    def flag(self, name: str) -> bool:
        """A boolean; False when it is absent."""
        return bool(self._fields.pop(name, False))

    def any(self, name: str) -> Any:
        """Whatever it is, or None."""
        return self._fields.pop(name, None)

    def objects(self, name: str) -> list[Json]:
        """A list of objects, empty when it is absent."""
        return objects(self._fields.pop(name, []), name)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or one text."""
        found = self._fields.pop(name, [])
        found = [found] if isinstance(found, str) else found
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            raise Refused(f"{name!r} must be a string or a list of strings")
        return tuple(found)

    def passed_on(self, names: Iterable[str]) -> Json:
        """Those of ``names`` that are there, as they are."""
        return {name: self._fields.pop(name) for name in names if name in self._fields}

    def leave_out(self, names: Iterable[str]) -> None:
        """Drop those of ``names`` that are there, and remember it."""
        self.left_out += [
            name for name in names if self._fields.pop(name, None) not in (None, False, {}, [])
        ]

    def end(self, only: Mapping[str, Sequence[Any]]) -> None:
        """Refuse the fields that are left, except those in ``only`` with one of its values."""
        for name, value in self._fields.items():
            if value not in only.get(name, ()):
                raise Refused(
                    f"{name!r} is not available at this endpoint (it was {value!r:.80}); leave"
                    " it out"
                )


def objects(found: Any, name: str) -> list[Json]:
    """``found`` as a list of objects. Raises Refused."""
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise Refused(f"{name!r} must be a list of objects")
    return found


def text_of(content: Any, where: str, kinds: Sequence[str] = ("text",)) -> str:
    """A content's text: a string, or a list of blocks that are all of one of the ``kinds`` of
    text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = []
    for block in objects(content, where):
        if block.get("type") not in kinds or not isinstance(block.get("text"), str):
            raise Refused(
                f"{where}: content of the type {block.get('type')!r:.60} is not available here,"
                " only text"
            )
        parts.append(block["text"])
    return "\n".join(parts)


def tool(name: Any, summary: Any, schema: Any) -> ActionSpec:
    """A tool that the program offers."""
    if not isinstance(name, str) or not name:
        raise Refused(f"a tool needs a name, not {name!r:.60}")
    if schema is not None and not isinstance(schema, dict):
        raise Refused(f"the schema of the tool {name!r} must be an object")
    return ActionSpec(name, str(summary or ""), schema or {"type": "object", "properties": {}})
