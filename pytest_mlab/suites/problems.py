"""What is wrong in a task.toml, in words: file, line, key, the value found and the values
allowed."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlab.lib.suggest import nearest_first
from pytest_mlab.suites.schema import Table, TaskFile
from pytest_mlab.suites.toml import KeyPath, line_of

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_KINDS = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list in [ ]",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
}
_PATTERNS = {
    "name": "lower-case letters, digits and '-', beginning and ending with a letter or digit",
    "modality": (
        "lower-case letters, digits and '_', beginning with a letter (it becomes a pytest marker)"
    ),
    "summary": "one line of text",
}


@dataclass(frozen=True)
class Problem:
    """``message`` is about the key at ``path`` (empty: about the file or folder as a whole)."""

    path: KeyPath
    message: str


def render(problems: list[Problem], file: Path, text: str) -> str:
    """One line a problem: ``<file>:<line>: <key>: <message>``."""
    lines = []
    for problem in problems:
        line = line_of(text, problem.path)
        where = f"{file}:{line}" if line else str(file)
        key = f"{dotted(problem.path)}: " if problem.path else ""
        lines.append(f"{where}: {key}{problem.message}")
    return "\n".join(lines)


def dotted(path: KeyPath) -> str:
    """``data.mini.source[0].kind``"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def from_validation(error: ValidationError, model: type[Table] = TaskFile) -> list[Problem]:
    """The problems of a failed validation of ``model``, the whole file."""
    # pydantic adds the address of its own documentation to each error unless it is asked not to.
    return [Problem(item["loc"], _explain(item, model)) for item in error.errors(include_url=False)]


def _explain(item: ErrorDetails, model: type[Table]) -> str:
    kind, path, found = item["type"], item["loc"], item["input"]
    context = item.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(path, model)
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        return _not_one_of(found, context["expected"])
    if kind in _KINDS:
        return f"{_show(found)} found, must be {_KINDS[kind]}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"{_show(found)} found, must be {words} {context[bound]}"
    if kind == "string_pattern_mismatch":
        return f"{_show(found)} found, must be {_PATTERNS.get(str(path[-1]), context['pattern'])}"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty"
    if kind == "value_error":
        return f"{_show(found)} found, {context['error']}"
    return f"{_show(found)} found, {item['msg'][0].lower()}{item['msg'][1:]}"


def _not_one_of(found: Any, expected: str) -> str:
    # pydantic gives the values of a Literal only as one text: 'a', 'b' or 'c'.
    allowed = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    ordered = nearest_first(str(found), allowed)
    return f"{_show(found)} found, must be one of: {', '.join(ordered)}"


def _unknown_key(path: KeyPath, model: type[Table]) -> str:
    # The key may stand under the wrong [table], so the one that has it is looked for too.
    key, table = str(path[-1]), _table_at(path[:-1], model)
    known = nearest_first(key, table.model_fields)
    home = _home_of(key, model, ())
    where = f"[{dotted(path[:-1])}]" if len(path) > 1 else "the file's top"
    if home is not None:
        place = f"[{dotted(home)}]" if home else "the top of the file, before the first [table]"
        return f"unknown key; {key!r} belongs to {place}; keys of {where}: {', '.join(known)}"
    return f"unknown key; nearest: {known[0]}; keys of {where}: {', '.join(known)}"


def _table_at(path: KeyPath, table: type[Table]) -> type[Table]:
    """The model of the table at ``path`` below ``table``, or of the innermost table around it."""
    for part in path:
        field = table.model_fields.get(str(part))
        table = (_table_in(field.annotation) if field else None) or table
    return table


def _table_in(annotation: Any) -> type[Table] | None:
    """The table model inside ``X``, ``X | None`` or ``list[X]``."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is not None:
        return next(
            (found for part in typing.get_args(annotation) if (found := _table_in(part))), None
        )
    return annotation if isinstance(annotation, type) and issubclass(annotation, Table) else None


def _home_of(key: str, table: type[Table], path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The path of a table that does have ``key``."""
    if key in table.model_fields:
        return path
    for name, field in table.model_fields.items():
        inner = _table_in(field.annotation)
        found = _home_of(key, inner, (*path, name)) if inner else None
        if found is not None:
            return found
    return None


def _show(value: Any) -> str:
    text = (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else repr(value)
    )
    return text if len(text) <= 60 else text[:57] + "..."
