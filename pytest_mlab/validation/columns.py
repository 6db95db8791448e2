"""Columns of values in files of many kinds: csv, json, jsonl, npy, lists of lines.

Nothing that is read is executed: pickles are not loaded (:mod:`pytest_mlab.validation.needles`
searches their bytes)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDEST = 64
"""Columns of an array beyond which it is an image, or a matrix of features, and no table."""


@dataclass(frozen=True)
class Columns:
    """Columns of equal length by name; ``name`` is the file's."""

    name: str
    columns: Mapping[str, Sequence[str]]

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))


def columns_in(name: str, data: bytes) -> list[Columns]:
    """The tables in a file; none when it is of another kind."""
    if data[:6] == b"\x93NUMPY":
        return _array(name, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return []
    ending = name.rpartition(".")[2].lower()
    if ending == "json":
        return _json(name, text)
    if ending in ("jsonl", "ndjson"):
        return _records(name, [_loads(line) for line in text.splitlines() if line.strip()])
    if ending in ("csv", "tsv"):
        return _csv(name, text, "\t" if ending == "tsv" else ",")
    return _list(name, text) if ending == "txt" else []


def _csv(name: str, text: str, separator: str) -> list[Columns]:
    try:
        rows = [
            row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row
        ]
    except csv.Error:
        return []
    if len(rows) < 2:
        return []
    header = [column.strip() or "''" for column in rows[0]]
    whole = [row for row in rows[1:] if len(row) == len(header)]
    return [Columns(name, {column: [row[n] for row in whole] for n, column in enumerate(header)})]


def _list(name: str, text: str) -> list[Columns]:
    """A text file with a value a line."""
    return [Columns(name, {"line": [line.strip() for line in text.splitlines()]})]


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    # Deeply nested JSON exhausts the parser's recursion.
    except (ValueError, RecursionError):
        return None


def _json(name: str, text: str) -> list[Columns]:
    content = _loads(text)
    found = _records(name, content)
    if isinstance(content, dict):
        if content and all(_plain(value) for value in content.values()):
            found.append(
                Columns(name, {"key": list(content), "value": [str(v) for v in content.values()]})
            )
        for key, value in content.items():
            found += _records(f"{name}:{key}", value)
    return found


def _records(name: str, content: Any) -> list[Columns]:
    """A list of objects, or of plain values."""
    if not isinstance(content, list) or not content:
        return []
    if all(_plain(value) for value in content):
        return [Columns(name, {"value": [str(value) for value in content]})]
    if not all(isinstance(value, dict) for value in content):
        return []
    shared = [
        key for key in content[0] if all(key in value and _plain(value[key]) for value in content)
    ]
    return (
        [Columns(name, {key: [str(value[key]) for value in content] for key in shared})]
        if shared
        else []
    )


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _array(name: str, data: bytes) -> list[Columns]:
    try:
        import numpy as np
    except ImportError:
        return []
    try:
        # A pickled array runs code when it is loaded.
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        return []
    if array.ndim == 1 and array.dtype.kind in "biufUS":
        return [Columns(name, {"value": [str(value) for value in array.tolist()]})]
    if array.ndim == 2 and array.shape[1] <= WIDEST and array.dtype.kind in "biuf":
        return [
            Columns(
                name,
                {
                    f"column {n}": [str(v) for v in array[:, n].tolist()]
                    for n in range(array.shape[1])
                },
            )
        ]
    return []
