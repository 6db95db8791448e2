"""Plans, settings and results as JSON and back.

Writing walks the value itself, so that a foreign scalar (``np.float64`` is a ``float`` to
isinstance, and breaks every reader that has no numpy) is refused by name; reading goes through
pydantic, so that a damaged file is refused by name as well. Infinite and undefined numbers are
written as ``Infinity``, ``-Infinity`` and ``NaN``, as Python's json does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from pytest_mlab.core.plan import PLAN_FORMAT, Plan, RunSettings
from pytest_mlab.core.trial import RESULT_FORMAT, TrialResult
from pytest_mlab.errors import StoreError, WireError

T = TypeVar("T")

_PLAIN = (str, int, float, bool, type(None))
_FORMATS: dict[type, int] = {Plan: PLAN_FORMAT, TrialResult: RESULT_FORMAT}


def to_json(value: Plan | RunSettings | TrialResult) -> str:
    """``value`` as indented JSON text. Raises WireError when a field holds anything but plain
    values."""
    return json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n"


def plain(value: Any, where: str = "") -> Any:
    """``value`` (frozen dataclasses, enums, mappings, sequences, scalars) as lists, dicts and exact
    builtins.

    Raises WireError naming the field when a scalar is of any other type, numpy's and paths
    included."""
    where = where or type(value).__name__
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return plain(value.value, where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: plain(getattr(value, f.name), f"{where}.{f.name}")
            for f in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {_key(k, where): plain(v, f"{where}[{k!r}]") for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, f"{where}[{i}]") for i, v in enumerate(value)]
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise WireError(
        f"{where} holds a {kind} ({value!r:.80}); make it a plain int, float, str or bool first"
    )


def _key(key: Any, where: str) -> str:
    if type(key) is not str:
        raise WireError(
            f"{where} has a key of type {type(key).__name__} ({key!r:.80}); keys are plain strings"
        )
    return key


_adapters: dict[object, TypeAdapter[Any]] = {}


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)  # takes milliseconds for a Plan
    return _adapters[kind]


def from_json(kind: type[T], text: str | bytes, source: str) -> T:
    """The ``kind`` (Plan, RunSettings, TrialResult) that ``text`` holds; ``source`` names the file
    in errors.

    Raises StoreError when the text is torn, of another format, or not a ``kind``.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise StoreError(
            f"{source} is not complete JSON ({error}); remove it and run again with --mlab-resume"
        ) from None
    expected = _FORMATS.get(kind)
    if expected is not None:
        found = data.get("format") if isinstance(data, dict) else None
        if found != expected:
            raise StoreError(
                f"{source} has format {found!r}, this version of pytest-mlab reads format"
                f" {expected}; read it with the version that wrote it, or start a new run"
            )
    if kind is Plan and isinstance(settings := data.get("settings"), dict):
        # Older plans do not say it; this was the only backend that was not isolated.
        settings.setdefault("isolated", settings.get("sandbox") != "local")
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "the whole file"
        raise StoreError(
            f"{source}: {key}: {first['msg']} (found {first['input']!r:.80}); it was edited or is"
            " of a foreign program; restore it or start a new run"
        ) from None
