"""TOML text with line numbers: parsing, and in which line a key stands.

Neither tomllib nor tomlkit says in which line of a valid document a key stands."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

KeyPath = Sequence[str | int]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-.\"']+)\s*=(?!=)")
# tomllib gives the place of an error only inside its message, before Python 3.14.
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse(text: str) -> dict[str, Any]:
    """The document. Raises ValueError with ``line``: ``12: invalid value`` as its text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = _AT.search(message)
        line = int(at.group(1)) if at and at.group(1) else len(text.splitlines())
        column = f" (column {at.group(2)})" if at and at.group(2) else ""
        raise ValueError(f"{line}: not valid TOML: {_AT.sub('', message)}{column}") from None


def line_of(text: str, path: KeyPath) -> int | None:
    """The line (from 1) of the key at ``path``, or else of the innermost table around it; None when
    the text has neither.

    A scan line by line, for files as people write them: it knows no inline tables."""
    lines = _lines(text)
    for length in range(len(path), 0, -1):
        line = lines.get(tuple(path[:length]))
        if line is not None:
            return line
    return None


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    found: dict[tuple[str | int, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str | int, ...] = ()
    quoted = False
    for number, line in enumerate(text.splitlines(), 1):
        # Lines inside a multi-line string may look like keys or headers.
        inside, quoted = quoted, quoted ^ ((line.count('"""') + line.count("'''")) % 2 == 1)
        if inside:
            continue
        if header := _HEADER.match(line):
            names = _split(header.group(2))
            table = names
            if header.group(1) == "[[":
                # Each [[header]] begins the next element; pydantic counts them from 0 in its paths.
                counts[names] = counts.get(names, -1) + 1
            table = _indexed(names, counts)
        elif key := _KEY.match(line):
            _remember(found, (*table, *_split(key.group(1))), number)
            continue
        else:
            continue
        _remember(found, table, number)
    return found


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _indexed(names: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> tuple[str | int, ...]:
    """The path of a table, with the index of the current element behind the name of each array of
    tables."""
    path: list[str | int] = []
    for end, name in enumerate(names, 1):
        path.append(name)
        if names[:end] in counts:
            path.append(counts[names[:end]])
    return tuple(path)


def _remember(
    found: dict[tuple[str | int, ...], int], path: tuple[str | int, ...], number: int
) -> None:
    for end in range(1, len(path) + 1):
        # The first mention counts: a table without a header of its own is found at its first
        # sub-table.
        found.setdefault(path[:end], number)
