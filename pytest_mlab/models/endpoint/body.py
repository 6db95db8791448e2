"""The JSON object that a program sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """The request is malformed, or asks for something that this endpoint does not offer."""


class Body:
    """The fields of a request's JSON object: each is taken once; those left over are left out."""

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

    def object(self, name: str) -> Json:
        """An object; an empty one when it is absent."""
        found = self._fields.pop(name, {})
        if not isinstance(found, dict):
            raise Refused(f"{name!r} must be an object, not {found!r:.80}")
        return found

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

    def end(self, only: Mapping[str, tuple[Sequence[Any], str]]) -> None:
        """Drop the fields that are left, and remember them. Those of ``only`` change what an answer
        means: with other values than the given ones they are refused, with the words on how to do
        without."""
        for name, (values, way_out) in only.items():
            value = self._fields.pop(name, None)
            if value is not None and value not in values:
                raise Refused(
                    f"{name!r} is not available at this endpoint (it was {value!r:.80}); to fix:"
                    f" {way_out}"
                )
        self.leave_out(list(self._fields))


def objects(found: Any, name: str) -> list[Json]:
    """``found`` as a list of objects. Raises Refused."""
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise Refused(f"{name!r} must be a list of objects")
    return found


def inner(found: Any, name: str) -> Json:
    """The object in the field ``name`` of ``found``; an empty one where there is none."""
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, dict) else {}
